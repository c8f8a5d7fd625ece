#include "sentry/json_parts.h"
#include "sentry/writers.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace sentry_prof::sentry {
namespace {

ShortText& two_digits(ShortText& text, unsigned value) {
  if (value < 10) text.text("0");
  return text.number(value);
}

// RFC 3339 in UTC with microseconds: 2026-01-15T12:00:00.000000Z.
ShortText rfc3339(uint64_t unix_time_ns) {
  using namespace std::chrono;
  const sys_time<microseconds> time{microseconds(unix_time_ns / 1000)};
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{time - day};
  ShortText text;
  // A nanosecond count of 64 bits ends in the year 2554: always four digits.
  text.number(static_cast<unsigned>(int{date.year()})).text("-");
  two_digits(text, unsigned{date.month()}).text("-");
  two_digits(text, unsigned{date.day()}).text("T");
  two_digits(text, static_cast<unsigned>(clock.hours().count())).text(":");
  two_digits(text, static_cast<unsigned>(clock.minutes().count())).text(":");
  two_digits(text, static_cast<unsigned>(clock.seconds().count())).text(".");
  text.six_digits(static_cast<uint64_t>(clock.subseconds().count())).text("Z");
  return text;
}

// {"elapsed_since_start_ns":"12345678","thread_id":"4242","stack_id":7}
void write_v1_sample(JsonWriter& json, const Profile& profile, const Sample& sample) {
  const uint64_t start = profile.start_unix_ns;
  const uint64_t elapsed_ns = sample.unix_time_ns > start ? sample.unix_time_ns - start : 0;
  ShortText text;
  text.text(R"({"elapsed_since_start_ns":")").number(elapsed_ns);
  text.text(R"(","thread_id":")").number(profile.threads[sample.thread].id);
  text.text(R"(","stack_id":)").number(sample.stack).text("}");
  json.raw(text.view());
}

// Of each thread the first and the last sample that has a stack. Of V1 the server drops what is
// idle before and behind them.
class WorkingSpans {
 public:
  explicit WorkingSpans(const Profile& profile) : of_thread_(profile.threads.size()) {
    for (size_t i = 0; i < profile.samples.size(); ++i) {
      const Sample& sample = profile.samples[i];
      if (profile.stack(sample.stack).empty()) continue;
      Span& span = of_thread_[sample.thread];
      span.first = std::min(span.first, i);
      span.last = i;
    }
  }
  bool hold(size_t index, const Sample& sample) const {
    const Span& span = of_thread_[sample.thread];
    return span.first <= index && index <= span.last;
  }

 private:
  struct Span {
    size_t first = SIZE_MAX, last = 0;
  };
  std::vector<Span> of_thread_;
};

void write_v1_samples(JsonWriter& json, const Profile& profile) {
  const WorkingSpans working(profile);
  json.key("samples");
  json.begin_array();
  for (size_t i = 0; i < profile.samples.size(); ++i) {
    const Sample& sample = profile.samples[i];
    if (working.hold(i, sample)) write_v1_sample(json, profile, sample);
  }
  json.end_array();
}

void write_device_and_os(JsonWriter& json, const Session& session) {
  json.key("device");
  json.begin_object();
  json.member("architecture", session.device_architecture);
  json.key("is_emulator");
  json.boolean(false);
  json.member_if_not_empty("manufacturer", session.device_manufacturer);
  json.member_if_not_empty("model", session.device_model);
  json.end_object();
  json.key("os");
  json.begin_object();
  json.member("name", session.os_name);
  json.member("version", session.os_version);
  json.member_if_not_empty("build_number", session.os_build);
  json.end_object();
}

// The server refuses a transaction without a name.
std::string_view transaction_name(const Profile& profile) {
  if (!profile.session.transaction_name.empty()) return profile.session.transaction_name;
  return "unnamed";
}

void write_transaction(JsonWriter& json, const Profile& profile, const V1Ids& ids) {
  json.key("transaction");
  json.begin_object();
  json.member("id", ids.transaction.to_hex());
  json.member("name", transaction_name(profile));
  json.member("trace_id", ids.trace.to_hex());
  if (profile.main_thread < profile.threads.size()) {
    json.key("active_thread_id");
    json.number_string(profile.threads[profile.main_thread].id);
  }
  json.end_object();
}

void write_head(JsonWriter& json, const Profile& profile, const V1Ids& ids) {
  const Session& session = profile.session;
  json.member("version", "1");
  json.member("event_id", ids.event.to_hex());
  json.member("platform", session.platform);
  json.member("timestamp", rfc3339(profile.start_unix_ns).view());
  json.member("release", session.release);
  json.member("environment", session.environment);
  write_device_and_os(json, session);
  write_transaction(json, profile, ids);
}

}  // namespace

std::string write_v1(const Profile& profile, const V1Ids& ids) {
  std::string out;
  out.reserve(expected_json_bytes(profile));
  JsonWriter json(out);
  json.begin_object();
  write_head(json, profile, ids);
  write_debug_meta(json, profile);
  json.key("profile");
  json.begin_object();
  write_v1_samples(json, profile);
  write_stacks(json, profile);
  write_frames(json, profile);
  write_thread_metadata(json, profile);
  json.end_object();
  json.end_object();
  out += '\n';
  return out;
}

}  // namespace sentry_prof::sentry
