// The server's rules about the content of a parsed profile, in its order.
#include "support/sentry_document.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace sentry_prof::testing {
namespace {

using Samples = std::vector<CheckedSample>;

constexpr uint64_t kV1MaxElapsed_ns = 30'000'000'000;
constexpr double kV2MaxSpan_s = 66;

void keep_if(Samples& samples, const std::function<bool(const CheckedSample&)>& is_kept) {
  std::erase_if(samples, [&](const CheckedSample& s) { return !is_kept(s); });
}

std::map<std::string, size_t> samples_by_thread(const Samples& samples) {
  std::map<std::string, size_t> counts;
  for (const CheckedSample& s : samples) ++counts[s.thread_id];
  return counts;
}

// Per thread, what lies before the first and after the last sample with a stack.
Samples without_idle_edges(const Document& document, const Samples& samples) {
  std::map<std::string, std::pair<size_t, size_t>> active;  // first and last index
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!document.is_active(samples[i])) continue;
    const auto [it, is_first] = active.try_emplace(samples[i].thread_id, i, i);
    if (!is_first) it->second.second = i;
  }
  Samples kept;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto it = active.find(samples[i].thread_id);
    if (it != active.end() && i >= it->second.first && i <= it->second.second) {
      kept.push_back(samples[i]);
    }
  }
  return kept;
}

bool has_missing_stack(const Document& document, const Samples& samples) {
  return std::ranges::any_of(
      samples, [&](const CheckedSample& s) { return s.stack_id >= document.stacks.size(); });
}

bool has_missing_frame(const Document& document) {
  return std::ranges::any_of(document.stacks, [&](const std::vector<uint64_t>& stack) {
    return std::ranges::any_of(stack, [&](uint64_t i) { return i >= document.frames.size(); });
  });
}

class Verdict {
 public:
  Verdict(const Document& document, Problems& problems) : doc_(document), problems_(problems) {}

  std::string v1() {
    if (doc_.platform == "cocoa" && !doc_.has_all_cocoa_fields) {
      return refuse("B7", "profiling_invalid_profile_metadata");
    }
    if (!doc_.transaction) return refuse("B11", "profiling_no_transaction_associated");
    const CheckedTransaction& t = *doc_.transaction;
    if (is_nil_uuid(t.id) || is_nil_uuid(t.trace_id) || t.name.empty()) {
      return refuse("B12", "profiling_invalid_transaction_metadata");
    }
    Samples samples = doc_.samples;
    if (t.relative_end_ns > 0) {
      keep_if(samples, [&](const CheckedSample& s) {
        return s.elapsed_ns >= t.relative_start_ns && s.elapsed_ns <= t.relative_end_ns;
      });
    }
    samples = without_idle_edges(doc_, samples);
    auto counts = samples_by_thread(samples);
    keep_if(samples, [&](const CheckedSample& s) { return counts[s.thread_id] > 1; });
    if (std::string reason = content(samples, "B"); !reason.empty()) return reason;
    if (samples.back().elapsed_ns > kV1MaxElapsed_ns) {
      return refuse("B", "profiling_duration_is_too_long");
    }
    return {};
  }

  std::string v2() {
    Samples active = doc_.samples;
    keep_if(active, [&](const CheckedSample& s) { return doc_.is_active(s); });
    auto counts = samples_by_thread(active);
    Samples samples = doc_.samples;
    keep_if(samples, [&](const CheckedSample& s) { return counts[s.thread_id] > 1; });
    if (std::string reason = content(samples, "C"); !reason.empty()) return reason;
    const auto [first, last] = std::ranges::minmax(samples, {}, &CheckedSample::unix_seconds);
    if (last.unix_seconds - first.unix_seconds > kV2MaxSpan_s) {
      return refuse("C", "profiling_duration_is_too_long");
    }
    return {};
  }

 private:
  std::string content(const Samples& samples, std::string_view rule) {
    if (samples.empty()) return refuse(rule, "profiling_not_enough_samples");
    if (has_missing_stack(doc_, samples)) return refuse(rule, "profiling_malformed_samples");
    if (has_missing_frame(doc_)) return refuse(rule, "profiling_malformed_stacks");
    return {};
  }

  std::string refuse(std::string_view rule, std::string reason) {
    problems_.add(rule, "", reason);
    return reason;
  }

  const Document& doc_;
  Problems& problems_;
};

}  // namespace

std::string refusal_of(const Document& document, ProfileKind kind, Problems& problems) {
  Verdict verdict(document, problems);
  return kind == ProfileKind::V1 ? verdict.v1() : verdict.v2();
}

}  // namespace sentry_prof::testing
