// jit_code CPU_SECONDS [MAP]: copies the code of a function into memory of its own and burns
// CPU_SECONDS in it. MAP "tells": it is named in /tmp/perf-PID.map, as compilers do for perf, and
// the file removed at the end; "leaves": the file stays; "late": only after the first half; "last":
// as the last thing, and the file stays; without: nowhere.
#include "work.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// void compiled_just_now(uint64_t count), with a frame pointer, as JIT compilers keep it.
static const unsigned char code[] = {
    0x55,              // push %rbp
    0x48, 0x89, 0xe5,  // mov %rsp, %rbp
    0x48, 0xff, 0xcf,  // dec %rdi
    0x75, 0xfb,        // jne to the dec
    0x5d,              // pop %rbp
    0xc3,              // ret
};

static char g_map_path[64];

static void tell(const void* begin) {
  snprintf(g_map_path, sizeof(g_map_path), "/tmp/perf-%d.map", (int)getpid());
  FILE* const map = fopen(g_map_path, "w");
  if (map == NULL) exit(3);
  fprintf(map, "%lx %lx another function\n%lx %lx compiled_just_now\n",
          (unsigned long)((uintptr_t)begin + 64), 64ul, (unsigned long)(uintptr_t)begin,
          (unsigned long)sizeof(code));
  fclose(map);
}

TARGET_FUNCTION void burn_until(void (*compiled)(uint64_t), double cpu_seconds) {
  while (process_cpu_seconds() < cpu_seconds) compiled(1000000);
}

int main(int argc, char** argv) {
  const double cpu_seconds = argc > 1 ? atof(argv[1]) : 1;
  const char* const way = argc > 2 ? argv[2] : "";
  void* const memory =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 3;
  memcpy(memory, code, sizeof(code));
  void (*compiled)(uint64_t) = NULL;
  memcpy(&compiled, &memory, sizeof(compiled));
  if (strcmp(way, "tells") == 0 || strcmp(way, "leaves") == 0) tell(memory);
  burn_until(compiled, cpu_seconds / 2);
  if (strcmp(way, "late") == 0) tell(memory);
  burn_until(compiled, cpu_seconds);
  if (strcmp(way, "last") == 0) tell(memory);
  const int stays = strcmp(way, "leaves") == 0 || strcmp(way, "last") == 0;
  if (g_map_path[0] != 0 && !stays) unlink(g_map_path);
  return 0;
}
