// A raw log: what a recording got from outside, kept so that it can be replayed without privileges.
// The format is described in docs/raw-log.md.
#pragma once

#include "base/byte_reader.h"
#include "base/byte_source.h"
#include "profile/finish_chunk.h"
#include "sampling/record_tap.h"
#include "target/mapping_facts.h"
#include "target/process_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace sentry_prof::recorder {

enum class RawEntry : uint32_t {
  Session = 1,  // RawSession
  Record,       // time, fate, the kernel's bytes
  Time,         // all records older than this have been handed on
  Snapshot,     // of a process that was attached to
  Reread,       // of a process, asked for by the record before
  Opened,       // what a question to the opener gave
  FileBytes,    // one block of an opened file
  End,          // when recording ended
  LiveMemory,   // of a process, asked for by the record before
  ClockStep,    // the wall clock was set, or the machine slept
  OuterStack,   // a piece of the next record's stack that is no part of it
};
inline constexpr uint32_t kLastRawEntry = static_cast<uint32_t>(RawEntry::OuterStack);

// "SPRAWLOG" in memory order, and the version behind it.
inline constexpr uint64_t kRawLogMagic = 0x474f'4c57'4152'5053;
inline constexpr uint32_t kRawLogVersion = 6;
// Files are kept in blocks of this size, each once.
inline constexpr uint64_t kRawBlock_bytes = 4096;

// What the recorder was told and what the sampler set up.
struct RawSession {
  uint8_t arch = 0;  // unwind::Arch
  bool has_trailer = true;
  sampling::SamplerSetup setup;  // with sample_type and register_mask, which say how to decode
  uint32_t frequency_hz = 0;
  uint64_t chunk_ns = 0;
  uint64_t max_chunk_json_bytes = 0;
  uint64_t begin_ns = 0;
  profile::ClockAnchor clock;
  uint32_t main_pid = 0;
  std::string main_executable;
  Session texts;  // without the profiler's id
};

enum class RawQuestion : uint8_t { Open, OpenByPath, NameIsLiteral, OpenMapped };

// The answer of an opener: a file, an error, or yes or no.
struct RawAnswer {
  bool is_yes = false;
  uint32_t file_number = 0;  // files count from 0 in the order of their opening
  uint64_t file_bytes = 0;
  Error error{ErrorCode::NotFound, ""};
};

struct RawFile {
  uint64_t size_bytes = 0;
  std::unordered_map<uint64_t, Bytes> blocks;  // by number
};

// What was read of a process's memory.
struct RawMemory {
  uint64_t time_ns = 0;
  uint64_t address = 0;
  Bytes bytes;
};

// One thing that happened to the recording thread.
struct RawStep {
  RawEntry kind = RawEntry::Record;  // Record, Time, Snapshot or ClockStep
  sampling::RecordFate fate = sampling::RecordFate::HandedOn;
  uint64_t time_ns = 0;
  Bytes record;
  std::vector<StackPiece> outer_stack;
  std::optional<size_t> snapshot;  // index; of a Record: the reread that it led to
  profile::ClockAnchor clock;      // of a ClockStep
  std::vector<RawMemory> memory;   // of a Record: what was read because of it, in this order
};

// The end of the run, and of the sampler's figures those that records do not tell.
struct RawEnd {
  uint64_t time_ns = 0;
  sampling::SamplerStats stats;
};

// Points into the bytes that it was read from.
struct RawLog {
  RawSession session;
  std::vector<RawStep> steps;
  std::vector<Result<target::ProcessSnapshot>> snapshots;
  std::vector<RawFile> files;
  std::unordered_map<std::string, std::vector<RawAnswer>> answers;  // by raw_question_key()
  std::optional<RawEnd> end;  // none: the log was cut off, what is there counts
};

// Questions that have the same key are the same.
std::string raw_question_key(RawQuestion question, const target::MappingFacts& mapping);

// Of any bytes. Unsupported for another version or another machine's log; Malformed where an entry
// breaks the format, or there is no session. A log that ends within an entry is one that was cut
// off. `bytes` must outlive the result, whose size is in proportion.
Result<RawLog> read_raw_log(Bytes bytes);

// Payloads of entries, for the writer.
std::string encode(const RawSession& session);
std::string encode(const RawEnd& end);
std::string encode_record(uint64_t time_ns, sampling::RecordFate fate, Bytes record);
std::string encode_outer_stack(const StackPiece& piece);
std::string encode_time(uint64_t time_ns);
std::string encode_clock_step(uint64_t time_ns, const profile::ClockAnchor& clock);
std::string encode_memory(uint64_t time_ns, uint64_t address, Bytes bytes);
std::string encode(const Result<target::ProcessSnapshot>& snapshot);
std::string encode(const std::string& question_key, const RawAnswer& answer);
std::string encode_block(uint32_t file_number, uint64_t block_number, Bytes bytes);
// The magic and the version; the type and the size of an entry.
std::string raw_log_head();
std::string raw_entry_head(RawEntry type, size_t payload_bytes);

}  // namespace sentry_prof::recorder
