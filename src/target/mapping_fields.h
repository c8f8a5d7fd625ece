// MappingFacts as bytes (base/fields.h).
#pragma once

#include "base/fields.h"
#include "target/mapping_facts.h"

namespace sentry_prof::target {

template <typename Fields>
void describe(Fields& f, MappingFacts& m) {
  f(m.pid), describe(f, m.begin), f(m.size_bytes), f(m.file_offset), f(m.build_id);
  f(m.device_major), f(m.device_minor), f(m.inode), f(m.path);
}

}  // namespace sentry_prof::target
