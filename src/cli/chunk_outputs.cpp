#include "cli/chunk_outputs.h"

#include "cli/message.h"

#include <string>

namespace sentry_prof::cli {

Result<void> ChunkOutputs::write(const Profile& profile, uint32_t chunk_number) {
  const auto json = chunk_json(profile, format_, chunk_number);
  if (!json) return tl::unexpected(json.error());
  if (upload_ == nullptr) return files_->write_json(*json);
  Result<void> sent = upload_->send_chunk(profile, *json);
  if (files_ == nullptr) return sent;
  Result<void> written = files_->write_json(*json);
  if (written.has_value() == sent.has_value()) return written;
  const std::string& error = written ? sent.error().message : written.error().message;
  ++(written ? half_written_.not_uploaded : half_written_.not_in_files);
  if (half_written_.first_error.empty()) {
    half_written_.first_error = error;
    complain_meanwhile(error);
  }
  return {};
}

// A long run is not left to tell of it at its end only.
void ChunkOutputs::complain_meanwhile(const std::string& error) const {
  if (!is_recording_) return;
  complain(error + (error.ends_with('.') ? "" : ".") + " The recording goes on.");
}

// A sink that is broken ends the recording.
void ChunkOutputs::on_loss(const std::string& error_message) {
  if (!is_broken()) complain_meanwhile(error_message);
}

}  // namespace sentry_prof::cli
