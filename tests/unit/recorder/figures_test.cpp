#include "recorder/figures.h"

#include "recorder/summary.h"
#include "support/catch2.h"

#include <fmt/format.h>

using namespace sentry_prof::recorder;
using sentry_prof::unwind::WalkEnd;

namespace {

RunFigures consistent_figures() {
  RunFigures figures;
  figures.sampler.sample_records = 100;
  figures.sampler.lost_samples = 7;
  figures.sample.loss(Loss::RingFull) = 7;
  figures.sample.loss(Loss::UnmappedPc) = 2;
  figures.sample.loss(Loss::ChunkTooSmall) = 1;
  figures.samples_written = 97;
  return figures;
}

}  // namespace

TEST_CASE("The law of counting holds when every record is a sample or a named loss") {
  CHECK(consistent_figures().broken_law().empty());
}

TEST_CASE("The law of counting names both sides when a sample went missing") {
  RunFigures figures = consistent_figures();
  figures.samples_written = 96;
  CHECK(figures.broken_law() == "100 records seen + 7 lost, 96 samples written + 10 named losses");
}

TEST_CASE("Walks are complete, truncated or failed, and nothing else") {
  RunFigures figures;
  figures.sample.walk_ends[static_cast<size_t>(WalkEnd::Root)] = 90;
  figures.sample.walk_ends[static_cast<size_t>(WalkEnd::StackTruncated)] = 6;
  figures.sample.walk_ends[static_cast<size_t>(WalkEnd::NoProgress)] = 3;
  figures.sample.walk_ends[static_cast<size_t>(WalkEnd::BadCfi)] = 1;
  CHECK(figures.samples_complete() == 90);
  CHECK(figures.samples_truncated() == 6);
  CHECK(figures.samples_failed() == 4);
}

TEST_CASE("The effective rate is samples by CPU time, and zero where that is not known") {
  RunFigures figures;
  figures.sampler.sample_records = 202;
  CHECK(figures.effective_hz() == 0);
  figures.sample.on_cpu_ns = 2'000'000'000;
  CHECK(figures.effective_hz() == 101);
}

TEST_CASE("CPU time is what the sampling events say, rather than what switch records do") {
  RunFigures figures;
  figures.sample.on_cpu_ns = 16;
  CHECK(figures.target_cpu_ns() == 16);
  figures.sampler.on_cpu_ns = 20;
  CHECK(figures.target_cpu_ns() == 20);
}

TEST_CASE("The summary JSON names every loss") {
  const std::string json = summary_json(consistent_figures(), {"a.json"});
  for (size_t i = 0; i < kLossCount; ++i) {
    CHECK(json.find('"' + std::string(name_of(static_cast<Loss>(i))) + '"') != std::string::npos);
  }
  CHECK(json.find("\"ring_full\":7") != std::string::npos);
  CHECK(json.find("\"files\":[\"a.json\"]") != std::string::npos);
}

TEST_CASE("The printed summary tells a loss and what to do about it") {
  const std::string text = summary_text(consistent_figures(), {}, false);
  CHECK(text.find("7 samples: the kernel's buffers were full") != std::string::npos);
  const size_t advice = text.find("perf_event_mlock_kb");
  CHECK(advice != std::string::npos);
  CHECK(advice < text.rfind("  lost "));  // below its own line, not below those of other losses
}

TEST_CASE("Without samples no rate and no shares are printed") {
  RunFigures figures;
  figures.sample.walk_ends[static_cast<size_t>(WalkEnd::Root)] = 1;
  figures.sample.loss(Loss::ChunkTooSmall) = 1;
  figures.sampler.sample_records = 1;
  const std::string text = summary_text(figures, {}, false);
  CHECK(text.find("0 samples in") != std::string::npos);
  CHECK(text.find(" Hz") == std::string::npos);
  CHECK(text.find('%') == std::string::npos);
}

TEST_CASE("One is told in the singular") {
  RunFigures figures;
  figures.samples_written = 1;
  figures.sample.loss(Loss::RingFull) = 1;
  figures.sampler.throttled = 1;
  const std::string text = summary_text(figures, {}, false);
  CHECK(text.find("sentry-prof: 1 sample in") != std::string::npos);
  CHECK(text.find("lost      1 sample: ") != std::string::npos);
  CHECK(text.find("throttled 1 time by") != std::string::npos);
}

TEST_CASE("What the kernel lost or throttled is told of perf's recordings, with perf's options") {
  RunFigures figures;
  figures.sample.loss(Loss::RingFull) = 2;
  figures.sampler.throttled = 3;
  CHECK(summary_text(figures, {}, false).find("kernel: lower --frequency") != std::string::npos);
  figures.is_converted = true;
  const std::string text = summary_text(figures, {}, false);
  CHECK(text.find("throttled 3 times by the kernel: record with") != std::string::npos);
  CHECK(text.find("buffers (-m)") != std::string::npos);
  CHECK(text.find("--") == std::string::npos);
}

TEST_CASE("The verbose summary says in words why stacks ended") {
  RunFigures figures;
  figures.setup.threads_attached = 1;
  figures.sample.walk_ends.fill(3);
  const std::string text = summary_text(figures, {}, true);
  CHECK(text.find(" 1 thread attached") != std::string::npos);
  CHECK(text.find("3 cut: deeper than the bytes that were copied") != std::string::npos);
  CHECK(text.find("3 ended early: damaged unwind tables") != std::string::npos);
  CHECK(text.find('_') == std::string::npos);
}

TEST_CASE("Of many files the summary names the first and the last") {
  std::vector<std::string> files;
  for (int i = 1; i <= 21; ++i) files.push_back(fmt::format("out.{}.json", i));
  const std::string text = summary_text(consistent_figures(), files, false);
  CHECK(text.ends_with("  wrote     21 files, out.1.json to out.21.json\n"));
  files.pop_back();
  CHECK(summary_text(consistent_figures(), files, false).ends_with("out.20.json\n"));
}

TEST_CASE("A file's name is printed without its control characters") {
  const std::string text = summary_text(consistent_figures(), {"a\x1b[31m.json"}, false);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("[31m.json") != std::string::npos);
}
