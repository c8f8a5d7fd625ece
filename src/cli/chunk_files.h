// The sink of `record`: one file a chunk, or all of them to standard output.
#pragma once

#include "recorder/chunk_sink.h"
#include "sentry_prof/sentry.h"

#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::cli {

// FILE.json, then FILE.2.json, FILE.3.json ...; a name without ".json" gets its number appended.
std::string chunk_path(const std::string& path, uint32_t chunk_number);

// Whether chunks go to files: `path` is neither empty (there are none) nor standard output.
bool is_name_of_files(const std::string& path);

// Whether `other` is one of the names that chunk_path(path, ...) gives.
bool is_chunk_path(const std::string& path, const std::string& other);

// Whether `other` may be a file of one of the chunks that are written to `path`, by whatever way to
// its directory.
bool is_file_of_chunk(const std::string& path, const std::string& other);

// Where `-o` and the target's name lead: "-" stays; "dir/", an existing directory and "" get
// NAME-PID.v2.json, of a very long name the beginning.
std::string resolve_output(const std::string& output, const std::string& target_name, int pid,
                           SentryFormat format);

// The directory that `-o` wants made if it is not there: "dir/". Empty: none.
std::string directory_to_make(std::string_view output);

// All of `bytes`, whatever standard output is.
Result<void> write_to_stdout(std::string_view bytes);

// Whole or not there.
Result<void> write_file(const std::string& path, std::string_view bytes);
// The same, or of "-" to standard output.
Result<void> write_output(const std::string& path, std::string_view bytes);

// LimitExceeded, Malformed: what Sentry would refuse is not written.
Result<std::string> chunk_json(const Profile& profile, SentryFormat format, uint32_t chunk_number);

class ChunkFiles final : public recorder::ChunkSink {
 public:
  // `path` as resolve_output gives it for `output`; empty: write() is not called. A directory that
  // `output` asks for is made again for a chunk that is due when somebody removed or renamed it.
  ChunkFiles(std::string path, SentryFormat format, std::string_view output = "")
      : path_(std::move(path)), format_(format), directory_(directory_to_make(output)) {}

  Result<void> write(const Profile& profile, uint32_t chunk_number) override;
  // What chunk_json() made. Files are numbered by themselves: a chunk that could not be written
  // leaves no gap, and its number's file is never one that is there already.
  Result<void> write_json(std::string_view json);
  bool is_broken() const override { return is_stdout_closed_; }
  // Files that look like the next chunks of this recording but were there before, in order.
  std::vector<std::string> left_by_earlier_run() const;
  // Paths of what was written, in order; the recording must be over.
  const std::vector<std::string>& written() const { return written_; }
  // Those in whose place another file was before.
  const std::vector<std::string>& replacing() const { return replacing_; }

 private:
  std::string path_;
  SentryFormat format_;
  std::string directory_;  // empty: it has to be there
  std::vector<std::string> written_;
  std::vector<std::string> replacing_;
  bool is_stdout_closed_ = false;
};

}  // namespace sentry_prof::cli
