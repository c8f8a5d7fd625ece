// What the judges of samples, stacks, threads and images need to know of a profile: gathered while
// its text is read once, typed field by typed field (profile_scan.h). Grows with the text, by less
// than its size.
#pragma once

#include "sentry_prof/profile.h"
#include "sentry_prof/validate.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

struct SampleFact {
  uint64_t elapsed_ns = 0;  // V1
  double timestamp_s = 0;   // V2, Unix time
  uint32_t thread = 0;      // index into ProfileFacts::threads
  uint32_t stack = 0;       // as written; UINT32_MAX stands for all that is larger
};

// A thread that samples name, or thread_metadata, or both.
struct ThreadFact {
  std::string_view id;  // as the server keeps it: V1 ids without leading '+' and zeros
  bool has_samples = false;
  bool has_metadata = false;
  size_t metadata_offset = 0;  // of its value in thread_metadata
};

// Four bytes: a stack may be as short as "[],".
struct StackFact {
  static constexpr uint32_t kLargestIndex = (1U << 30) - 1;  // stands for all that is larger

  uint32_t largest_frame : 30 = 0;
  bool is_empty : 1 = true;
  bool has_missing_frame : 1 = false;  // set once all frames have been counted
};

struct FrameFact {
  uint64_t instruction_addr = 0;
  bool has_address = false, has_function = false, has_filename = false, has_line = false;
};

struct ImageFact {
  size_t offset = 0;  // of the object
  std::string_view type;
  std::optional<uint64_t> image_addr;
  uint64_t image_size = 0;
  std::optional<Uuid> debug_id;
};

struct ProfileFacts {
  ValidatedKind kind = ValidatedKind::Unknown;
  // The text could be read as far as its end.
  bool is_whole = false;
  // The list is there, it and its elements have their types. If not, its vector below is empty or
  // has gaps.
  bool samples_are_typed = false, stacks_are_typed = false, frames_are_typed = false;
  std::string_view platform;
  std::string_view architecture;  // V1: device.architecture
  std::string_view event_id, transaction_id, trace_id,
      transaction_name;  // V1, as written; for the rules between items
  uint64_t relative_start_ns = 0, relative_end_ns = 0;  // V1: transaction
  std::optional<std::string_view> active_thread_id;     // V1
  bool has_debug_meta = false;
  bool is_android_format = false;  // the server's older one for Android, with fields of its own

  std::vector<SampleFact> samples;
  std::vector<ThreadFact> threads;
  std::vector<StackFact> stacks;
  // Of a text whose frames are shorter than any that tell something, those at the end are left out
  // here, to bound memory; frame_count has them all.
  std::vector<FrameFact> frames;
  size_t frame_count = 0;
  // The same of images: see image_count.
  std::vector<ImageFact> images;
  size_t image_count = 0;

  // Of the arrays' opening brackets in the text: what is wrong with an element is told with its
  // offset, which is found by reading that array once more.
  size_t samples_offset = 0, stacks_offset = 0, frames_offset = 0;

  // What is written with escapes, resolved: blocks that do not grow, since views above point into
  // them.
  std::deque<std::string> resolved;
};

}  // namespace sentry_prof::sentry
