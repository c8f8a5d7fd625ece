// A V1 or V2 document as the server's types hold it.
#pragma once

#include "support/sentry_checker.h"
#include "support/sentry_json_reader.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::testing {

struct CheckedSample {
  double unix_seconds = 0;  // V2
  uint64_t elapsed_ns = 0;  // V1
  std::string thread_id;    // V1: the number in decimal
  uint64_t stack_id = 0;
};

struct CheckedFrame {
  std::string_view function, package;
  std::optional<uint64_t> address;
  std::string_view address_text;
};

struct CheckedImage {
  std::string_view type, code_file, code_id, debug_id, arch;
  std::optional<uint64_t> addr, vmaddr;
  uint64_t size = 0;
};

struct CheckedThread {
  std::string_view id, name;
  bool has_priority = false;
};

struct CheckedTransaction {
  std::string_view id, trace_id, name;
  std::optional<uint64_t> active_thread_id;
  uint64_t relative_start_ns = 0, relative_end_ns = 0;
};

struct Document {
  bool version_is_right = false;
  std::string_view platform;
  std::string_view event_id, chunk_id, profiler_id;
  std::string_view release, environment, timestamp, sdk_name, sdk_version;
  bool has_debug_meta = false, has_thread_metadata = false;
  bool has_all_cocoa_fields = false;
  std::optional<CheckedTransaction> transaction;
  std::vector<CheckedSample> samples;
  std::vector<std::vector<uint64_t>> stacks;
  std::vector<CheckedFrame> frames;
  std::vector<CheckedImage> images;
  std::vector<CheckedThread> threads;

  // A sample whose stack exists and is not empty.
  bool is_active(const CheckedSample& s) const {
    return s.stack_id < stacks.size() && !stacks[s.stack_id].empty();
  }
};

// Texts point into `root`. What the server's parser refuses is in `problems`.
Document read_document(dom::object root, ProfileKind kind, ImageTypes image_types,
                       Problems& problems);

// What the server makes of a document that it could parse: the reason for refusing it, or empty.
// Tables 1b and 1c of its rules, in its order.
std::string refusal_of(const Document& document, ProfileKind kind, Problems& problems);

// What sentry-prof promises beyond that (rules P1 to P7).
void check_promises(const Document& document, ProfileKind kind, Problems& problems);

}  // namespace sentry_prof::testing
