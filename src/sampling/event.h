// What a sampler tells: one value per kernel record, in time order.
// Sources: perf_event_open(2), include/uapi/linux/perf_event.h.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"
#include "base/stack_piece.h"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

namespace sentry_prof::sampling {

// Spans and string_views point into the ring; they are valid until the sink returns.

// Registers in the kernel's PERF_REG_X86_* / PERF_REG_ARM64_* order, only those asked for.
struct UserRegisters {
  bool is_present = false;  // false: PERF_SAMPLE_REGS_ABI_NONE (kernel thread, or exiting)
  bool is_32_bit = false;   // PERF_SAMPLE_REGS_ABI_32
  Bytes words;              // 8 bytes each, in the order of the bits of the asked mask
};

struct SampleEvent {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t cpu = 0;
  UserRegisters registers;  // the user's, also if a system call or fault was interrupted
  // What the kernel found by the user's frame pointers when it took the sample, on whatever stacks:
  // the pc and return addresses outward, 8 bytes each. Nothing says which code keeps them.
  Bytes frame_pointer_chain;
  Bytes stack;  // dyn_size bytes from the stack pointer upward; may be empty
  // The copy has all of the size that was reserved: the stack may be larger. Else its memory ends,
  // or has a page there that is not present, which the kernel does not fault in.
  bool stack_is_cut = false;
  // What was copied at the same moment of a larger stack, by rising address, perhaps with gaps. No
  // part of the record.
  std::span<const StackPiece> outer_stack;
};

// A new mapping, executable unless told otherwise.
struct MapEvent {
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool is_data = false;  // not executable: told only where mmap_data was asked for
  RuntimeAddress begin;
  uint64_t size_bytes = 0;
  uint64_t file_offset = 0;
  std::array<std::byte, 20> build_id{};
  uint8_t build_id_size_bytes = 0;  // 0: the kernel gave none, then device and inode hold
  uint32_t device_major = 0, device_minor = 0;
  uint64_t inode = 0;
  std::string_view path;  // "[vdso]", "//anon", "/usr/lib/..."
};

struct CommEvent {
  uint32_t pid = 0, tid = 0;
  bool is_exec = false;
  std::string_view name;
};

// A new process (pid != parent_pid) or thread.
struct ForkEvent {
  uint32_t pid = 0, tid = 0, parent_pid = 0, parent_tid = 0;
  // Written by a tool for a process that was there before: it is no copy of what its parent is now.
  bool is_synthesized = false;
};

struct ExitEvent {
  uint32_t pid = 0, tid = 0;
};

struct SwitchEvent {
  uint32_t pid = 0, tid = 0;
  bool is_out = false;
};

// Samples or records that the kernel could not put into the ring.
struct LostEvent {
  uint64_t count = 0;
};

struct ThrottleEvent {
  bool begins = false;
};

// A record that could not be decoded (cut off, impossible sizes).
struct UndecodableEvent {
  uint32_t type = 0;
};

struct Event {
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC; 0 only if Undecodable
  std::variant<SampleEvent, MapEvent, CommEvent, ForkEvent, ExitEvent, SwitchEvent, LostEvent,
               ThrottleEvent, UndecodableEvent>
      body;
};

class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace sentry_prof::sampling
