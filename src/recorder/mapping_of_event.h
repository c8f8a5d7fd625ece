// A map record as the target's tables take it.
#pragma once

#include "sampling/event.h"
#include "target/mapping_facts.h"

namespace sentry_prof::recorder {

inline target::MappingFacts mapping_facts_of(const sampling::MapEvent& map) {
  target::MappingFacts facts;
  facts.pid = map.pid;
  facts.begin = map.begin;
  facts.size_bytes = map.size_bytes;
  facts.file_offset = map.file_offset;
  facts.build_id.assign(map.build_id.begin(), map.build_id.begin() + map.build_id_size_bytes);
  facts.device_major = map.device_major;
  facts.device_minor = map.device_minor;
  facts.inode = map.inode;
  facts.path = map.path;
  return facts;
}

}  // namespace sentry_prof::recorder
