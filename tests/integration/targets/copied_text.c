// copied_text CPU_SECONDS WAY: replaces code of its own by a copy in memory without a file, as
// programs do to have it in huge pages, and burns CPU_SECONDS in it. WAY "piece": the last pages of
// its code, by mmap over them, so that records tell of it; "whole": all of its code, by mremap, of
// which none tells; "other": as "piece", but a function that is never called is not the same. It
// says "copied" when it begins to burn.
#define _GNU_SOURCE
#include "work.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COPIED __attribute__((section("copied_code")))

#ifdef __x86_64__
#define LARGEST_PAGE 4096
#else
#define LARGEST_PAGE 65536
#endif

// Behind nearly all other code, from a page's begin on.
extern char __start_copied_code[], __stop_copied_code[];

__attribute__((aligned(LARGEST_PAGE))) COPIED TARGET_FUNCTION void copied_inner(
    uint64_t iterations) {
  burn(iterations, 1);
}

COPIED TARGET_FUNCTION void copied_outer(uint64_t iterations) {
  char frame[200];
  memset(frame, (int)iterations, sizeof(frame));
  __asm__ volatile("" : : "r"(frame) : "memory");
  copied_inner(iterations);
  copied_inner(iterations / 2);
}

COPIED TARGET_FUNCTION void never_called(void) { g_sink = 1; }

static void fail_if(int has_failed) {
  if (has_failed) exit(3);
}

static char* new_memory(size_t size) {
  void* const memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  fail_if(memory == MAP_FAILED);
  return memory;
}

static void copy_piece(char* begin, size_t size, int is_other) {
  char* const kept = new_memory(size);
  memcpy(kept, begin, size);
  if (is_other) kept[(char*)(uintptr_t)&never_called - begin] ^= 1;
  const int access = PROT_READ | PROT_WRITE | PROT_EXEC;
  fail_if(mmap(begin, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
  memcpy(begin, kept, size);
  fail_if(mprotect(begin, size, PROT_READ | PROT_EXEC));
}

// In one step: we are running in it.
static void copy_whole(char* begin, size_t size) {
  char* const copy = new_memory(size);
  memcpy(copy, begin, size);
  fail_if(mprotect(copy, size, PROT_READ | PROT_EXEC));
  fail_if(mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, begin) == MAP_FAILED);
}

// The mapping that `address` is in.
static char* mapping_of(const char* address, size_t* size) {
  FILE* const maps = fopen("/proc/self/maps", "r");
  fail_if(maps == NULL);
  char line[512];
  while (fgets(line, sizeof(line), maps) != NULL) {
    unsigned long begin, end;
    const int is_read = sscanf(line, "%lx-%lx", &begin, &end) == 2;
    if (!is_read || (uintptr_t)address < begin || (uintptr_t)address >= end) continue;
    fclose(maps);
    *size = end - begin;
    return (char*)begin;
  }
  exit(3);
}

int main(int argc, char** argv) {
  const double cpu_seconds = number_argument(argc, argv, 1, 1);
  const char* const way = argc > 2 ? argv[2] : "piece";
  size_t size;
  char* const mapping = mapping_of(__start_copied_code, &size);
  if (strcmp(way, "whole") == 0) {
    copy_whole(mapping, size);
  } else {
    char* const begin = __start_copied_code;
    copy_piece(begin, (size_t)(mapping + size - begin), strcmp(way, "other") == 0);
  }
  __builtin___clear_cache(__start_copied_code, __stop_copied_code);
  puts("copied");
  fflush(stdout);
  while (process_cpu_seconds() < cpu_seconds) copied_outer(ITERATIONS_OF_5_MS);
  return 0;
}
