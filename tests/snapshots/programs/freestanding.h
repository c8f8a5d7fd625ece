// What these programs need in place of a C library: a stored snapshot then holds the unwind
// information of our own functions only.
#pragma once

// The first code of the process has no caller; its unwind information says so. `call_main` stands
// between, found only by one who has the right stack pointer after `main`.
__asm__(
    ".text\n"
    ".globl _start\n"
    ".type _start,@function\n"
    "_start: .cfi_startproc\n"
    " .cfi_undefined rip\n"
    " mov (%rsp),%rdi\n"
    " lea 8(%rsp),%rsi\n"
    " call call_main\n"
    " mov %eax,%edi\n"
    " mov $231,%eax\n"  // exit_group
    " syscall\n"
    " hlt\n"
    " .cfi_endproc\n"
    ".size _start,.-_start\n"
    ".type call_main,@function\n"
    "call_main: .cfi_startproc\n"
    " sub $40,%rsp\n"
    " .cfi_adjust_cfa_offset 40\n"
    " call main\n"
    " add $40,%rsp\n"
    " .cfi_adjust_cfa_offset -40\n"
    " ret\n"
    " .cfi_endproc\n"
    ".size call_main,.-call_main\n");

// 0 or more, or an errno negated. `fourth` goes in r10, as the kernel has it.
static inline long system_call(long number, const void* first, const void* second,
                               const void* third, long fourth) {
  register long r10 __asm__("r10") = fourth;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(first), "S"(second), "d"(third), "r"(r10)
                   : "rcx", "r11", "memory");
  return number;
}

// Not a loop: gcc would make a call of memset of it.
static inline void fill(char* bytes, char value, long count) {
  __asm__ volatile("rep stosb" : "+D"(bytes), "+c"(count) : "a"(value) : "memory");
}
