// That the program is one: the kernel's verifier sees the rest (live sampling, integration).
#include "sampling/outer_stack_program.h"

#include "support/catch2.h"

using namespace sentry_prof::sampling;

TEST_CASE("the program's jumps lead forward, and it lets every sample through") {
  const std::vector<bpf_insn> code = outer_stack_program(3, 4);
  REQUIRE(code.size() > 2);
  CHECK(code.size() < BPF_MAXINSNS);
  for (size_t i = 0; i < code.size(); ++i) {
    const unsigned operation = code[i].code & 0xf0;
    const bool is_jump =
        BPF_CLASS(code[i].code) == BPF_JMP && operation != BPF_CALL && operation != BPF_EXIT;
    if (!is_jump) continue;
    CHECK(code[i].off >= 0);
    CHECK(i + 1 + static_cast<size_t>(code[i].off) < code.size());
  }
  const bpf_insn& last = code.back();
  CHECK(last.code == (BPF_JMP | BPF_EXIT));
  const bpf_insn& result = code[code.size() - 2];
  CHECK(result.code == (BPF_ALU64 | BPF_MOV | BPF_K));
  CHECK(result.dst_reg == BPF_REG_0);
  CHECK(result.imm == 1);
}
