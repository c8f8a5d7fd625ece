// gcc -O2 -fno-omit-frame-pointer -static -nostdlib -ffreestanding. Functions with frames and without
// unwind information, as all of musl: only their own code says where they end, and the register of
// the frame pointer serves them as any other.
#include "freestanding.h"

__asm__(".text\n.type inner,@function\ninner: push %rbx\n int3\n nop\n pop %rbx\n ret\n.size inner,.-inner");
__asm__(".text\n.type outer,@function\nouter: push %rbp\n mov $1,%ebp\n sub $24,%rsp\n call inner\n"
        " test %eax,%eax\n je 1f\n ud2\n1: add $24,%rsp\n pop %rbp\n ret\n.size outer,.-outer");
void outer(void);
int main(void) {
  outer();
  return 1;
}
