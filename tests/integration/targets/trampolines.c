// trampolines CPU_SECONDS: burns CPU_SECONDS in functions that call each other by way of code that
// the program copied into memory of its own, as `python3 -X perf` does for each function of a
// script.
#include "work.h"

#include <string.h>
#include <sys/mman.h>

typedef uint64_t (*function)(uint64_t);
typedef uint64_t (*trampoline)(uint64_t, uint64_t, uint64_t, function);

// CPython's, which leaves the frame pointer alone.
static const unsigned char code[] = {
    0xf3, 0x0f, 0x1e, 0xfa,  // endbr64
    0x48, 0x83, 0xec, 0x08,  // sub $8, %rsp
    0xff, 0xd1,              // call *%rcx
    0x48, 0x83, 0xc4, 0x08,  // add $8, %rsp
    0xc3,                    // ret
};

static trampoline g_call;

TARGET_FUNCTION uint64_t by_trampoline(uint64_t depth) {
  if (depth == 0) {
    burn(500000, 61);
    return 1;
  }
  return g_call(depth - 1, 0, 0, by_trampoline) + depth;
}

int main(int argc, char** argv) {
  const double cpu_seconds = number_argument(argc, argv, 1, 1.0);
  void* const memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 3;
  memcpy(memory, code, sizeof(code));
  if (mprotect(memory, 4096, PROT_READ | PROT_EXEC) != 0) return 3;
  memcpy(&g_call, &memory, sizeof(g_call));
  while (process_cpu_seconds() < cpu_seconds) g_sink += by_trampoline(4);
  return 0;
}
