// A symbol's name, which the target's linker wrote, or who made its file.
#include "symbols/symbol_names.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace sentry_prof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view symbol(reinterpret_cast<const char*>(bytes), size);
  const std::string text = symbols::demangled(symbol);
  if (text.empty() != symbol.empty()) std::abort();
  return 0;
}
