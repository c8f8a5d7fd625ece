// Words that `upload` and `record --upload` share.
#pragma once

#include "upload/spool.h"

#include <cstddef>
#include <string>
#include <vector>

namespace sentry_prof::cli {

// What a spool gave up, a sentence a cause; nothing where there was nothing.
std::vector<std::string> loss_sentences(const upload::SpoolLosses& losses,
                                        const std::string& spool_path);

// Of envelopes there that were kept for other destinations; there is at least one.
std::string others_sentence(size_t count, const std::string& spool_path);

}  // namespace sentry_prof::cli
