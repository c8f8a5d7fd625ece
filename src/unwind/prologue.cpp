#include "unwind/prologue.h"

#include "unwind/rule_from_code.h"

#include <algorithm>
#include <array>
#include <optional>

namespace sentry_prof::unwind {
namespace {

// What a function does to the stack at its beginning. The return address lies at the end of its
// frame, the caller's frame pointer below that.
struct Beginning {
  uint64_t push_end = 0;   // behind `push %rbp`; 0: it is stored at the end
  uint64_t frame_end = 0;  // behind `sub $N,%rsp`
  uint64_t size_bytes = 0;
  int16_t cfa_words = 0;  // 0: more than a rule holds
  bool keeps_frame_pointer = false;
};

// The longest: bang, push, mov, sub with a number of four bytes.
constexpr size_t kLongestBeginning_bytes = 18;
constexpr size_t kBang_bytes = 7;
// From where a function is entered to its beginning: a compare with the class, a jump, padding.
constexpr size_t kEntry_bytes = 48;

constexpr uint8_t kMovFromReg = 0x89, kMovToReg = 0x8b, kPushRbp = 0x55, kRexW = 0x48,
                  kJumpOpcode = 0xe9;
constexpr uint8_t kSubNumber = 0x81, kSubByte = 0x83, kModRmSubRsp = 0xec;

// Functions that are not to be entered any more, but from which threads have not returned, begin
// with a jump of five bytes over what was there (NativeJump::patch_verified_entry).
bool is_patched(Bytes code) { return !code.empty() && code[0] == std::byte{kJumpOpcode}; }

// -XX:StackShadowPages is 20, some releases had up to 32.
constexpr int32_t kMaxBang_bytes = 1 << 20;

// mov %eax,-N(%rsp), N in whole pages: touches the stack's guard pages ahead of time. Or what a
// patch has left of it.
bool is_bang(Bytes code) {
  ByteReader reader(code);
  const uint8_t opcode = reader.u8();
  const uint16_t operands = reader.u16();
  const int32_t offset = reader.i32();
  const bool is_whole = opcode == kMovFromReg && operands == 0x2484 && offset % 4096 == 0;
  const bool is_far_below = offset < 0 && offset >= -kMaxBang_bytes;
  return reader.ok() && is_far_below && (is_whole || is_patched(code));
}

// mov %rsp,%rbp, as gcc and HotSpot encode it.
bool is_frame_pointer_set(Bytes code) {
  ByteReader reader(code);
  const bool has_rex = reader.u8() == kRexW;
  const uint8_t opcode = reader.u8();
  const uint8_t operands = reader.u8();
  return has_rex &&
         ((opcode == kMovToReg && operands == 0xec) || (opcode == kMovFromReg && operands == 0xe5));
}
constexpr size_t kSetFramePointer_bytes = 3;

constexpr int32_t kMaxFrame_bytes = 1 << 17;  // well below what a CompactRule holds

struct Subtraction {
  int32_t count = 0;        // of bytes; 0: no frame has so many
  uint64_t size_bytes = 0;  // of the instruction
};

// sub $N,%rsp; none if it is something else.
std::optional<Subtraction> subtraction_at(Bytes code) {
  ByteReader reader(code);
  const bool has_rex = reader.u8() == kRexW;
  const uint8_t opcode = reader.u8();
  const bool is_subtraction =
      has_rex && (opcode == kSubByte || opcode == kSubNumber) && reader.u8() == kModRmSubRsp;
  if (!is_subtraction) return std::nullopt;
  const int32_t count = opcode == kSubByte ? reader.i8() : reader.i32();
  const bool is_size = reader.ok() && count > 0 && count % 8 == 0 && count <= kMaxFrame_bytes;
  return Subtraction{is_size ? count : 0, reader.position()};
}

// bang; push %rbp; perhaps mov %rsp,%rbp; sub $N,%rsp, if the frame has more than that. C1, and C2
// where the function calls.
std::optional<Beginning> banging_beginning(Bytes code) {
  if (code.size() <= kBang_bytes || code[kBang_bytes] != std::byte{kPushRbp}) return std::nullopt;
  if (!is_bang(code)) return std::nullopt;
  ByteReader reader(code);
  reader.skip(kBang_bytes + 1);
  const uint64_t push_end = reader.position();
  const bool keeps_frame_pointer = is_frame_pointer_set(code.subspan(push_end));
  if (keeps_frame_pointer) reader.skip(kSetFramePointer_bytes);
  const auto made_room = subtraction_at(code.subspan(reader.position()));
  const Subtraction room = made_room.value_or(Subtraction());
  const uint64_t end = reader.position() + room.size_bytes;
  const bool is_known = !made_room || room.count != 0;
  const auto cfa_words = static_cast<int16_t>(is_known ? room.count / 8 + 2 : 0);
  return Beginning{push_end, end, end, cfa_words, keeps_frame_pointer};
}

// mov %rbp,N(%rsp): N; none if it is something else.
std::optional<int32_t> offset_of_stored_fp(ByteReader& reader) {
  if (reader.u8() != kRexW || reader.u8() != kMovFromReg) return std::nullopt;
  const uint8_t operands = reader.u8();
  if (reader.u8() != 0x24) return std::nullopt;
  if (operands == 0x2c) return 0;
  if (operands == 0x6c) return reader.i8();
  if (operands == 0xac) return reader.i32();
  return std::nullopt;
}

// sub $N,%rsp, in seven bytes; mov %rbp,N-8(%rsp). C2 where the function does not call.
std::optional<Beginning> storing_beginning(Bytes code) {
  constexpr uint64_t kLongSub_bytes = 7, kPatch_bytes = 5;
  ByteReader reader(code);
  std::optional<int32_t> count;
  if (is_patched(code)) {
    reader.skip(kPatch_bytes);
    if (reader.u16() != 0) return std::nullopt;  // the upper half of N
  } else {
    const auto made_room = subtraction_at(code);
    if (!made_room || made_room->count == 0 || made_room->size_bytes != kLongSub_bytes) {
      return std::nullopt;
    }
    count = made_room->count;
    reader.skip(kLongSub_bytes);
  }
  const std::optional<int32_t> offset = offset_of_stored_fp(reader);
  if (!offset || !reader.ok() || *offset < 0 || *offset % 8 != 0) return std::nullopt;
  if ((count && *offset != *count - 8) || *offset > kMaxFrame_bytes) return std::nullopt;
  return Beginning{0, kLongSub_bytes, reader.position(), static_cast<int16_t>(*offset / 8 + 2)};
}

std::optional<Beginning> beginning_at(Bytes code) {
  if (code.empty()) return std::nullopt;
  switch (static_cast<uint8_t>(code[0])) {
    case kMovFromReg:
      return banging_beginning(code);
    case kRexW:
      return storing_beginning(code);
    case kJumpOpcode: {
      const auto beginning = banging_beginning(code);
      return beginning ? beginning : storing_beginning(code);
    }
    default:
      return std::nullopt;
  }
}

CompactRule rule_of_frame(int16_t cfa_words, bool has_saved_fp) {
  return {.kind = CompactKind::CodeFromSp,
          .fp = has_saved_fp ? CompactFp::Saved : CompactFp::Same,
          .cfa_words = cfa_words,
          .fp_words = static_cast<int16_t>(has_saved_fp ? -2 : 0),
          .return_address_words = -1};
}

// `offset` bytes behind its first byte, or ahead of it.
CompactRule rule_inside(const Beginning& beginning, int64_t offset) {
  const auto is_behind = [offset](uint64_t place) { return offset >= static_cast<int64_t>(place); };
  if (beginning.push_end > 0) {
    return is_behind(beginning.push_end) ? rule_of_frame(2, true) : rule_of_frame(1, false);
  }
  return rule_of_frame(is_behind(beginning.frame_end) ? beginning.cfa_words : int16_t{1}, false);
}

class BeginningSearch {
 public:
  BeginningSearch(const CodeSource& code, LinkAddress pc, uint32_t& work)
      : code_(code), pc_(pc), work_(work) {}

  // Where the pc is ahead of a function's beginning, or in it: an Edge. NoneNear elsewhere.
  Prologue at_entry() {
    constexpr size_t kBehind = kLongestBeginning_bytes;
    constexpr size_t kAhead = kEntry_bytes + kLongestBeginning_bytes;
    std::array<std::byte, kBehind + kAhead> bytes;
    if (pc_.value < kBehind || !read(pc_.value - kBehind, bytes)) return {};
    for (size_t i = 0; i < kBehind + kEntry_bytes; ++i) {
      const auto beginning = beginning_at(std::span(bytes).subspan(i));
      const int64_t offset = static_cast<int64_t>(kBehind) - static_cast<int64_t>(i);
      if (beginning && offset < static_cast<int64_t>(beginning->size_bytes)) {
        const bool is_fp_set =
            offset >= static_cast<int64_t>(beginning->push_end + kSetFramePointer_bytes);
        return {.kind = Kind::Edge,
                .keeps_frame_pointer = beginning->keeps_frame_pointer && is_fp_set,
                .rule = rule_inside(*beginning, offset),
                .begin = {pc_.value - kBehind + i}};
      }
    }
    return {.kind = Kind::NoneNear};
  }

  // Of the function that began last, at `lowest` or above.
  Prologue before(uint64_t lowest) {
    size_t most = kPiece_bytes;
    for (uint64_t end = pc_.value; end > lowest;) {
      const auto count = static_cast<size_t>(std::min<uint64_t>(most, end - lowest));
      // A bang may stand before; the last beginning may reach into what was looked at.
      const uint64_t begin = end - count - std::min<uint64_t>(kBang_bytes, end - count - lowest);
      const uint64_t size = std::min(end + kLongestBeginning_bytes, pc_.value) - begin;
      std::array<std::byte, kBang_bytes + kPiece_bytes + kLongestBeginning_bytes> bytes;
      const auto piece = std::span(bytes).first(static_cast<size_t>(size));
      if (read(begin, piece)) {
        const auto first = static_cast<size_t>(end - count - begin);
        if (auto last = last_beginning(piece, first, count)) {
          last->begin.value += begin;
          return *last;
        }
        end -= count;
      } else {
        if (most == kLeastPiece_bytes) return {};
        most = kLeastPiece_bytes;
      }
    }
    return {.kind = Kind::NoneNear};
  }

 private:
  using Kind = Prologue::Kind;
  static constexpr size_t kPiece_bytes = 1024, kLeastPiece_bytes = 64;

  // Of those in `count` bytes from `first` on. It begins at an offset in the piece.
  static std::optional<Prologue> last_beginning(Bytes piece, size_t first, size_t count) {
    for (size_t i = first + count; i-- > first;) {
      if (keeps_frame_pointer_at(piece, i)) {
        return Prologue{.kind = Kind::FramePointerKept, .begin = {i}};
      }
      if (const auto beginning = beginning_at(piece.subspan(i))) {
        if (beginning->cfa_words == 0) return Prologue{.kind = Kind::NoneNear};
        return Prologue{.kind = Kind::Frame,
                        .keeps_frame_pointer = beginning->keeps_frame_pointer,
                        .rule = rule_of_frame(beginning->cfa_words, true),
                        .begin = {i}};
      }
    }
    return std::nullopt;
  }

  // push %rbp; mov %rsp,%rbp, as others begin; not HotSpot's with -XX:+PreserveFramePointer.
  static bool keeps_frame_pointer_at(Bytes piece, size_t i) {
    const bool is_set =
        piece[i] == std::byte{kPushRbp} && is_frame_pointer_set(piece.subspan(i + 1));
    return is_set && (i < kBang_bytes || !is_bang(piece.subspan(i - kBang_bytes)));
  }

  bool read(uint64_t begin, std::span<std::byte> out) {
    constexpr uint32_t kBytesAWork = 16;
    work_ += kReadCodeWork + static_cast<uint32_t>(out.size()) / kBytesAWork;
    return code_.read_code({begin}, out);
  }

  const CodeSource& code_;
  const LinkAddress pc_;
  uint32_t& work_;
};

}  // namespace

Prologue find_prologue(const CodeSource& code, LinkAddress code_begin, LinkAddress pc,
                       bool pc_is_exact, uint32_t& work) {
  using Kind = Prologue::Kind;
  BeginningSearch search(code, pc, work);
  if (pc_is_exact) {
    const Prologue entry = search.at_entry();
    if (entry.kind != Kind::NoneNear) return entry;
  }
  const uint64_t reached = pc.value - std::min(pc.value, kPrologueReach_bytes);
  const Prologue before = search.before(std::max(code_begin.value, reached));
  // Only where the frame is being taken down is the return so near that it can be left already. No
  // call is made there.
  if (!pc_is_exact || before.kind != Kind::Frame) return before;
  const CompactRule at_end = rule_from_near_return(code, pc, work);
  if (at_end.kind != CompactKind::CodeFromSp) return before;
  return {.kind = Kind::Edge,
          .keeps_frame_pointer = before.keeps_frame_pointer,
          .rule = at_end,
          .begin = before.begin};
}

}  // namespace sentry_prof::unwind
