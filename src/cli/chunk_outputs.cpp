#include "cli/chunk_outputs.h"

#include <string>

namespace sentry_prof::cli {

Result<void> ChunkOutputs::write(const Profile& profile, uint32_t chunk_number) {
  const auto json = chunk_json(profile, format_, chunk_number);
  if (!json) return tl::unexpected(json.error());
  Result<void> result;
  if (files_ != nullptr) result = files_->write_json(*json, chunk_number);
  if (upload_ != nullptr) {
    if (auto sent = upload_->send_chunk(profile, *json); !sent) return sent;
  }
  return result;
}

}  // namespace sentry_prof::cli
