// What was read of machine code and is remembered from walk to walk.
#pragma once

#include "unwind/call_site.h"
#include "unwind/code_stretches.h"
#include "unwind/memory_rules.h"
#include "unwind/vain_searches.h"

namespace sentry_prof::unwind {

struct CodeFacts {
  CodeFacts(Arch arch, const CodeSource* memory_code)
      : memory_rules(memory_code), call_sites(arch) {}

  MemoryRules memory_rules;
  CallSites call_sites;
  CodeStretches stretches;
  VainSearches vain_searches;
};

}  // namespace sentry_prof::unwind
