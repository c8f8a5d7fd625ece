// The profile model: what one chunk of a recording holds, in no particular file format.
//
// A Profile has one address space of its own (see ARCHITECTURE.md, "One address space a profile"):
// every image has been placed so that no two overlap, and frames of several processes that lie in
// the same file are the same frame.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof {

// 128 bits, in the order in which they are printed.
struct Uuid {
  std::array<uint8_t, 16> bytes{};

  bool operator==(const Uuid&) const = default;
  bool is_nil() const { return *this == Uuid{}; }

  // 32 lower-case hex digits without dashes: event, chunk, profiler, transaction and trace ids.
  std::string to_hex() const;
  // 8-4-4-4-12 lower-case hex digits: debug ids (Debug Meta interface).
  std::string to_hyphenated() const;
};

// A mapped ELF file. Source of the fields: Sentry's Debug Meta interface, image type `elf`.
struct Image {
  std::string code_file;      // path as the target saw it
  std::string code_id;        // whole build id, lower-case hex; empty without a build id
  Uuid debug_id;              // nil if the file could not be identified
  std::string arch;           // "x86_64", "x86", "arm64", ...; empty if unknown
  uint64_t image_addr = 0;    // profile-space address of the first PT_LOAD
  uint64_t image_size = 0;    // bytes from there to the end of the last PT_LOAD
  uint64_t image_vmaddr = 0;  // p_vaddr of the first PT_LOAD, as the file states it
};

struct Frame {
  static constexpr uint32_t kNoImage = UINT32_MAX;

  uint64_t instruction_addr = 0;  // profile-space; raw return address for callers (no minus one)
  std::string function;           // never empty
  uint32_t image = kNoImage;      // index into Profile::images
  bool is_compiled = false;       // no file's: compiled, and named, while the program ran
};

struct Sample {
  uint64_t unix_time_ns = 0;
  uint32_t thread = 0;  // index into Profile::threads
  uint32_t stack = 0;   // index of a stack; an empty stack marks the thread as idle from here on
};

struct Thread {
  uint64_t id = 0;  // unique in the profile; the kernel's tid unless that was reused
  uint32_t pid = 0;
  uint32_t tid = 0;
  std::string name;  // valid UTF-8
};

// What is the same for all chunks of one recording.
struct Session {
  Uuid profiler_id;      // V2: one per recording
  std::string platform;  // "rust" unless told otherwise
  std::string release;
  std::string environment;
  std::string transaction_name;  // V1
  std::string sdk_name;
  std::string sdk_version;
  std::string os_name, os_version, os_build;
  std::string device_architecture;                // "x86_64"
  std::string device_manufacturer, device_model;  // may be empty
};

struct Profile {
  Session session;
  uint64_t start_unix_ns = 0;  // begin of the chunk
  uint64_t end_unix_ns = 0;
  std::vector<Image> images;  // only those that a frame lies in; sorted by image_addr
  std::vector<Frame> frames;
  std::vector<Sample> samples;  // sorted by time
  std::vector<Thread> threads;  // only those that a sample refers to
  uint32_t main_thread = 0;     // index of the thread to show first (V1 active_thread_id)

  // Stacks are flattened: stack i is frame_indices[begin[i] .. begin[i + 1]), leaf first.
  std::vector<uint32_t> stack_frame_indices;
  std::vector<uint32_t> stack_begin = {0};

  uint32_t stack_count() const { return static_cast<uint32_t>(stack_begin.size() - 1); }
  std::span<const uint32_t> stack(uint32_t i) const {
    return std::span(stack_frame_indices)
        .subspan(stack_begin[i], stack_begin[i + 1] - stack_begin[i]);
  }
};

}  // namespace sentry_prof
