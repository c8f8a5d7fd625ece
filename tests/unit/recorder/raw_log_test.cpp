// The format of raw logs: what was written comes back, and damaged bytes are told or harmless.
#include "recorder/raw_log.h"

#include "os/file.h"
#include "recorder/raw_log_writer.h"
#include "recorder/register_mapping.h"
#include "recorder/replay.h"
#include "support/catch2.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include <linux/perf_event.h>
#include <sys/stat.h>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

RawSession a_session() {
  RawSession session;
  session.arch = static_cast<uint8_t>(native_arch());
  session.setup.event_name = "cpu-clock";
  session.setup.stack_bytes = 4096;
  session.setup.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  session.setup.register_mask = 0xff'ffff;
  session.frequency_hz = 97;
  session.chunk_ns = 60'000'000'000;
  session.begin_ns = 1'000;
  session.clock = {900, 1'700'000'000'000'000'000};
  session.main_pid = 42;
  session.main_executable = "/usr/bin/app";
  session.texts.release = "app@1";
  return session;
}

target::MappingFacts a_mapping() {
  target::MappingFacts mapping;
  mapping.pid = 42;
  mapping.begin = {0x5000};
  mapping.size_bytes = 0x1000;
  mapping.build_id = {std::byte{1}, std::byte{2}};
  mapping.path = "/usr/bin/app";
  return mapping;
}

Result<target::ProcessSnapshot> a_snapshot() {
  target::ProcessSnapshot snapshot;
  snapshot.pid = 42;
  snapshot.name = "app";
  snapshot.threads = {{42, "app"}, {43, "worker"}};
  snapshot.mappings = {a_mapping()};
  snapshot.data_below_code = {a_mapping(), a_mapping()};
  snapshot.taken_at_ns = 1'100;
  return snapshot;
}

RawEnd an_end() {
  RawEnd end;
  end.time_ns = 3'000;
  end.stats.records = 3;
  end.stats.lost_samples = 5;
  return end;
}

std::string entry(RawEntry type, const std::string& payload) {
  return raw_entry_head(type, payload.size()) + payload;
}

std::string session_entry(const RawSession& session) {
  return entry(RawEntry::Session, encode(session));
}

// One entry of each kind.
std::string a_log() {
  RawAnswer answer;
  answer.is_yes = true;
  answer.file_bytes = 6;
  const std::string record = "12345678", outer_stack = "outer";
  const std::string key = raw_question_key(RawQuestion::Open, a_mapping());
  return raw_log_head() + entry(RawEntry::Snapshot, encode(a_snapshot())) +
         session_entry(a_session()) +
         entry(RawEntry::OuterStack, encode_outer_stack({{0x7000}, bytes_of(outer_stack)})) +
         entry(RawEntry::Record,
               encode_record(2'000, sampling::RecordFate::Duplicate, bytes_of(record))) +
         entry(RawEntry::Reread, encode(Result<target::ProcessSnapshot>(
                                     fail(ErrorCode::Gone, "process 42 has ended")))) +
         entry(RawEntry::Opened, encode(key, answer)) +
         entry(RawEntry::FileBytes, encode_block(0, 0, bytes_of("abcdef"))) +
         entry(RawEntry::Time, encode_time(2'500)) +
         entry(RawEntry::ClockStep, encode_clock_step(2'600, {2'550, 77})) +
         entry(RawEntry::End, encode(an_end()));
}

class NoSink final : public ChunkSink {
 public:
  Result<void> write(const Profile&, uint32_t) override { return {}; }
};

ErrorCode error_of(const std::string& log) {
  const auto result = read_raw_log(bytes_of(log));
  REQUIRE_FALSE(result.has_value());
  return result.error().code;
}

ErrorCode error_with(const RawSession& session) {
  return error_of(raw_log_head() + session_entry(session));
}

ErrorCode error_behind_session(const std::string& entries) {
  return error_of(raw_log_head() + session_entry(a_session()) + entries);
}

}  // namespace

TEST_CASE("A raw log comes back as it was written") {
  const std::string bytes = a_log();
  const auto log = read_raw_log(bytes_of(bytes));
  REQUIRE(log);
  CHECK(log->session.setup.event_name == "cpu-clock");
  CHECK(log->session.setup.sample_type == (PERF_SAMPLE_TID | PERF_SAMPLE_TIME));
  CHECK(log->session.setup.register_mask == 0xff'ffff);
  CHECK(log->session.frequency_hz == 97);
  CHECK(log->session.clock.unix_ns == 1'700'000'000'000'000'000);
  CHECK(log->session.main_executable == "/usr/bin/app");
  CHECK(log->session.texts.release == "app@1");

  REQUIRE(log->steps.size() == 4);
  CHECK(log->steps[0].kind == RawEntry::Snapshot);
  const auto& snapshot = log->snapshots.at(log->steps[0].snapshot.value());
  REQUIRE(snapshot);
  CHECK(snapshot->threads == a_snapshot()->threads);
  REQUIRE(snapshot->mappings.size() == 1);
  CHECK(raw_question_key(RawQuestion::Open, snapshot->mappings[0]) ==
        raw_question_key(RawQuestion::Open, a_mapping()));
  CHECK(snapshot->data_below_code.size() == 2);
  CHECK(snapshot->taken_at_ns == 1'100);

  CHECK(log->steps[1].kind == RawEntry::Record);
  CHECK(log->steps[1].time_ns == 2'000);
  CHECK(log->steps[1].fate == sampling::RecordFate::Duplicate);
  CHECK(log->steps[1].record.size() == 8);
  REQUIRE(log->steps[1].outer_stack.size() == 1);
  CHECK(log->steps[1].outer_stack[0].begin.value == 0x7000);
  CHECK(log->steps[1].outer_stack[0].bytes.size() == 5);
  const auto& reread = log->snapshots.at(log->steps[1].snapshot.value());
  REQUIRE_FALSE(reread.has_value());
  CHECK(reread.error().message == "process 42 has ended");

  CHECK(log->steps[2].kind == RawEntry::Time);
  CHECK(log->steps[2].time_ns == 2'500);
  CHECK(log->steps[3].kind == RawEntry::ClockStep);
  CHECK(log->steps[3].time_ns == 2'600);
  CHECK(log->steps[3].clock.monotonic_ns == 2'550);
  CHECK(log->steps[3].clock.unix_ns == 77);
  REQUIRE(log->end.has_value());
  CHECK(log->end->time_ns == 3'000);
  CHECK(log->end->stats.lost_samples == 5);
}

TEST_CASE("A replay takes over what the sampler lost, which no record tells") {
  const std::string bytes = a_log();
  const auto log = read_raw_log(bytes_of(bytes));
  REQUIRE(log);
  NoSink sink;
  const auto figures = replay(*log, {}, sink);
  REQUIRE(figures);
  CHECK(figures->sample.loss(Loss::RingFull) == 5);
  CHECK(figures->sampler.records == 3);
  CHECK(figures->sample.loss(Loss::Undecodable) == 2);  // unreadable rests of rings
  CHECK(figures->broken_law().empty());
}

TEST_CASE("A raw log's file can be read where it was read then, and nowhere else") {
  const std::string bytes = a_log();
  const auto log = read_raw_log(bytes_of(bytes));
  REQUIRE(log);
  const auto opener = make_replay_opener(*log);
  const auto file = opener->open(a_mapping());
  REQUIRE(file);
  std::array<std::byte, 3> out{};
  REQUIRE((*file)->read_at(2, out));
  CHECK(out == std::array{std::byte{'c'}, std::byte{'d'}, std::byte{'e'}});
  CHECK_FALSE((*file)->read_at(4, out));
  CHECK_FALSE((*file)->read_at(UINT64_MAX, out));
  CHECK(opener->open_by_path(a_mapping()).error().code == ErrorCode::NotFound);
}

TEST_CASE("A raw log that ends anywhere is one that was cut off, or has no session yet") {
  const std::string bytes = a_log();
  const size_t session_end = raw_log_head().size() +
                             entry(RawEntry::Snapshot, encode(a_snapshot())).size() +
                             session_entry(a_session()).size();
  for (size_t size = 0; size < bytes.size(); ++size) {
    INFO("size " << size);
    const std::string cut = bytes.substr(0, size);
    const auto log = read_raw_log(bytes_of(cut));
    CHECK(log.has_value() == (size >= session_end));
    if (log) CHECK_FALSE(log->end.has_value());
  }
}

TEST_CASE("What is no raw log of this machine and version is refused") {
  CHECK(error_of("") == ErrorCode::Malformed);
  CHECK(error_of(std::string(64, '\0')) == ErrorCode::Malformed);
  CHECK(error_of(raw_log_head()) == ErrorCode::Malformed);
  std::string newer = a_log();
  ++newer[8];
  CHECK(error_of(newer) == ErrorCode::Unsupported);
  RawSession foreign = a_session();
  foreign.arch = 7;
  CHECK(error_with(foreign) == ErrorCode::Unsupported);
}

TEST_CASE("A raw log's session that no recording has is refused") {
  RawSession session = a_session();
  session.frequency_hz = 0;
  CHECK(error_with(session) == ErrorCode::Malformed);
  session = a_session();
  session.chunk_ns = 0;
  CHECK(error_with(session) == ErrorCode::Malformed);
  session = a_session();
  session.begin_ns = UINT64_MAX;
  CHECK(error_with(session) == ErrorCode::Malformed);
  CHECK(error_behind_session(session_entry(a_session())) == ErrorCode::Malformed);  // a second one
}

TEST_CASE("An entry of a raw log that contradicts others is refused") {
  CHECK(error_behind_session(raw_entry_head(static_cast<RawEntry>(99), 0)) == ErrorCode::Malformed);
  RawEnd late = an_end();
  late.time_ns = UINT64_MAX;
  CHECK(error_behind_session(entry(RawEntry::End, encode(late))) == ErrorCode::Malformed);
  CHECK(error_behind_session(entry(RawEntry::Time, encode_time(1) + "x")) == ErrorCode::Malformed);
  CHECK(error_behind_session(entry(RawEntry::ClockStep, encode_clock_step(1, {UINT64_MAX, 0}))) ==
        ErrorCode::Malformed);
  // Bytes of a file that was not opened, a reread before any record.
  CHECK(error_behind_session(entry(RawEntry::FileBytes, encode_block(0, 0, bytes_of("abc")))) ==
        ErrorCode::Malformed);
  CHECK(error_behind_session(entry(RawEntry::Reread, encode(a_snapshot()))) ==
        ErrorCode::Malformed);
  // A file out of turn.
  RawAnswer answer;
  answer.is_yes = true;
  answer.file_number = 1;
  const std::string key = raw_question_key(RawQuestion::Open, a_mapping());
  CHECK(error_behind_session(entry(RawEntry::Opened, encode(key, answer))) == ErrorCode::Malformed);
  // More threads than a snapshot of this size can hold.
  std::string snapshot = encode(a_snapshot());
  snapshot[1 + 4 + 4 + 3] = '\x7f';
  CHECK(error_behind_session(entry(RawEntry::Snapshot, snapshot)) == ErrorCode::Malformed);
}

TEST_CASE("Damaged raw logs are told or played, never worse") {
  std::mt19937 random(1);
  const std::string whole = a_log();
  size_t readable = 0;
  for (int round = 0; round < 2'000; ++round) {
    std::string damaged = whole;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto log = read_raw_log(bytes_of(damaged));
    if (!log) continue;
    ++readable;
    if (readable > 50) continue;  // each replay starts a thread
    NoSink sink;
    const auto figures = replay(*log, {}, sink);
    const uint64_t told = log->end ? log->end->stats.records : 0;
    if (figures) CHECK(figures->sampler.records <= std::max<uint64_t>(log->steps.size(), told));
  }
  CHECK(readable > 0);
  CHECK(readable < 2'000);
}

TEST_CASE("The writer keeps what is read of a file, each block once, in a file of its owner's") {
  class OneFile final : public target::ImageOpener {
   public:
    Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts&) override {
      std::vector<std::byte> bytes(10'000);
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
      return std::make_shared<MemoryByteSource>(std::move(bytes));
    }
    Result<std::shared_ptr<const ByteSource>> open_by_path(const target::MappingFacts&) override {
      return fail(ErrorCode::PermissionDenied, "not allowed");
    }
    Result<std::shared_ptr<const ByteSource>> open_mapped(const target::MappingFacts&) override {
      return std::make_shared<MemoryByteSource>(std::vector<std::byte>(7, std::byte{'m'}));
    }
    bool name_is_literal(const target::MappingFacts&) override { return true; }
  };
  std::string directory =
      (std::filesystem::temp_directory_path() / "sentry-prof-rawlog-XXXXXX").string();
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  const std::string path = directory + "/log";
  {
    auto writer = RawLogWriter::create(path);
    REQUIRE(writer);
    (*writer)->on_session(a_session());
    const auto opener = (*writer)->wrap(std::make_unique<OneFile>());
    const auto file = opener->open(a_mapping());
    REQUIRE(file);
    std::vector<std::byte> out(5'000);
    REQUIRE((*file)->read_at(4'990, out));
    REQUIRE((*file)->read_at(4'990, out));
    CHECK_FALSE(opener->open_by_path(a_mapping()));
    const auto mapped = opener->open_mapped(a_mapping());
    REQUIRE(mapped);
    REQUIRE((*mapped)->read_at(6, std::span(out).first(1)));
    CHECK(opener->name_is_literal(a_mapping()));
    REQUIRE((*writer)->commit());
  }
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto bytes = os::read_small_file(path);
  std::filesystem::remove_all(directory);
  REQUIRE(bytes);
  CHECK(bytes->size() < 8'000);  // blocks 1 and 2 of three, once, and one of seven bytes
  const auto log = read_raw_log(bytes_of(*bytes));
  REQUIRE(log);
  const auto opener = make_replay_opener(*log);
  const auto file = opener->open(a_mapping());
  REQUIRE(file);
  CHECK((*file)->size_bytes() == 10'000);
  std::vector<std::byte> out(5'000);
  REQUIRE((*file)->read_at(4'990, out));
  CHECK(out[0] == static_cast<std::byte>(4'990 % 251));
  CHECK(out[4'999] == static_cast<std::byte>(9'989 % 251));
  CHECK_FALSE((*file)->read_at(0, out));  // nobody read that
  CHECK(opener->open_by_path(a_mapping()).error().code == ErrorCode::PermissionDenied);
  const auto mapped = opener->open_mapped(a_mapping());
  REQUIRE(mapped);
  REQUIRE((*mapped)->read_at(6, std::span(out).first(1)));
  CHECK(out[0] == std::byte{'m'});
  CHECK(opener->name_is_literal(a_mapping()));
}
