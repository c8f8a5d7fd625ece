// A part of a stack.
#pragma once

#include "base/address.h"
#include "base/byte_reader.h"

#include <cstddef>
#include <cstdint>

namespace sentry_prof {

struct StackPiece {
  RuntimeAddress begin;
  Bytes bytes;

  uint64_t end() const { return begin.value + bytes.size(); }
  bool has(RuntimeAddress address, size_t size) const {
    return address.value >= begin.value && address.value < end() && end() - address.value >= size;
  }
};

}  // namespace sentry_prof
