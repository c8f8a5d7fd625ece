// Envelopes: what a profile is sent in. Source: Sentry's developer documentation, "Envelopes".
#pragma once

#include "sentry/payload_facts.h"

#include <string>
#include <string_view>

namespace sentry_prof::sentry {

struct EnvelopeOptions {
  // The server knows ELF images of profiles only as `symbolic` (the documents say `elf`). False:
  // that token of each image is replaced; nothing else of the payload ever changes.
  bool keeps_image_type = false;
  // V1: of the transaction; the server drops profiles without an SDK.
  std::string sdk_name, sdk_version;
};

// V2: one chunk, one envelope. `facts` are those of `payload`.
std::string chunk_envelope(std::string_view payload, const PayloadFacts& facts,
                           const EnvelopeOptions& options);

// V1: the profile and the transaction that it belongs to, made of the profile's own metadata; it
// lasts from the start to the last sample, and a microsecond at least.
std::string profile_envelope(std::string_view payload, const PayloadFacts& facts,
                             const EnvelopeOptions& options);

// The same with a transaction of the caller's, byte for byte. InvalidArgument unless it is a JSON
// object, of no other type than transaction, whose event_id is the profile's transaction.id.
Result<std::string> profile_envelope_with(std::string_view payload, const PayloadFacts& facts,
                                          std::string_view transaction,
                                          const EnvelopeOptions& options);

// A transaction alone, byte for byte. InvalidArgument unless it is a JSON object, of no other type.
Result<std::string> transaction_envelope(std::string_view transaction);

}  // namespace sentry_prof::sentry
