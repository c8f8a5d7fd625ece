#include "unwind/left_stack.h"

namespace sentry_prof::unwind {
namespace {

constexpr ArchRegisters kX86 = arch_registers(Arch::X86_64);
constexpr uint64_t kSlot_bytes = sizeof(uint64_t);
// runtime.asmcgocall has 144 bytes in Go 1.19.
constexpr uint64_t kLongestChanger_bytes = 512;

LinkAddress lookup_pc(const WalkedFrame& frame) { return {frame.pc - (frame.pc_is_exact ? 0 : 1)}; }

bool calls_changer(const LeftStack& left, const Module& module, uint64_t runtime_pc,
                   CallSites& call_sites) {
  uint32_t work = 0;
  const CallSite call = call_sites.before(module, module.code, runtime_pc, work);
  if (call.kind != CallKind::Direct) return false;
  const auto target_offset = static_cast<uint64_t>(int64_t{call.target_offset});
  const uint64_t target = to_link({runtime_pc}, module.bias).value + target_offset;
  return left.changer_pc - target < kLongestChanger_bytes;  // wraps to a huge value below
}

// Whether the frame of the call before `runtime_pc`, made with that stack pointer, is the one whose
// frame pointer is given.
bool has_frame(const Module& module, uint64_t runtime_pc, uint64_t sp, uint64_t frame_pointer) {
  const LinkAddress pc = to_link({runtime_pc - 1}, module.bias);
  Row row;
  if (!module.cfi->has_frame_pointers(pc) || module.cfi->row_at(pc, row) != RowStatus::Found) {
    return false;
  }
  return row.cfa_kind == CfaKind::RegisterOffset && row.cfa_register == kX86.stack_pointer &&
         sp + static_cast<uint64_t>(row.cfa_offset) == frame_pointer + 2 * kSlot_bytes;
}

bool is_in_code_with_frame_pointers(const WalkedFrame& frame, const ModuleMap& modules) {
  const Module* const module = modules.find_image(frame.image);
  return module != nullptr && module->cfi != nullptr &&
         module->cfi->has_frame_pointers(lookup_pc(frame));
}

// Where a return address would lie, and the frame pointer of the frame that it leads to.
struct Candidate {
  uint64_t slot = 0;
  uint64_t frame_pointer = 0;
};

std::optional<Registers> registers_of(const Candidate& at, const LeftStack& left,
                                      const StackSnapshot& stack, const ModuleMap& modules,
                                      CallSites& call_sites) {
  const uint64_t sp = at.slot + kSlot_bytes;
  uint64_t pc = 0;
  uint64_t callee = 0;
  if (!stack.read_u64({at.slot}, pc) || !stack.read_u64({sp}, callee)) return std::nullopt;
  if (callee != left.callee.value) return std::nullopt;
  const Module* const module = modules.find({pc - 1});
  const bool is_here = module != nullptr && module->image == left.image && module->cfi != nullptr;
  if (!is_here || !calls_changer(left, *module, pc, call_sites)) return std::nullopt;
  if (!has_frame(*module, pc, sp, at.frame_pointer)) return std::nullopt;
  Registers registers;
  registers.set(kX86.program_counter, pc);
  registers.set(kX86.stack_pointer, sp);
  registers.set(kX86.frame_pointer, at.frame_pointer);
  return registers;
}

}  // namespace

std::optional<LeftStack> left_stack_of(std::span<const WalkedFrame> frames, uint64_t frame_pointer,
                                       const ModuleMap& modules) {
  if (frames.empty() || frame_pointer == 0) return std::nullopt;
  const WalkedFrame& changer = frames.back();
  size_t callee = frames.size() - 1;
  while (callee > 0 && is_in_code_with_frame_pointers(frames[callee], modules)) --callee;
  const Module* const module = modules.find_image(frames[callee].image);
  if (module == nullptr || module->cfi == nullptr) return std::nullopt;
  Row row;
  const RowStatus status = module->cfi->row_at(lookup_pc(frames[callee]), row);
  if (status != RowStatus::Found || row.function_begin.value == 0) return std::nullopt;
  return LeftStack{.image = changer.image,
                   .changer_pc = changer.pc,
                   .frame_pointer = frame_pointer,
                   .callee = to_runtime(row.function_begin, module->bias)};
}

std::optional<Registers> innermost_on_left_stack(const LeftStack& left, const StackSnapshot& stack,
                                                 const ModuleMap& modules, CallSites& call_sites) {
  Candidate behind_record{left.frame_pointer + kSlot_bytes};
  if (!stack.read_u64({left.frame_pointer}, behind_record.frame_pointer)) return std::nullopt;
  auto registers = registers_of(behind_record, left, stack, modules, call_sites);
  for (uint64_t below = kSlot_bytes; !registers && below <= kLeftFrameReach_bytes;
       below += kSlot_bytes) {
    const Candidate inside{left.frame_pointer - below, left.frame_pointer};
    registers = registers_of(inside, left, stack, modules, call_sites);
  }
  return registers;
}

}  // namespace sentry_prof::unwind
