// dlopen_loop [WALL_SECONDS]: loads plugin_a.so, calls it, unloads it, then the same with
// plugin_b.so, again and again. The libraries lie beside the program; the loader tends to put both
// at the same address.
#define _GNU_SOURCE
#include "work.h"

#include <dlfcn.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

static char g_directory[PATH_MAX];

static void find_directory(void) {
  const ssize_t length = readlink("/proc/self/exe", g_directory, sizeof g_directory - 1);
  if (length < 0) exit(1);
  g_directory[length] = '\0';
  *strrchr(g_directory, '/') = '\0';
}

TARGET_FUNCTION void load_and_run(const char* name) {
  char path[PATH_MAX + 32];
  snprintf(path, sizeof path, "%s/%s", g_directory, name);
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "dlopen_loop: %s\n", dlerror());
    exit(1);
  }
  void (*run)(void) = NULL;
  *(void**)&run = dlsym(library, "plugin_run");
  if (run == NULL) exit(1);
  run();
  dlclose(library);
}

int main(int argc, char** argv) {
  const double end = wall_seconds() + number_argument(argc, argv, 1, 1.0);
  find_directory();
  while (wall_seconds() < end) {
    load_and_run("plugin_a.so");
    load_and_run("plugin_b.so");
  }
  return 0;
}
