#include "support/catch2.h"
#include "symbols/symbol_names.h"

#include <string>

using sentry_prof::symbols::demangled;

TEST_CASE("demangled shows C++ functions with parameters and without return type") {
  CHECK(demangled("_ZN3FooC1Ei") == "Foo::Foo(int)");
  CHECK(demangled("_Z3addIiET_S0_S0_") == "add<int>(int, int)");
  CHECK(demangled("_ZNK3Foo3barEv") == "Foo::bar() const");
  CHECK(demangled("_Z3barv.cold") == "bar() [clone .cold]");
  // An unresolved name as newer compilers write it.
  CHECK(demangled(
            "_ZN4llvm10checkedAddIiEENSt9enable_ifIXsr3std9is_signedIT_EE5valueENS_8OptionalIS2_"
            "EEE4typeES2_S2_") == "llvm::checkedAdd<int>(int, int)");
}

TEST_CASE("demangled shows Rust functions, legacy and v0, and D functions") {
  CHECK(demangled("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE") ==
        "core::fmt::Write::write_fmt");
  CHECK(demangled("_RNvC6_123foo3bar") == "123foo::bar");
  CHECK(demangled("_RNvC0_3bar") == "::bar");  // a crate without name
  CHECK(demangled("_D3foo3barFiZv") == "foo.bar(int)");
}

TEST_CASE("demangled leaves alone what is not mangled") {
  for (const char* name : {"", "main", "_Z", "_ZN", "_R", "_D", "_DYNAMIC", "runtime.main",
                           "main.(*T).run", "_ZN9999999999999999999x"}) {
    CHECK(demangled(name) == name);
  }
  const std::string with_nul("_Z3f\0o", 6);
  CHECK(demangled(with_nul) == with_nul);
}

namespace {

std::string substitution(int index) {
  static constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (index == 0) return "S_";
  return {'S', kDigits[index - 1], '_'};
}

// f(A<i,i>, A<that, that>, ...): every argument is twice as long as the one before.
std::string doubling(int levels, const std::string& tail = "") {
  std::string name = "_Z1f1AIiiE";
  for (int i = 1; i <= levels; ++i) {
    name += "S_I" + substitution(i) + substitution(i) + "E";
  }
  return name + tail;
}

// operator T_<operator T_<...> >: every level is parsed twice.
std::string nested_conversions(int levels) {
  std::string name = "i";
  for (int i = 0; i < levels; ++i) name = "T_IL_Zcv" + name + "EE";
  return "_Zcv" + name + "v";
}

}  // namespace

TEST_CASE("demangled returns names as they are that would grow beyond its bound") {
  CHECK(demangled(doubling(3)).starts_with("f(A<int, int>, A<A<int, int>, A<int, int> >"));
  // Without bounds: terabytes, hours of silent work, hours of parsing.
  for (const std::string& name :
       {doubling(34), doubling(34, "Dp" + substitution(34)), nested_conversions(60)}) {
    CHECK(demangled(name) == name);
  }
  const std::string v0_doubling = [] {
    // (u8, u8), then tuples of two back references each to the tuple before.
    std::string name = "_RINvC1a1fThhE";
    size_t last = 8;  // of "ThhE", counted behind "_R"
    for (int i = 0; i < 30; ++i) {
      const size_t digits = last - 1;  // base 62, one less than the value
      static constexpr char kDigits[] =
          "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
      std::string reference = "B";
      if (digits >= 62) reference += kDigits[digits / 62];
      reference += kDigits[digits % 62];
      reference += '_';
      last = name.size() - 2;
      name += "T" + reference + reference + "E";
    }
    return name + "E";
  }();
  CHECK(demangled(v0_doubling) == v0_doubling);
}

TEST_CASE("demangled refuses Rust names that are told to be silent about billions of lifetimes") {
  // The second and third cannot be demangled in the end; the last has it in an identifier.
  for (const char* name :
       {"_RNvMIC1aFGzzzzz_EuEu1f", "_RNvMINvMIC1aFGzzzzz_1f", "_RNvMIC2CsFGzzzzz_EuEu1f",
        "_RNvMIC1aDGzzzzz_EL_Eu1f", "_RINvC1a11MFGzzzzz_uB6_E"}) {
    CHECK(demangled(name) == name);
  }
  // Small ones, many of them, in a path that is not shown.
  std::string many = "_RINvC1a1fMIC1a";
  for (int i = 0; i < 40; ++i) many += "FGZZ_Eu";
  CHECK(demangled(many + "EuE") == many + "EuE");
  CHECK(demangled("_RINvC1a1fFG_EuE") == "a::f::<for<'a> fn()>");
  CHECK(demangled("_RINvC1a1fFG0_EuE") == "a::f::<for<'a, 'b> fn()>");
  // The hash of a crate.
  CHECK(demangled("_RNvCs1xDGV85I1S7_12rustc_traits3bar") == "rustc_traits::bar");
}

namespace {

// Each level expands two packs of the one outside.
std::string nested_packs(int levels) {
  std::string name = "_Z1fIJJEEEvDTL";
  for (int i = 0; i < levels; ++i) name += "_Z1fIJJDpT_DpT_EEEvDTL";
  name += "_Z1fIJJDpT_DpT_EEEvDpT_";
  for (int i = 0; i < levels; ++i) name += "EE";
  return name + "EE";
}

}  // namespace

TEST_CASE("demangled refuses C++ names whose packs expand those of the names around") {
  CHECK(demangled(nested_packs(36)) == nested_packs(36));
  CHECK(demangled("_Z1fIJidEEvDpT_") == "f<int, double>(int, double)");
}

namespace {

// Each level is parsed twice.
std::string nested_function_types_d(int levels, const std::string& innermost) {
  std::string name = "_D1b";
  for (int i = 0; i < levels; ++i) name += "1aFS";
  return name + innermost;
}

// Arrays of arrays ..., each of the two types before by back references.
std::string doubling_d(int levels) {
  std::string name = "_D1f";
  name += "FHii";
  for (int i = 0; i < levels; ++i) name += "HQdQe";
  return name + "Zv";
}

}  // namespace

TEST_CASE("demangled refuses D names whose parsing takes exponential time") {
  for (const std::string& name :
       {nested_function_types_d(60, "1ci"),
        nested_function_types_d(12, "1c" + std::string(440, 'H')), doubling_d(80)}) {
    CHECK(demangled(name) == name);
  }
  CHECK(demangled("_D3foo3barFAyaQdZv") == "foo.bar(immutable(char)[], immutable(char)[])");
}

TEST_CASE("demangled returns very long and very deep names as they are") {
  for (const std::string& name :
       {"_Z1f" + std::string(100'000, 'P') + "i", "_Z1f" + std::string(4000, 'P') + "i",
        "_RNvC1a" + std::string(4000, 'T'), "_D" + std::string(4000, '1')}) {
    CHECK(demangled(name) == name);
  }
}
