// A row of the unwind table boiled down to eight bytes: what the fast walk needs of it.
#pragma once

#include "unwind/registers.h"
#include "unwind/row.h"

#include <cstdint>

namespace sentry_prof::unwind {

enum class CompactKind : uint8_t {
  CfaFromSp,         // CFA = stack pointer + cfa_words * 8
  CfaFromFp,         // CFA = frame pointer + cfa_words * 8
  CfaFarFromSp,      // CFA = stack pointer + far_cfa_bytes(); the return address is at CFA - 8
  CodeFromSp,        // as CfaFromSp, but read out of the code (rule_from_code): no more than likely
  CodeFromFp,        // as CfaFromFp, likewise
  CodeFromRegister,  // likewise, CFA = base_register() + cfa_words * 8; return address at CFA - 8
  CodeFromWordAtSp,  // likewise, CFA = the word at stack pointer + word_bytes() + cfa_words * 8
  CodeFromWordAtFp,  // likewise, at frame pointer + word_bytes(); return address at CFA - 8
  LinkFromSp,        // CFA as in CfaFromSp; the return address is still in the link register
  Root,   // the return address is undefined, or the source says so: nothing called this frame
  Full,   // does not fit: ask the source for the row again and evaluate all of it
  NoCfi,  // the rest are answers without a row, remembered just the same
  RootBehindNoCall,  // no row. The next byte begins a function, or code that never returns: the
                     // root, if what stands before it is no call
  OtherStack,
  Malformed,
  Unsupported,
};

enum class CompactFp : uint8_t {
  Same,         // the caller's frame pointer is still in its register
  Saved,        // it is at CFA + fp_words * 8
  SavedFromSp,  // of CodeFromRegister and CodeFromWord...: at the stack pointer + fp_words * 8
  SavedFromFp,  // likewise, at the frame pointer
  Unknown,      // it cannot be recovered
};

// Whether a row gave it that says where the CFA is. (Root and Unsupported may be of rows, too.)
constexpr bool has_cfa_of_row(CompactKind kind) {
  return kind == CompactKind::CfaFromSp || kind == CompactKind::CfaFromFp ||
         kind == CompactKind::CfaFarFromSp || kind == CompactKind::LinkFromSp ||
         kind == CompactKind::Full;
}

// Offsets are counted in words of 8 bytes, which every compiler's rows are multiples of; 16 bits of
// them reach 256 KiB either way. Frames that hold large arrays are larger; without a frame pointer
// their CFA takes the room of the return address's place as well; CodeFromRegister has its register
// there, and what stands on a word of the stack has that word's place.
struct CompactRule {
  CompactKind kind = CompactKind::NoCfi;
  CompactFp fp = CompactFp::Same;
  int16_t cfa_words = 0;
  int16_t fp_words = 0;
  int16_t return_address_words = 0;  // the return address is at CFA + this * 8

  uint64_t far_cfa_bytes() const {
    return (uint64_t{static_cast<uint16_t>(return_address_words)} << 16 |
            static_cast<uint16_t>(cfa_words)) *
           8;
  }

  // DWARF's number: one of kX86FollowedRegisters.
  unsigned base_register() const { return static_cast<unsigned>(return_address_words); }

  uint64_t word_bytes() const { return static_cast<uint64_t>(int64_t{return_address_words} * 8); }

  bool operator==(const CompactRule&) const = default;
};
static_assert(sizeof(CompactRule) == 8);

// Never loses anything: what cannot be said in a compact rule gives Full. Signal frames do, unless
// their return address is undefined: Root.
CompactRule compact_rule_of(const Row& row, ArchRegisters arch);

// The rule of an address for which the source gave no row. `status` is not Found.
CompactRule compact_rule_of(RowStatus status);

}  // namespace sentry_prof::unwind
