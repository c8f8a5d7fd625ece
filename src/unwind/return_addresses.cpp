#include "unwind/return_addresses.h"

namespace sentry_prof::unwind {
namespace {

constexpr CallsAbove kManyCalls{.count = 2};

}  // namespace

// A direct call that leads to no code is none: those bytes are something else.
CallSite ReturnAddresses::call_behind(uint64_t return_address) {
  if (work_left_ == 0) return {};
  const Module* const module = module_at(return_address - 1);
  if (module == nullptr) return {CallKind::None};
  uint32_t work = 0;
  const Module in_memory{.begin = module->begin, .end = module->end};
  const CallSite call = module->code == nullptr
                            ? call_sites_.before(in_memory, memory_code_, return_address, work)
                            : call_sites_.before(*module, module->code, return_address, work);
  if (!spend(work)) return {};
  const bool leads_nowhere =
      call.kind == CallKind::Direct && modules_.find({call.target(return_address)}) == nullptr;
  if (!leads_nowhere) return call;
  return {call.may_be_indirect ? CallKind::Indirect : CallKind::None};
}

bool ReturnAddresses::is_behind_call(uint64_t return_address) {
  const CallKind kind = call_behind(return_address).kind;
  return kind == CallKind::Direct || kind == CallKind::Indirect || is_signal_return(return_address);
}

bool ReturnAddresses::is_signal_return(uint64_t return_address) {
  const Module* const module = module_at(return_address - 1);
  if (module == nullptr || module->cfi == nullptr || work_left_ == 0) return false;
  const LinkAddress behind = to_link({return_address}, module->bias);
  Row row;
  RowStatus status = module->cfi->row_at({behind.value - 1}, row);
  // Only glibc's row of it begins one byte early.
  const bool ends_here = status == RowStatus::Found && !row.is_signal_frame && row.end == behind;
  if (ends_here) status = module->cfi->row_at(behind, row);
  return spend(row.work) && status == RowStatus::Found && row.is_signal_frame;
}

bool ReturnAddresses::leads_to_memory_code(uint64_t return_address) {
  const Module* const module = module_at(return_address - 1);
  return module != nullptr && module->image == kNoImage && module->code == nullptr;
}

bool ReturnAddresses::has_cfi_at(const Module& module, LinkAddress pc) {
  if (module.cfi == nullptr) return false;
  Row row;
  const RowStatus status = module.cfi->row_at(pc, row);
  return spend(row.work) && status == RowStatus::Found;
}

CallsAbove ReturnAddresses::calls_between(const StackSnapshot& stack, uint64_t begin,
                                          uint64_t end) {
  const CallsAbove call = innermost_call(stack, begin, end);
  if (call.count != 1) return call;
  const bool is_only = call.kind != CallKind::Unknown &&
                       innermost_call(stack, call.slot + sizeof(uint64_t), end).count == 0;
  return is_only ? call : kManyCalls;
}

CallsAbove ReturnAddresses::innermost_call(const StackSnapshot& stack, uint64_t begin,
                                           uint64_t end) {
  constexpr uint32_t kWordsPerWork = 64;  // most words are no addresses of code
  if (modules_.modules().empty()) return {};
  const uint64_t code_begin = modules_.modules().front().begin.value;
  const uint64_t code_bytes = modules_.modules().back().end.value - code_begin;
  uint64_t word = 0;
  uint32_t words = 0;
  for (uint64_t slot = begin; slot < end && stack.read_u64({slot}, word); slot += sizeof word) {
    if (++words % kWordsPerWork == 0 && !spend(1)) return kManyCalls;
    word = without_signature(word);
    if (word - code_begin > code_bytes) continue;
    const CallKind kind = call_behind(word).kind;
    if (!spend(1)) return kManyCalls;
    if (kind != CallKind::None) {
      return {.count = 1, .slot = slot, .return_address = word, .kind = kind};
    }
  }
  return {};
}

}  // namespace sentry_prof::unwind
