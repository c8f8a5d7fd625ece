// fibers [WALL_SECONDS]: works on a stack of its own. Its first frame is assembly without unwind
// information that nothing calls, as Boost.Context, and with it PHP, lays out its fibers.
#include "work.h"

enum { kStackWords = 8192, kSwitchedWords = 8 };

// Puts the caller's registers onto its stack and the stack pointer into *from; goes on with `to`.
void fiber_switch(void** from, void* to);
void fiber_start(void);
void fiber_end(void);

__asm__(
    ".text\n"
    "fiber_switch:\n"
    "  push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
    "  ret\n"
    "fiber_start:\n"  // where the first switch goes
    "  push %rbp\n"
    "  jmp *%rbx\n"
    "fiber_end:\n"  // where the fiber's function would return to
    "  xor %edi, %edi\n"
    "  call _exit@PLT\n"
    "  hlt\n");

static void* main_sp;
static void* fiber_sp;

TARGET_FUNCTION void work_in_fiber(void) {
  for (;;) {
    burn(ITERATIONS_OF_5_MS, 5);
    fiber_switch(&fiber_sp, main_sp);
  }
}

int main(int argc, char** argv) {
  uintptr_t* const stack = malloc(kStackWords * sizeof(uintptr_t));
  if (stack == NULL) return 1;
  // The registers from the lowest word on, as fiber_switch() takes them, and where it returns to.
  uintptr_t* const first = stack + kStackWords - kSwitchedWords;
  first[4] = (uintptr_t)work_in_fiber;
  first[5] = (uintptr_t)fiber_end;
  first[6] = (uintptr_t)fiber_start;
  fiber_sp = first;
  const double end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  while (wall_seconds() < end) fiber_switch(&main_sp, fiber_sp);
  return 0;
}
