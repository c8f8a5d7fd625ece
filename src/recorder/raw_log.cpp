#include "recorder/raw_log.h"

#include "recorder/raw_log_fields.h"
#include "recorder/register_mapping.h"
#include "sampling/outer_block.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::recorder {

namespace {

// Far above what is real, far below where sums of times could run over.
constexpr uint64_t kLatest_ns = uint64_t{1} << 60;
constexpr uint64_t kShortestChunk_ns = 1'000'000;
constexpr uint64_t kLongestChunk_ns = 3'600'000'000'000;
constexpr uint32_t kHighestFrequency_hz = 1'000'000;
// No file of this size is mapped executable; what reads files takes their size as a bound.
constexpr uint64_t kLargestFile_bytes = uint64_t{64} << 30;

template <typename T>
std::string encoded(T value) {
  FieldWriter out;
  describe(out, value);
  return out.take();
}

bool is_sane(const profile::ClockAnchor& clock) {
  return clock.monotonic_ns <= kLatest_ns && clock.unix_ns <= 2 * kLatest_ns;
}

bool is_sane(const RawSession& session) {
  return session.frequency_hz >= 1 && session.frequency_hz <= kHighestFrequency_hz &&
         session.chunk_ns >= kShortestChunk_ns && session.chunk_ns <= kLongestChunk_ns &&
         session.begin_ns <= kLatest_ns && is_sane(session.clock);
}

void check(FieldReader& in, const Error& error) {
  in.fail_unless(error.code >= ErrorCode::InvalidArgument && error.code <= ErrorCode::Gone);
}

Result<target::ProcessSnapshot> read_snapshot(FieldReader& in) {
  bool has_failed = false;
  in(has_failed);
  if (has_failed) {
    Error error{ErrorCode::Gone, ""};
    describe(in, error);
    check(in, error);
    return tl::unexpected(std::move(error));
  }
  target::ProcessSnapshot snapshot;
  describe(in, snapshot);
  return snapshot;
}

// Reads one entry after another into a RawLog.
class Collector {
 public:
  // False if the entry breaks the format.
  bool add(RawEntry type, Bytes payload) {
    FieldReader in(payload);
    switch (type) {
      case RawEntry::Session:
        add_session(in);
        break;
      case RawEntry::Record:
        add_record(in);
        break;
      case RawEntry::Time:
        log_.steps.push_back(step(in, RawEntry::Time));
        break;
      case RawEntry::Snapshot:
        add_snapshot(in);
        break;
      case RawEntry::Reread:
        add_reread(in);
        break;
      case RawEntry::Opened:
        add_answer(in);
        break;
      case RawEntry::FileBytes:
        add_block(in);
        break;
      case RawEntry::End:
        add_end(in);
        break;
      case RawEntry::LiveMemory:
        add_memory(in);
        break;
      case RawEntry::ClockStep:
        add_clock_step(in);
        break;
      case RawEntry::OuterStack:
        add_outer_stack(in);
        break;
    }
    return in.is_done();
  }
  bool has_session() const { return has_session_; }
  RawLog take() { return std::move(log_); }

 private:
  static uint64_t time(FieldReader& in) {
    uint64_t time_ns = 0;
    in(time_ns);
    in.fail_unless(time_ns <= kLatest_ns);
    return time_ns;
  }

  static RawStep step(FieldReader& in, RawEntry kind) {
    RawStep result;
    result.kind = kind;
    result.time_ns = time(in);
    return result;
  }

  void add_session(FieldReader& in) {
    in.fail_unless(!has_session_);
    describe(in, log_.session);
    in.fail_unless(is_sane(log_.session));
    has_session_ = true;
  }

  void add_end(FieldReader& in) {
    describe(in, log_.end.emplace());
    in.fail_unless(log_.end->time_ns <= kLatest_ns);
  }

  void add_record(FieldReader& in) {
    RawStep record = step(in, RawEntry::Record);
    in(record.fate);
    in.fail_unless(record.fate <= sampling::RecordFate::Duplicate);
    record.record = in.rest();
    record.outer_stack = std::exchange(outer_stack_, {});
    last_record_ = log_.steps.size();
    log_.steps.push_back(std::move(record));
  }

  void add_snapshot(FieldReader& in) {
    RawStep step;
    step.kind = RawEntry::Snapshot;
    step.snapshot = log_.snapshots.size();
    log_.snapshots.push_back(read_snapshot(in));
    log_.steps.push_back(step);
  }

  // A record leads to one reread at most.
  void add_reread(FieldReader& in) {
    in.fail_unless(last_record_ < log_.steps.size());
    auto snapshot = read_snapshot(in);
    if (!in.ok() || log_.steps[last_record_].snapshot) return in.fail_unless(false);
    log_.steps[last_record_].snapshot = log_.snapshots.size();
    log_.snapshots.push_back(std::move(snapshot));
  }

  void add_memory(FieldReader& in) {
    RawMemory memory;
    in(memory.time_ns);
    in(memory.address);
    memory.bytes = in.rest();
    in.fail_unless(last_record_ < log_.steps.size());
    if (in.ok()) log_.steps[last_record_].memory.push_back(memory);
  }

  void add_outer_stack(FieldReader& in) {
    StackPiece piece;
    in(piece.begin.value);
    piece.bytes = in.rest();
    in.fail_unless(outer_stack_.size() < sampling::kMaxOuterPieces);
    if (in.ok()) outer_stack_.push_back(piece);
  }

  void add_clock_step(FieldReader& in) {
    RawStep clock_step = step(in, RawEntry::ClockStep);
    describe(in, clock_step.clock);
    in.fail_unless(is_sane(clock_step.clock));
    log_.steps.push_back(clock_step);
  }

  void add_answer(FieldReader& in) {
    std::string key;
    RawAnswer answer;
    in(key);
    describe(in, answer);
    check(in, answer.error);
    const bool is_a_file = answer.is_yes && !is_question_of_names(key);
    if (is_a_file) in.fail_unless(answer.file_number == log_.files.size());
    in.fail_unless(answer.file_bytes <= kLargestFile_bytes);
    if (!in.ok()) return;
    if (is_a_file) log_.files.push_back({answer.file_bytes, {}});
    log_.answers[key].push_back(std::move(answer));
  }

  static bool is_question_of_names(const std::string& key) {
    return !key.empty() && key[0] == static_cast<char>(RawQuestion::NameIsLiteral);
  }

  void add_block(FieldReader& in) {
    uint32_t file = 0;
    uint64_t number = 0;
    in(file);
    in(number);
    const Bytes bytes = in.rest();
    in.fail_unless(file < log_.files.size());
    if (!in.ok()) return;
    const uint64_t size = log_.files[file].size_bytes;
    in.fail_unless(number < (size + kRawBlock_bytes - 1) / kRawBlock_bytes);
    if (!in.ok()) return;
    in.fail_unless(bytes.size() == std::min(kRawBlock_bytes, size - number * kRawBlock_bytes));
    if (in.ok()) log_.files[file].blocks.emplace(number, bytes);
  }

  RawLog log_;
  size_t last_record_ = SIZE_MAX;
  std::vector<StackPiece> outer_stack_;  // of the next record
  bool has_session_ = false;
};

Result<void> check_head(ByteReader& in) {
  const uint64_t magic = in.u64();
  const uint32_t version = in.u32();
  if (!in.ok() || magic != kRawLogMagic) return fail(ErrorCode::Malformed, "not a raw log");
  if (version == kRawLogVersion) return {};
  return fail(ErrorCode::Unsupported, fmt::format("a raw log of version {}; this program reads {}",
                                                  version, kRawLogVersion));
}

}  // namespace

std::string raw_question_key(RawQuestion question, const target::MappingFacts& mapping) {
  return static_cast<char>(question) + encoded(mapping);
}

Result<RawLog> read_raw_log(Bytes bytes) {
  ByteReader in(bytes);
  if (auto ok = check_head(in); !ok) return tl::unexpected(ok.error());
  Collector log;
  while (in.ok() && !in.at_end()) {
    const size_t position = in.position();
    const uint32_t type = in.u32();
    const Bytes payload = in.bytes(in.u32());
    if (!in.ok()) break;  // cut off
    if (type < 1 || type > kLastRawEntry || !log.add(static_cast<RawEntry>(type), payload)) {
      return fail(ErrorCode::Malformed, fmt::format("the raw log is damaged at byte {}", position));
    }
  }
  if (!log.has_session()) return fail(ErrorCode::Malformed, "the raw log holds no session");
  RawLog result = log.take();
  if (result.session.arch != static_cast<uint8_t>(native_arch())) {
    return fail(ErrorCode::Unsupported, "the raw log is of another kind of machine");
  }
  return result;
}

std::string encode(const RawSession& session) { return encoded(session); }
std::string encode(const RawEnd& end) { return encoded(end); }

std::string encode_record(uint64_t time_ns, sampling::RecordFate fate, Bytes record) {
  FieldWriter out;
  out(time_ns);
  out(fate);
  out.rest(record);
  return out.take();
}

std::string encode_outer_stack(const StackPiece& piece) {
  FieldWriter out;
  out(piece.begin.value);
  out.rest(piece.bytes);
  return out.take();
}

std::string encode_time(uint64_t time_ns) {
  FieldWriter out;
  out(time_ns);
  return out.take();
}

std::string encode_clock_step(uint64_t time_ns, const profile::ClockAnchor& clock) {
  FieldWriter out;
  out(time_ns);
  return out.take() + encoded(clock);
}

std::string encode_memory(uint64_t time_ns, uint64_t address, Bytes bytes) {
  FieldWriter out;
  out(time_ns);
  out(address);
  out.rest(bytes);
  return out.take();
}

std::string encode(const Result<target::ProcessSnapshot>& snapshot) {
  FieldWriter out;
  out(!snapshot.has_value());
  return out.take() + (snapshot ? encoded(*snapshot) : encoded(snapshot.error()));
}

std::string encode(const std::string& question_key, const RawAnswer& answer) {
  FieldWriter out;
  out(question_key);
  return out.take() + encoded(answer);
}

std::string encode_block(uint32_t file_number, uint64_t block_number, Bytes bytes) {
  FieldWriter out;
  out(file_number);
  out(block_number);
  out.rest(bytes);
  return out.take();
}

std::string raw_log_head() {
  FieldWriter out;
  out(kRawLogMagic);
  out(kRawLogVersion);
  return out.take();
}

std::string raw_entry_head(RawEntry type, size_t payload_bytes) {
  FieldWriter out;
  out(type);
  out.count(payload_bytes);
  return out.take();
}

}  // namespace sentry_prof::recorder
