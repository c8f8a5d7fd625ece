// Demangling by libiberty, kept from running away.
//
// A mangled name is a compressed text: substitutions (Itanium) and back references (Rust v0, D)
// stand for what came before, so a hostile name of 250 bytes expands to 600 MB. libiberty bounds
// its recursion, not its work, and its callback cannot stop it. What is done about it here:
// - The input is bounded; libiberty itself refuses C++ names of more than 1,024 bytes.
// - The callback leaves by longjmp when the output is full. libiberty's callback interfaces do not
//   allocate (demangle.h: "allocation-less demangler interfaces") and its frames have nothing to
//   unwind; only Rust's buffer for an identifier in punycode, of at most 16 KiB, leaks then. After
//   a thousand of these such names are refused.
// - Work that makes no output is bounded by what may be in a name, since nothing stops it:
//     C++: to find a parameter pack the printer walks all that a pack expansion refers to,
//     substitutions within substitutions. Refused with a pack expansion and more than 32 of these
//     (of 982,001 names of Debian's and npm's programs 2,116, the half of them for an identifier
//     that looks like a pack expansion: "inspector"). Template parameters within nested names do
//     the same: refused with more than 16 (of 397,991 names none has more than 5).
//     C++: the parser reads a conversion operator's template arguments twice, so 2^n times where
//     they nest. Refused with more than 8 (none).
//     Rust: a binder of n lifetimes is printed one by one, also where the printer is told to be
//     silent, and again for each back reference that leads there. Refused where n has three digits
//     of base 62 (of 338,056 names 10, whose identifiers look like that), or all binders of a name
//     have more than 1,000.
//     D has no callback; its nested function types are read twice, its back references anew
//     wherever they stand. Refused where these make too much (of 20,452 names a tenth).
//   A name takes up to some tenths of a second then; SymbolBudget bounds all of them together.
// A name that is refused is shown as it stands in the symbol table.
#include "symbols/symbol_names.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

// libiberty.h declares its own basename() unless told that <string.h> has one.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace sentry_prof::symbols {
namespace {

constexpr size_t kMaxMangled_bytes = 4096;
// What is shown of it is less (symbol_names.cpp), but its end, too.
constexpr size_t kMaxDemangled_bytes = 16 * 1024;
constexpr int kMaxSubstitutions = 32;
constexpr int kMaxTemplateParameters = 16;
constexpr int kMaxConversions = 8;
constexpr unsigned kMaxLifetimes = 1000;
constexpr int kMaxLeaks = 1000;
constexpr size_t kMaxMangledD_bytes = 512;
constexpr uint64_t kMaxReadingsD = 4096;  // of 512 bytes each: 0.2 s

constexpr int kOptions = DMGL_PARAMS | DMGL_ANSI | DMGL_RET_DROP;

struct FreeDeleter {
  void operator()(void* block) const { std::free(block); }
};

class BoundedOutput {
 public:
  // Runs `demangle(callback, this)`, which calls C functions only. None if it failed, or too long.
  template <typename Demangle>
  std::optional<std::string> run(Demangle demangle) {
    if (setjmp(full_) != 0) {
      is_full_ = true;
      return std::nullopt;
    }
    if (demangle(&append, this) == 0) return std::nullopt;
    return std::string(text_.data(), length_);
  }
  bool is_full() const { return is_full_; }

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
  bool is_full_ = false;
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

constexpr bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

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

// <template-param> ::= T <number> _ | T_
int template_parameter_count(std::string_view symbol) {
  int count = 0;
  for (size_t at = symbol.find('T'); at != std::string_view::npos; at = symbol.find('T', at + 1)) {
    const char next = at + 1 < symbol.size() ? symbol[at + 1] : '\0';
    if (next == '_' || is_digit(next)) ++count;
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
  const bool is_dear =
      conversion_count(symbol) > kMaxConversions ||
      (may_expand_packs(symbol) && (substitution_count(symbol) > kMaxSubstitutions ||
                                    template_parameter_count(symbol) > kMaxTemplateParameters));
  if (is_dear) return std::nullopt;
  return BoundedOutput().run([&](demangle_callbackref append, void* output) {
    return cplus_demangle_v3_callback(symbol.c_str(), kOptions, append, output);
  });
}

// Whether "Cs" stands before it, and nothing but digits of base 62 between: <crate-root> ::= C
// [s <base-62 number> _] <identifier>.
bool may_be_crate_hash(std::string_view symbol, size_t at) {
  size_t begin = at;
  while (begin > 0 && is_alphanumeric(symbol[begin - 1])) --begin;
  return symbol.substr(begin, at - begin).find("Cs") != symbol.npos;
}

// <base-62 number> ::= {<0-9a-zA-Z>} _: the digits' value and one more, none are zero. A binder has
// one more lifetime than its number.
unsigned lifetimes_of_binder(std::string_view digits) {
  if (digits.empty()) return 1;
  unsigned value = 0;
  for (const char c : digits) {
    const int digit = is_digit(c) ? c - '0' : c >= 'a' ? c - 'a' + 10 : c - 'A' + 36;
    value = value * 62 + static_cast<unsigned>(digit);
  }
  return value + 2;
}

// <binder> ::= G <base-62 number> _, behind the F of a function type or the D of dyn. Back
// references lead anywhere, so what looks like a large one is refused wherever it stands, but in
// the hash of a crate, which is not shown: there it is made to look like none.
bool defuse_large_binders(std::string& symbol) {
  unsigned lifetimes = 0;
  for (size_t at = symbol.find('G'); at != symbol.npos; at = symbol.find('G', at + 1)) {
    if (at == 0 || (symbol[at - 1] != 'F' && symbol[at - 1] != 'D')) continue;
    size_t end = at + 1;
    while (end < symbol.size() && is_alphanumeric(symbol[end])) ++end;
    if (end == symbol.size() || symbol[end] != '_') continue;
    const size_t digits = end - at - 1;
    if (digits <= 2) {
      lifetimes += lifetimes_of_binder(std::string_view(symbol).substr(at + 1, digits));
      if (lifetimes > kMaxLifetimes) return false;
      continue;
    }
    if (!may_be_crate_hash(symbol, at)) return false;
    symbol[at] = '0';  // smaller: no overflow
  }
  return true;
}

// <undisambiguated-identifier> ::= u <decimal number> ...
bool may_have_punycode(std::string_view symbol) {
  for (size_t at = symbol.find('u'); at != symbol.npos; at = symbol.find('u', at + 1)) {
    if (at + 1 < symbol.size() && is_digit(symbol[at + 1])) return true;
  }
  return false;
}

std::optional<std::string> demangled_rust(std::string symbol) {
  static std::atomic<int> leaks = 0;
  const bool may_leak = may_have_punycode(symbol);
  if (may_leak && leaks >= kMaxLeaks) return std::nullopt;
  if (symbol.starts_with("_R") && !defuse_large_binders(symbol)) return std::nullopt;
  BoundedOutput output;
  auto text = output.run([&](demangle_callbackref append, void* into) {
    return rust_demangle_callback(symbol.c_str(), kOptions, append, into);
  });
  if (may_leak && output.is_full()) ++leaks;
  return text;
}

// Where the back reference at `at` leads: Q and a distance of base 26, whose last digit is a small
// letter. `at` itself where it leads nowhere.
size_t target_of_back_reference(std::string_view symbol, size_t at) {
  size_t distance = 0;
  for (size_t i = at + 1; i < symbol.size() && distance <= at; ++i) {
    const char c = symbol[i];
    if (c >= 'a' && c <= 'z') {
      distance = distance * 26 + static_cast<size_t>(c - 'a');
      return distance <= at ? at - distance : at;
    }
    if (c < 'A' || c > 'Z') break;
    distance = distance * 26 + static_cast<size_t>(c - 'A');
  }
  return at;
}

// How often, at most, something is read for the name's back references: each reads what it stands
// for, and so all back references from there up to its own place.
uint64_t readings_by_back_references(std::string_view symbol) {
  struct BackReference {
    size_t at;
    uint64_t readings;
  };
  std::vector<BackReference> known;
  uint64_t sum = 0;
  for (size_t at = symbol.find('Q'); at != symbol.npos && sum <= kMaxReadingsD;
       at = symbol.find('Q', at + 1)) {
    const size_t target = target_of_back_reference(symbol, at);
    uint64_t readings = 1;
    const bool is_identifier = is_digit(symbol[target]);
    for (const BackReference& inner : known) {
      if (inner.at >= target && !is_identifier) readings += inner.readings;
    }
    known.push_back({at, readings});
    sum += readings;
  }
  return sum;
}

// Function types begin with the letter of a calling convention. The same letters in identifiers
// count, too: telling them apart takes the demangler itself.
bool is_dear_d(std::string_view symbol) {
  const auto function_types = static_cast<uint64_t>(count_of_any(symbol, "FUVWRY"));
  return symbol.size() > kMaxMangledD_bytes || function_types >= 64 ||
         1 + readings_by_back_references(symbol) > kMaxReadingsD >> function_types;
}

std::optional<std::string> demangled_d(const std::string& symbol) {
  if (is_dear_d(symbol)) return std::nullopt;
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
