#include "unwind/process_start.h"

#include <bit>

namespace sentry_prof::unwind {
namespace {

// Programs have some tens of arguments and variables; with more of them the root is not recognized.
constexpr uint64_t kMaxPointers = 4096;
// Linux's auxiliary vector has 20 to 30 entries, with types up to 51 (AT_MINSIGSTKSZ).
constexpr unsigned kMaxAuxiliaryEntries = 64;
constexpr uint64_t kMaxAuxiliaryType = 255;
// Types of its entries: AT_NULL, AT_PHDR, AT_PAGESZ (x86-64 psABI, figure 3.11).
constexpr uint64_t kEnd = 0, kProgramHeaders = 3, kPageSize = 6;

// Reads words upward.
class Words {
 public:
  Words(const StackSnapshot& stack, RuntimeAddress begin) : stack_(stack), at_(begin) {}

  std::optional<uint64_t> next() {
    uint64_t word = 0;
    if (!stack_.read_u64(at_, word)) return std::nullopt;
    at_.value += sizeof(uint64_t);
    return word;
  }

  // How many pointers, all of them to strings farther up, stand before a null; nothing if it is
  // otherwise.
  std::optional<uint64_t> count_pointers() {
    for (uint64_t count = 0; count <= kMaxPointers; ++count) {
      const auto word = next();
      if (!word || (*word != 0 && *word < at_.value)) return std::nullopt;
      if (*word == 0) return count;
    }
    return std::nullopt;
  }

  // With the entries that every kernel gives: any zeros and small numbers would do else.
  bool is_auxiliary_vector() {
    bool has_program_headers = false, has_page_size = false;
    for (unsigned i = 0; i < kMaxAuxiliaryEntries; ++i) {
      const auto type = next();
      const auto value = next();
      if (!type || !value || *type > kMaxAuxiliaryType) return false;
      if (*type == kEnd) return has_program_headers && has_page_size;
      if (*type == kProgramHeaders) has_program_headers = true;
      if (*type == kPageSize) has_page_size = std::has_single_bit(*value) && *value >= 4096;
    }
    return false;
  }

 private:
  const StackSnapshot& stack_;
  RuntimeAddress at_;
};

bool is_process_start(const StackSnapshot& stack, RuntimeAddress at) {
  Words words(stack, at);
  const auto argument_count = words.next();
  if (!argument_count || *argument_count == 0 || *argument_count > kMaxPointers) return false;
  return words.count_pointers() == *argument_count && words.count_pointers() &&
         words.is_auxiliary_vector();
}

}  // namespace

std::optional<RuntimeAddress> process_start_above(const StackSnapshot& stack, RuntimeAddress sp) {
  for (unsigned i = 0; i <= kMaxStartFrames_words; ++i) {
    const RuntimeAddress at{sp.value + i * sizeof(uint64_t)};
    if (is_process_start(stack, at)) return at;
  }
  return std::nullopt;
}

}  // namespace sentry_prof::unwind
