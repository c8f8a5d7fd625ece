// Demangling by libiberty, kept from running away.
//
// A mangled name is a compressed text: substitutions (Itanium) and back references (Rust v0, D)
// stand for what came before, so a hostile name of 250 bytes expands to 600 MB. libiberty bounds
// its recursion, not its work, and its callback cannot stop it. What is done about it here:
// - The input is bounded; libiberty itself refuses C++ names of more than 1,024 bytes.
// - The callback leaves by longjmp when the output is full. libiberty's callback interfaces do not
//   allocate (demangle.h: "allocation-less demangler interfaces") and its frames have nothing to
//   unwind; only Rust's punycode buffer, of at most some KiB, leaks then.
// - Two kinds of work make no output. To find a parameter pack the C++ printer walks all that a
// pack
//   expansion refers to, substitutions within substitutions; and the parser reads a conversion
//   operator's template arguments twice, so 2^n times where they nest. Names with a pack expansion
//   and many substitutions, or with many conversions, are refused (of 155,000 names in libLLVM,
//   libclang-cpp, node and others: none).
// - The D demangler has no callback, and reads nested function types twice: its input is bounded
//   much lower, and so are its back references and function types.
// A name that is refused is shown as it stands in the symbol table.
#include "symbols/symbol_names.h"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

// libiberty.h declares its own basename() unless told that <string.h> has one.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace sentry_prof::symbols {
namespace {

constexpr size_t kMaxMangled_bytes = 4096;
constexpr size_t kMaxDemangled_bytes = 4096;
constexpr int kMaxSubstitutions = 32;
constexpr int kMaxConversions = 8;
constexpr size_t kMaxMangledD_bytes = 512;
constexpr int kMaxBackReferencesD = 6;
constexpr int kMaxFunctionTypesD = 10;

constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;

struct FreeDeleter {
  void operator()(void* block) const { std::free(block); }
};

class BoundedOutput {
 public:
  // Runs `demangle(callback, this)`, which calls C functions only. None if it failed, or too long.
  template <typename Demangle>
  std::optional<std::string> run(Demangle demangle) {
    if (setjmp(full_) != 0 || demangle(&append, this) == 0) return std::nullopt;
    return std::string(text_.data(), length_);
  }

 private:
  static void append(const char* text, size_t count, void* opaque) {
    auto* self = static_cast<BoundedOutput*>(opaque);
    if (count > self->text_.size() - self->length_) std::longjmp(self->full_, 1);
    // Empty text may be a null pointer.
    if (count != 0) std::memcpy(self->text_.data() + self->length_, text, count);
    self->length_ += count;
  }

  std::jmp_buf full_;
  std::array<char, kMaxDemangled_bytes> text_;
  size_t length_ = 0;
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

auto count_of_any(std::string_view text, std::string_view letters) {
  return std::count_if(text.begin(), text.end(),
                       [&](char c) { return letters.find(c) != std::string_view::npos; });
}

// <substitution> ::= S <seq-id> _ | S_
int substitution_count(std::string_view symbol) {
  int count = 0;
  for (size_t at = symbol.find('S'); at != std::string_view::npos; at = symbol.find('S', at + 1)) {
    const char next = at + 1 < symbol.size() ? symbol[at + 1] : '\0';
    if (next == '_' || is_digit(next) || (next >= 'A' && next <= 'Z')) ++count;
  }
  return count;
}

// Pack expansions of types and expressions, sizeof...() and fold expressions. Identifiers may look
// like them, which does little harm.
bool may_expand_packs(std::string_view symbol) {
  static constexpr std::string_view kMarks[] = {"Dp", "sp", "sZ", "fl", "fr", "fL", "fR"};
  return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) {
    return symbol.find(mark) != std::string_view::npos;
  });
}

// "cv" begins a conversion operator or a cast. At the begin of an identifier it follows a digit.
int conversion_count(std::string_view symbol) {
  int count = 0;
  for (size_t at = symbol.find("cv"); at != std::string_view::npos;
       at = symbol.find("cv", at + 2)) {
    if (at == 0 || !is_digit(symbol[at - 1])) ++count;
  }
  return count;
}

std::optional<std::string> demangled_itanium(const std::string& symbol) {
  if (conversion_count(symbol) > kMaxConversions ||
      (may_expand_packs(symbol) && substitution_count(symbol) > kMaxSubstitutions)) {
    return std::nullopt;
  }
  return BoundedOutput().run([&](demangle_callbackref append, void* output) {
    return cplus_demangle_v3_callback(symbol.c_str(), kOptions, append, output);
  });
}

std::optional<std::string> demangled_rust(const std::string& symbol) {
  return BoundedOutput().run([&](demangle_callbackref append, void* output) {
    return rust_demangle_callback(symbol.c_str(), kOptions, append, output);
  });
}

std::optional<std::string> demangled_d(const std::string& symbol) {
  // Back references begin with Q, function types with the letter of a calling convention. The same
  // letters in identifiers count, too: telling them apart takes the demangler itself.
  if (symbol.size() > kMaxMangledD_bytes || count_of_any(symbol, "Q") > kMaxBackReferencesD ||
      count_of_any(symbol, "FUVWRY") > kMaxFunctionTypesD) {
    return std::nullopt;
  }
  const std::unique_ptr<char, FreeDeleter> text(dlang_demangle(symbol.c_str(), kOptions));
  if (text == nullptr || std::strlen(text.get()) > kMaxDemangled_bytes) return std::nullopt;
  return std::string(text.get());
}

std::optional<std::string> try_demangle(const std::string& symbol) {
  if (symbol.starts_with("_R")) return demangled_rust(symbol);
  if (symbol.starts_with("_D")) return demangled_d(symbol);
  if (!symbol.starts_with("_Z")) return std::nullopt;
  // Rust's legacy names are C++ names with a hash of 16 digits at their end.
  const bool may_be_rust = symbol.starts_with("_ZN") && symbol.find("17h") != std::string::npos;
  auto text = may_be_rust ? demangled_rust(symbol) : std::nullopt;
  return text ? text : demangled_itanium(symbol);
}

}  // namespace

std::string demangled(std::string_view symbol) {
  std::string raw(symbol);
  if (raw.size() > kMaxMangled_bytes || raw.find('\0') != std::string::npos) return raw;
  const std::optional<std::string> text = try_demangle(raw);
  return text && !text->empty() ? *text : raw;
}

}  // namespace sentry_prof::symbols
