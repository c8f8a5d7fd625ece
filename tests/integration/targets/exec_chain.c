// exec_chain CPU_SECONDS PROGRAM [ARG...]: works CPU_SECONDS in before_exec and then becomes
// PROGRAM in the same process. Give it itself as PROGRAM for a longer chain.
#include "work.h"

#include <unistd.h>

TARGET_FUNCTION void before_exec(double cpu_seconds) {
  // The clock of the process goes on counting over an exec.
  const double end = process_cpu_seconds() + cpu_seconds;
  while (process_cpu_seconds() < end) burn(50000, 31);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: exec_chain CPU_SECONDS PROGRAM [ARG...]\n");
    return 2;
  }
  before_exec(number_argument(argc, argv, 1, 0.5));
  execv(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
