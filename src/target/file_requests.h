// What is asked of the processes that open the target's files, and what they answer
// (target_files.h, file_server.h).
#pragma once

#include "target/mapping_fields.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sentry_prof::target {

enum class FileRequestKind : uint8_t {
  Open,           // ImageOpener::open()
  OpenByPath,     // ImageOpener::open_by_path()
  OpenMapped,     // ImageOpener::open_mapped()
  NameIsLiteral,  // ImageOpener::name_is_literal()
  OpenJitMap,     // JitMapFinder::open(), of `mapping.pid`
  IsSameFile,     // os::is_same_file(), of `mapping.path` and `other_path`
  Size,           // of a `file` that the server keeps
  Read,           // of the same, up to kMaxFilePiece_bytes
  Close,          // all `closed_files`, if they are open; their answer says only that it is done
};

struct FileRequest {
  FileRequestKind kind = FileRequestKind::Open;
  MappingFacts mapping;
  std::string other_path;
  uint64_t program_begin_ns = 0;
  uint64_t file = 0;  // the asker's number, which it gives to no other file; of Open..., too
  std::vector<uint64_t> closed_files;
  uint64_t offset = 0;
  uint32_t size_bytes = 0;
};

struct FileReply {
  // Yes; or the file was opened, the bytes were read. Else `error` says why not, if anything does:
  // Gone of bytes if the file was written to since.
  bool is_yes = false;
  bool is_passed = false;  // the file comes with the message; else the server keeps it
  uint64_t size_bytes = 0;
  std::vector<std::byte> bytes;  // of a file that the server keeps: its first piece (RecentPieces)
  Error error{ErrorCode::Io, {}};
};

// So that a reply, with its other fields, fits into an answer of os::HelperProcesses.
inline constexpr size_t kMaxFilePiece_bytes = size_t{1} << 20;

template <typename Fields>
void describe(Fields& f, std::vector<uint64_t>& numbers) {
  if constexpr (Fields::kReads) {
    numbers.resize(f.count(sizeof(uint64_t)));
  } else {
    f.count(numbers.size());
  }
  for (uint64_t& number : numbers) f(number);
}

template <typename Fields>
void describe(Fields& f, FileRequest& r) {
  f(r.kind), describe(f, r.mapping), f(r.other_path), f(r.program_begin_ns);
  f(r.file), describe(f, r.closed_files), f(r.offset), f(r.size_bytes);
}

template <typename Fields>
void describe(Fields& f, FileReply& r) {
  f(r.is_yes), f(r.is_passed), f(r.size_bytes), f(r.bytes), describe(f, r.error);
}

template <typename Message>
std::string to_message(Message message) {
  FieldWriter fields;
  describe(fields, message);
  return fields.take();
}

// Nothing unless `bytes` are one, whole.
template <typename Message>
std::optional<Message> from_message(Bytes bytes) {
  FieldReader fields(bytes);
  Message message;
  describe(fields, message);
  return fields.is_done() ? std::optional(std::move(message)) : std::nullopt;
}

}  // namespace sentry_prof::target
