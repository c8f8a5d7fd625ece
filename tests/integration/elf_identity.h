// debug_id and code_id of an ELF file by the rule that Sentry's own tools follow, written down once
// more without the product's code.
#pragma once

#include <string>

namespace sentry_prof::testing {

struct ElfIdentity {
  std::string debug_id;  // hyphenated
  std::string code_id;   // empty without a build id
};

// Little-endian files only. Throws std::runtime_error if it cannot be read.
ElfIdentity identity_by_the_documented_rule(const std::string& path);

}  // namespace sentry_prof::testing
