// Numbers for texts: equal texts have the same one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

class TextTable {
 public:
  // The number of the first text that is equal to this one, which is put in with the next number
  // if there is none. It must outlive the table.
  uint32_t index_of(std::string_view text);
  size_t size() const { return texts_.size(); }

 private:
  void grow();
  uint32_t& slot_of(std::string_view text);

  std::vector<std::string_view> texts_;
  std::vector<uint32_t> slots_;  // open addressing, a power of two; the number plus one
};

}  // namespace sentry_prof::sentry
