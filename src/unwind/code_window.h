// Code that is read on in pieces.
#pragma once

#include "base/byte_reader.h"
#include "unwind/code_source.h"
#include "unwind/x86_encoding.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sentry_prof::unwind {

// `work` grows by what each reading costs. Refers to both that it is given.
class CodeWindow {
 public:
  CodeWindow(const CodeSource& source, uint32_t& work) : source_(source), work_(work) {}

  // The code from `pc` on, as much of it as an instruction may have; less at its end.
  Bytes at(LinkAddress pc) {
    if (pc < begin_ || pc.value - begin_.value + kLongestX86Instruction_bytes > size_bytes_) {
      load(pc);
    }
    const uint64_t inside = pc.value - begin_.value;
    const Bytes loaded = std::as_bytes(std::span(piece_)).first(size_bytes_);
    return inside >= loaded.size() ? Bytes() : loaded.subspan(static_cast<size_t>(inside));
  }

 private:
  // A whole piece once the way is long, a small one first and near the end of the code; at its end
  // what an instruction may have.
  void load(LinkAddress pc) {
    const bool is_long_way = size_bytes_ > 0;
    begin_ = pc;
    if (is_long_way && read(piece_.size())) return;
    if (read(kSmallPiece_bytes)) return;
    for (size_t count = kLongestX86Instruction_bytes; count > 0; --count) {
      if (read(count)) return;
    }
  }

  bool read(size_t count) {
    work_ += kReadCodeWork;
    const bool is_read =
        source_.read_code(begin_, std::as_writable_bytes(std::span(piece_)).first(count));
    size_bytes_ = is_read ? count : 0;
    return is_read;
  }

  static constexpr size_t kSmallPiece_bytes = 256;

  const CodeSource& source_;
  uint32_t& work_;
  LinkAddress begin_;
  size_t size_bytes_ = 0;
  std::array<uint8_t, 4096> piece_;  // the first size_bytes_ of it are
};

}  // namespace sentry_prof::unwind
