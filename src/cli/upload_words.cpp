#include "cli/upload_words.h"

#include <cstdint>

#include <fmt/format.h>

namespace sentry_prof::cli {

std::vector<std::string> loss_sentences(const upload::SpoolLosses& losses,
                                        const std::string& spool_path) {
  std::vector<std::string> result;
  const uint64_t dropped = losses.dropped();
  if (dropped > 0) {
    result.push_back(fmt::format("{}: {} dropped unsent: {} too old, {} to make room", spool_path,
                                 dropped, losses.dropped_for_age, losses.dropped_for_size));
  }
  if (losses.set_aside > 0) {
    result.push_back(
        fmt::format("{}: {} damaged, set aside as *.bad", spool_path, losses.set_aside));
  }
  return result;
}

std::string others_sentence(size_t count, const std::string& spool_path) {
  return fmt::format(
      "{}: {} wait{} there for another project or server, to be sent with the DSN of that",
      spool_path, count, count == 1 ? "s" : "");
}

}  // namespace sentry_prof::cli
