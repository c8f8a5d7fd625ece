// What Go's runtime knows of a program's functions: how far each instruction has moved the stack
// pointer, and whose callers do not lie above them. It is in every Go program, stripped or not.
// Source: Go 1.18 to 1.27, src/runtime/symtab.go (pcHeader, moduledata, functab, pcvalue),
// src/runtime/runtime2.go (_func) and src/internal/abi/symtab.go (FuncFlag).
#pragma once

#include "base/address.h"
#include "base/byte_source.h"
#include "elf/go_places.h"
#include "elf/layout.h"
#include "sentry_prof/result.h"
#include "unwind/row.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::elf {

// Keeps where functions begin (9 bytes each); the rest is read from the file for each look-up. One
// thread at a time may ask.
class GoFunctionTable final : public unwind::CfiSource {
 public:
  // Of an x86-64 image that has one (find_go_places()), of which no more than `max_bytes` are
  // kept. `file` and `layout`, which are the image's, must outlive the table. NotFound: it has
  // none, or of another machine, or it is not found where it is searched. Unsupported: of another
  // version of Go. Malformed, Io, LimitExceeded.
  static Result<std::unique_ptr<GoFunctionTable>> open(const ByteSource& file, const Layout& layout,
                                                       uint64_t max_bytes);

  // Found; NoCfi: no function of Go's covers `pc`, or what the table says of it cannot be read or
  // used; Root: one that nothing calls, or that never goes back to its caller's goroutine;
  // OtherStack: one that changes to another stack. At the call of rt_sigreturn the row is that of
  // signal_return_row().
  unwind::RowStatus row_at(LinkAddress pc, unwind::Row& row) const override;

  // True of Go's code but runtime.morestack: that is called before its caller has a frame, so that
  // this one and the next would be missing.
  bool has_frame_pointers(LinkAddress pc) const override;

  // The name of the function that covers `pc`, with its package, cut behind `max_bytes`; none if no
  // function does, or its name cannot be read.
  std::optional<std::string> name_at(LinkAddress pc, size_t max_bytes) const;

  uint64_t memory_bytes() const { return functions_.size() * kFunction_bytes; }

 private:
  // As the file has them, offsets from the beginning of Go's code and of the records.
  struct Function {
    uint32_t begin = 0;
    uint32_t record = 0;
  };
  // Whether a function keeps a frame pointer.
  enum class Keeps : uint8_t { Unknown, Yes, No };
  static constexpr uint64_t kFunction_bytes = sizeof(Function) + sizeof(Keeps);
  // The function at a pc; begin and end as link addresses.
  struct Place {
    size_t index = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint32_t record = 0;
  };
  struct Record;
  // How far the stack pointer is below its place at the function's entry, from `begin` to `end`.
  struct StackDepth {
    uint64_t begin = 0;
    uint64_t end = 0;
    int64_t bytes = 0;
  };

  GoFunctionTable(const ByteSource& file, const Layout& layout, const Section& section)
      : file_(file), layout_(layout), section_(section) {}

  Result<void> read_header();
  Result<void> read_functions(uint64_t max_bytes);
  Result<void> take_text(const std::optional<GoText>& text);
  Result<void> check_functions() const;
  Keeps read_keeps(const Place& place) const;
  std::optional<Place> find(LinkAddress pc) const;
  std::optional<Record> read_record(const Place& place) const;
  std::optional<std::string> read_name(const Record& record, size_t max_bytes) const;
  bool is_named(const Record& record, std::string_view name) const;
  std::optional<unwind::RowStatus> status_by_flags(const Record& record, unwind::Row& row) const;
  std::optional<StackDepth> stack_depth(const Record& record, const Place& place, uint64_t pc,
                                        uint32_t& work) const;
  bool is_before_frame(const Record& record, const Place& place, const StackDepth& depth,
                       uint32_t& work) const;

  const ByteSource& file_;
  const Layout& layout_;
  Section section_;
  bool has_start_line_ = false;  // in records: Go 1.20
  uint64_t function_count_ = 0;
  uint64_t text_ = 0;  // link address that offsets of functions count from
  // In the section.
  uint64_t names_ = 0, pc_values_ = 0, records_ = 0;
  std::vector<Function> functions_;  // the last one is none, but where they end
  mutable std::vector<Keeps> keeps_;
};

}  // namespace sentry_prof::elf
