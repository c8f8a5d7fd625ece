#include "unwind/left_stack.h"

#include <array>
#include <cstring>

namespace sentry_prof::unwind {
namespace {

constexpr ArchRegisters kX86 = arch_registers(Arch::X86_64);
constexpr uint64_t kSlot_bytes = sizeof(uint64_t);
// runtime.asmcgocall has 144 bytes in Go 1.19.
constexpr uint64_t kLongestChanger_bytes = 512;
// Of a cgo wrapper up to its jump: a load of some 4 bytes for each argument.
constexpr size_t kLongestWrapper_bytes = 48;
// `jmp` with 32 and with 8 bits of displacement (Intel SDM, volume 2, "JMP").
constexpr std::byte kJump{0xe9};
constexpr size_t kJump_bytes = 5;
constexpr std::byte kShortJump{0xeb};
constexpr size_t kShortJump_bytes = 2;

bool calls_changer(const LeftStack& left, const Module& module, uint64_t runtime_pc,
                   CallSites& call_sites, uint32_t& work_left) {
  uint32_t work = 0;
  const CallSite call = call_sites.before(module, module.code, runtime_pc, work);
  if (!spend(work, work_left) || call.kind != CallKind::Direct) return false;
  const uint64_t target = call.target(to_link({runtime_pc}, module.bias).value);
  return left.changer_pc - target < kLongestChanger_bytes;  // wraps to a huge value below
}

// Whether the frame of the call before `runtime_pc`, made with that stack pointer, is the one whose
// frame pointer is given.
bool has_frame(const Module& module, uint64_t runtime_pc, uint64_t sp, uint64_t frame_pointer,
               uint32_t& work_left) {
  const LinkAddress pc = to_link({runtime_pc - 1}, module.bias);
  if (!module.cfi->has_frame_pointers(pc)) return false;
  Row row;
  const RowStatus status = module.cfi->row_at(pc, row);
  if (!spend(row.work, work_left) || status != RowStatus::Found) return false;
  return row.cfa_kind == CfaKind::RegisterOffset && row.cfa_register == kX86.stack_pointer &&
         sp + static_cast<uint64_t>(row.cfa_offset) == frame_pointer + 2 * kSlot_bytes;
}

// What cgo makes for a C function without a result ends in a jump to it: `mov (%rdi), ...; jmp`. A
// byte that only looks like a jump does not lead to just there.
bool jumps_to(uint64_t function, RuntimeAddress target, const ModuleMap& modules) {
  const Module* const module = modules.find({function});
  std::array<std::byte, kLongestWrapper_bytes> code;
  if (module == nullptr || module->code == nullptr ||
      !module->code->read_code(to_link({function}, module->bias), code)) {
    return false;
  }
  for (size_t i = 0; i + kJump_bytes <= code.size(); ++i) {
    int32_t offset = 0;
    std::memcpy(&offset, &code[i + 1], sizeof(offset));
    const uint64_t near_offset = target.value - (function + i + kJump_bytes);
    const uint64_t short_offset = target.value - (function + i + kShortJump_bytes);
    const bool is_near = code[i] == kJump && static_cast<uint64_t>(int64_t{offset}) == near_offset;
    const bool is_short = code[i] == kShortJump &&
                          static_cast<uint64_t>(int64_t{int8_t(code[i + 1])}) == short_offset;
    if (is_near || is_short) return true;
  }
  return false;
}

// Where a return address would lie, and the frame pointer of the frame that it leads to.
struct Candidate {
  uint64_t slot = 0;
  uint64_t frame_pointer = 0;
};

std::optional<LeavingCall> call_at(const Candidate& at, const LeftStack& left,
                                   const StackSnapshot& stack, const ModuleMap& modules,
                                   CallSites& call_sites, uint32_t& work_left) {
  const uint64_t sp = at.slot + kSlot_bytes;
  uint64_t pc = 0;
  uint64_t callee = 0;
  if (!stack.read_u64({at.slot}, pc) || !stack.read_u64({sp}, callee)) return std::nullopt;
  const Module* const module = modules.find({pc - 1});
  const bool is_here = module != nullptr && module->image == left.image && module->cfi != nullptr;
  if (!is_here || !calls_changer(left, *module, pc, call_sites, work_left)) return std::nullopt;
  if (!has_frame(*module, pc, sp, at.frame_pointer, work_left)) return std::nullopt;
  LeavingCall call;
  call.registers.set(kX86.program_counter, pc);
  call.registers.set(kX86.stack_pointer, sp);
  call.registers.set(kX86.frame_pointer, at.frame_pointer);
  call.is_of_callee = callee == left.callee.value || jumps_to(callee, left.callee, modules);
  return call;
}

}  // namespace

std::optional<LeftStack> left_stack_of(std::span<const WalkedFrame> frames, uint64_t frame_pointer,
                                       const ModuleMap& modules) {
  if (frames.empty() || frame_pointer == 0) return std::nullopt;
  const WalkedFrame& changer = frames.back();
  const Module* module = modules.find_image(changer.image);
  if (module == nullptr || module->cfi == nullptr) return std::nullopt;
  // Go's code on the other stack is the runtime's, as what changed to it: of one image, which is
  // looked for among all modules.
  size_t callee = frames.size() - 1;
  while (callee > 0 && frames[callee].image == changer.image &&
         module->cfi->has_frame_pointers({frames[callee].lookup_pc()})) {
    --callee;
  }
  if (frames[callee].image != changer.image) module = modules.find_image(frames[callee].image);
  if (module == nullptr || module->cfi == nullptr) return std::nullopt;
  Row row;
  const RowStatus status = module->cfi->row_at({frames[callee].lookup_pc()}, row);
  if (status != RowStatus::Found || row.function_begin.value == 0) return std::nullopt;
  return LeftStack{.image = changer.image,
                   .changer_pc = changer.pc,
                   .frame_pointer = frame_pointer,
                   .callee = to_runtime(row.function_begin, module->bias)};
}

std::optional<LeavingCall> call_on_left_stack(const LeftStack& left, const StackSnapshot& stack,
                                              const ModuleMap& modules, CallSites& call_sites) {
  Candidate behind_record{left.frame_pointer + kSlot_bytes};
  if (!stack.read_u64({left.frame_pointer}, behind_record.frame_pointer)) return std::nullopt;
  uint32_t work_left = kMaxLeftStackWork;
  const auto look_at = [&](const Candidate& at) {
    return call_at(at, left, stack, modules, call_sites, work_left);
  };
  auto call = look_at(behind_record);
  uint64_t below = 0;
  while (!call && work_left > 0 && below < kLeftFrameReach_bytes) {
    below += kSlot_bytes;
    call = look_at({left.frame_pointer - below, left.frame_pointer});
  }
  return call;
}

}  // namespace sentry_prof::unwind
