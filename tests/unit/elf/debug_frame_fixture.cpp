// Built with -g and without unwind tables, so that its functions are in .debug_frame only.
#include <cstddef>

namespace {

[[gnu::noinline]] int leaf(int n) { return n * 3 + 1; }

// Called through it, leaf() may change any register that a callee does not save.
int (*volatile indirect_leaf)(int) = leaf;

// Saves registers, and restores them in the middle where the compiler returns early.
[[gnu::noinline]] int early_return(int n, int* values) {
  if (n < 2) return n;
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += indirect_leaf(values[i % 4]) ^ indirect_leaf(i) ^ sum;
  return sum;
}

// A frame of variable size needs a frame pointer.
[[gnu::noinline]] int variable_frame(size_t n) {
  auto* bytes = static_cast<volatile char*>(__builtin_alloca(n + 16));
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>(i);
  return bytes[n / 2];
}

[[gnu::noinline]] int recurse(int n, int* values) {
  if (n == 0) return early_return(values[0], values);
  return recurse(n - 1, values) + variable_frame(static_cast<size_t>(n)) + leaf(n);
}

}  // namespace

int main(int argc, char**) {
  int values[4] = {argc, 2, 3, 4};
  return recurse(argc + 3, values) & 1;
}
