// Machine code, where a walk has to look at an instruction: of an image, or in memory only.
#pragma once

#include "base/address.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sentry_prof::unwind {

// What a reading counts of a walk's work: it takes about as long as a CFI program of so many bytes.
inline constexpr uint32_t kReadCodeWork = 64;

// False if that was the last of the work.
[[nodiscard]] inline bool spend(uint32_t work, uint32_t& work_left) {
  work_left -= std::min(work, work_left);
  return work_left > 0;
}

class CodeSource {
 public:
  virtual ~CodeSource() = default;
  // Fills `out` with the code from `begin` on; without an image that is a runtime address. False if
  // any byte of it is no code, or cannot be read. May read a file: who asks remembers the answer.
  [[nodiscard]] virtual bool read_code(LinkAddress begin, std::span<std::byte> out) const = 0;
  // How many readings failed because nobody answered in time: another time they may not. What is
  // made of their absence is not to be remembered.
  virtual uint32_t unanswered_reads() const { return 0; }
  // Of code without an image: what is known of an address in one space says nothing of the others.
  // Below 2^22, as pids are.
  virtual uint64_t address_space() const { return 0; }
  // Where the program begins (ELF e_entry); zero: it is no program, or that is not known.
  virtual LinkAddress entry_point() const { return {}; }
};

}  // namespace sentry_prof::unwind
