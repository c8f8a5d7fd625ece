// gcc -O2 -nostdlib -no-pie -fcf-protection=none -Wl,-z,lazy plt_entry.c libplt_library.so
// -Wl,-rpath,'$ORIGIN' One entry serves two snapshots: at its first instruction (1 step), after its
// push (3 steps).
int called(void);
__asm__(
    ".globl _start\n_start: .cfi_startproc\n .cfi_undefined rip\n call run\n hlt\n .cfi_endproc");
void run(void) {
  __asm__ volatile(
      "sub $8,%%rsp\n .cfi_adjust_cfa_offset 8\n int3\n call called@plt\n"
      "add $8,%%rsp\n .cfi_adjust_cfa_offset -8" ::
          : "memory");
}
