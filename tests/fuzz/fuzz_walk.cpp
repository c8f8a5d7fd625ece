// Walks over rows, expressions, registers and stacks that the fuzzer makes up. Nothing may crash,
// read outside the stack or run on; and what comes out keeps the promises of walk.h.
#include "base/byte_reader.h"
#include "fuzz/require.h"
#include "unwind/walk.h"

#include <algorithm>
#include <vector>

using namespace sentry_prof;
using fuzz::require;
using namespace sentry_prof::unwind;

namespace {

// As at a function's entry: 8 above a multiple of 16.
constexpr uint64_t kStackBegin = 0x7ffc00001008;
constexpr uint64_t kTextBegin = 0x400000;
constexpr size_t kMaxRows = 8;

// Every sixteenth byte of the text has a row; address / 16 picks which.
class FuzzedCfi final : public CfiSource {
 public:
  explicit FuzzedCfi(ByteReader& input) {
    const size_t count = 1 + input.u8() % kMaxRows;
    for (size_t i = 0; i < count; ++i) add(input);
  }

  RowStatus row_at(LinkAddress pc, Row& row) const override {
    const Answer& answer = answers_[(pc.value / 16) % answers_.size()];
    if (answer.status == RowStatus::Found) row = answer.row;
    return answer.status;
  }
  bool has_frame_pointers(LinkAddress pc) const override { return (pc.value / 16) % 8 != 0; }

 private:
  struct Answer {
    RowStatus status = RowStatus::NoCfi;
    Row row;
  };

  void add(ByteReader& input) {
    Answer& answer = answers_.emplace_back();
    // Mostly rows: the other answers are short.
    const uint8_t choice = input.u8();
    answer.status = choice < 240 ? RowStatus::Found : static_cast<RowStatus>(choice % 6);
    Row& row = answer.row;
    row.cfa_kind = static_cast<CfaKind>(input.u8() % 3);
    row.cfa_register = input.u8() % (kRegisterCount + 2);
    row.cfa_offset = offset(input);
    row.cfa_expression = expression(input);
    row.return_address_register = input.u8() % (kRegisterCount + 1);
    row.function_begin = {kTextBegin + static_cast<uint64_t>(row.cfa_offset) % 0x8000};
    row.is_signal_frame = input.u8() % 4 == 0;
    for (uint8_t rules = input.u8() % 8; rules > 0; --rules) {
      row.rules[input.u8() % kRegisterCount] = rule(input);
    }
  }

  static RegisterRule rule(ByteReader& input) {
    RegisterRule result;
    result.kind = static_cast<RuleKind>(input.u8() % 8);
    result.source_register = input.u8();
    result.offset = offset(input);
    result.expression = expression(input);
    return result;
  }

  // Small multiples of eight are what gets anywhere; the rest is for the checks.
  static int64_t offset(ByteReader& input) {
    const uint8_t choice = input.u8();
    return choice == 0 ? input.i64() : int64_t{static_cast<int8_t>(choice)} * 8;
  }

  static Bytes expression(ByteReader& input) {
    const uint8_t size = input.u8();
    return input.bytes(size % 32);
  }

  std::vector<Answer> answers_;
};

// A few instructions, again and again.
class FuzzedCode final : public CodeSource {
 public:
  explicit FuzzedCode(Bytes bytes) : bytes_(bytes) {}
  bool read_code(LinkAddress begin, std::span<std::byte> out) const override {
    if (bytes_.empty()) return false;
    for (std::byte& byte : out) byte = bytes_[begin.value++ % bytes_.size()];
    return true;
  }
  LinkAddress entry_point() const override { return {kTextBegin}; }

 private:
  Bytes bytes_;
};

// Registers and stack words that point at the stack or into the text more often than chance would.
uint64_t word(ByteReader& input) {
  const uint8_t choice = input.u8();
  if (choice < 100) return kStackBegin + uint64_t{input.u8()} * 8;
  if (choice < 200) return kTextBegin + input.u16();
  return input.u64();
}

void check(const Walk& walk, const ModuleMap& modules) {
  require(static_cast<size_t>(walk.end) < kWalkEndCount);
  require(walk.frames.size() <= kMaxFrames);
  for (const WalkedFrame& frame : walk.frames) {
    require((&frame == walk.frames.data()) == (frame.origin == FrameOrigin::Leaf));
    const uint64_t lookup_pc = frame.pc_is_exact ? frame.pc : frame.pc - 1;
    require(modules.find({lookup_pc}) != nullptr);  // biases are zero here
  }
}

bool are_equal(const std::vector<WalkedFrame>& a, std::span<const WalkedFrame> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].pc != b[i].pc || a[i].image != b[i].image || a[i].origin != b[i].origin) return false;
  }
  return true;
}

struct OwnWalk {
  explicit OwnWalk(const Walk& walk)
      : frames(walk.frames.begin(), walk.frames.end()), end(walk.end) {}
  bool operator==(const Walk& walk) const {
    return end == walk.end && are_equal(frames, walk.frames);
  }

  std::vector<WalkedFrame> frames;
  WalkEnd end;
};

// Nor does what a thread's last walk saw, whatever has become of the stack since.
void check_with_memory(Unwinder& unwinder, const Registers& registers, const ModuleMap& modules,
                       std::vector<uint64_t> words, uint64_t changed_word) {
  WalkMemory memory;
  const auto walk = [&](WalkMemory* with) {
    const Bytes bytes = std::as_bytes(std::span(words));
    return unwinder.walk(registers, StackSnapshot({kStackBegin}, bytes), modules, with);
  };
  require(OwnWalk(walk(nullptr)) == walk(&memory));
  require(OwnWalk(walk(nullptr)) == walk(&memory));
  if (words.empty()) return;
  words[changed_word % words.size()] ^= changed_word >> 32;
  require(OwnWalk(walk(nullptr)) == walk(&memory));
}

// A stack whose outer part was read later, and one that is joined with what a whole one was.
void check_live(Unwinder& unwinder, const Registers& registers, const ModuleMap& modules,
                Bytes whole, size_t copied_words) {
  const std::vector<std::byte> copy(whole.begin(), whole.begin() + 8 * copied_words);
  const std::vector<std::byte> rest(whole.begin() + copy.size(), whole.end());
  const StackPiece piece{{kStackBegin + copy.size()}, rest};
  WalkMemory memory;
  const Walk cut = unwinder.walk(registers, {{kStackBegin}, copy}, modules, &memory);
  const size_t copied_frames = cut.frames_walked();
  const Walk live =
      unwinder.walk_live(registers, {{kStackBegin}, copy, StackSnapshot::Behind::More, {&piece, 1}},
                         modules, memory, copied_frames);
  check(live, modules);
  if (live.is_complete()) {
    unwinder.ends_as(memory, live.frames_walked() - std::min(live.frames_walked(), copied_frames));
    unwinder.learn(memory, modules);
  }
  check(unwinder.join(registers, {{kStackBegin}, copy}, modules, memory), modules);
}

// The words are the kernel's chain of frame pointers as well.
void check_chain(Unwinder& unwinder, const Registers& registers, const StackSnapshot& stack,
                 const ModuleMap& modules, const std::vector<uint64_t>& words) {
  const Walk walk = unwinder.walk(registers, stack, modules);
  const size_t walked = walk.frames.size();
  std::vector<uint64_t> chain = {walked > 0 ? walk.frames.front().pc : 0};
  chain.insert(chain.end(), words.begin(), words.end());
  const Walk followed = unwinder.follow(walk, chain, modules);
  check(followed, modules);
  require(followed.frames.size() >= walked);
  require(followed.frames.size() == walked || followed.is_complete());
}

// The words are also the stack that code left: any of them may be what was called from there.
void check_left_stack(Unwinder& unwinder, const Registers& registers, const StackSnapshot& stack,
                      const ModuleMap& modules, const std::vector<uint64_t>& words) {
  const Walk walk = unwinder.walk(registers, stack, modules);
  const auto found = left_stack_of(walk.frames, walk.left_frame_pointer, modules);
  require(!found || walk.end == WalkEnd::OtherStack);
  const uint64_t callee = words.empty() ? 0 : words[registers.get(3) % words.size()];
  const LeftStack made{
      1, kTextBegin + registers.get(2) % 0x8000, kStackBegin + kLeftFrameReach_bytes, {callee}};
  const Walk left = unwinder.walk_left_stack(found.value_or(made), stack, modules).walk;
  require(left.frames.empty() || left.is_complete());
  for (const WalkedFrame& frame : left.frames) require(frame.is_live);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader input(std::as_bytes(std::span(data, size)));
  const Arch arch = input.u8() % 4 == 0 ? Arch::Aarch64 : Arch::X86_64;
  const FuzzedCfi cfi(input);

  ModuleMap modules;
  // The end of the input is code as well as stack: older inputs mean what they meant.
  const Bytes whole = std::as_bytes(std::span(data, size));
  const FuzzedCode code(whole.last(std::min<size_t>(size, 16)));
  modules.insert({{kTextBegin}, {kTextBegin + 0x8000}, {}, 1, &cfi, &code});
  modules.insert({{kTextBegin + 0x9000}, {kTextBegin + 0xa000}, {}, 2, nullptr, &code});
  modules.insert({{kTextBegin + 0xb000}, {kTextBegin + 0xc000}, {}, kNoImage, &cfi});
  modules.insert({{kTextBegin + 0xd000}, {kTextBegin + 0xe000}, {}, kNoImage, nullptr});

  Registers registers;
  for (unsigned reg = 0; reg < kRegisterCount; ++reg) {
    if (input.u8() % 4 != 0) registers.set(reg, word(input));
  }
  if (input.u8() % 8 != 0) registers.set(arch_registers(arch).stack_pointer, kStackBegin);

  std::vector<uint64_t> words;
  while (input.remaining() > 0 && input.ok() && words.size() < 512) words.push_back(word(input));
  Bytes bytes = std::as_bytes(std::span(words));
  // An exact allocation, so that the sanitizer sees a read one byte too far.
  const std::vector<std::byte> copy(bytes.begin(), bytes.end());

  Unwinder small_cache(Arch::X86_64, 0, &code);
  Unwinder unwinder(arch, 4096, &code);
  const StackSnapshot stack({kStackBegin}, copy);
  const Walk cold = unwinder.walk(registers, stack, modules);
  check(cold, modules);
  const std::vector<WalkedFrame> frames(cold.frames.begin(), cold.frames.end());
  const WalkEnd end = cold.end;

  // The cache changes nothing but the time.
  const Walk warm = unwinder.walk(registers, stack, modules);
  require(warm.end == end && are_equal(frames, warm.frames));
  if (arch == Arch::X86_64) {
    const Walk uncached = small_cache.walk(registers, stack, modules);
    require(uncached.end == end && are_equal(frames, uncached.frames));
  }
  check_chain(unwinder, registers, stack, modules, words);
  check_left_stack(unwinder, registers, stack, modules, words);
  check_with_memory(unwinder, registers, modules, words, registers.get(0));
  check_live(unwinder, registers, modules, bytes, registers.get(1) % (words.size() + 1));
  return 0;
}
