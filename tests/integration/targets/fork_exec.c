// fork_exec CPU_SECONDS PROGRAM [ARG...]: forks; the child works a tenth of a second in
// child_before_exec and then becomes PROGRAM, the parent works CPU_SECONDS in parent_work
// meanwhile. Its exit status is the child's.
#include "work.h"

#include <sys/wait.h>
#include <unistd.h>

TARGET_FUNCTION void child_before_exec(void) {
  const double end = thread_cpu_seconds() + 0.1;
  while (thread_cpu_seconds() < end) burn(50000, 23);
}

TARGET_FUNCTION void parent_work(double cpu_seconds) {
  const double end = thread_cpu_seconds() + cpu_seconds;
  while (thread_cpu_seconds() < end) burn(50000, 29);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: fork_exec CPU_SECONDS PROGRAM [ARG...]\n");
    return 2;
  }
  const double cpu_seconds = number_argument(argc, argv, 1, 1.0);
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) {
    child_before_exec();
    execv(argv[2], argv + 2);
    _exit(127);
  }
  parent_work(cpu_seconds);
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
