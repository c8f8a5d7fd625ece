// Holds a Sentry profile (JSON text) against what Sentry's server enforces, in the server's order,
// and against what sentry-prof promises beyond that. Shares no code with the writer.
//
// Problems read "RULE POINTER: what". The rules:
//   A1 JSON text, A3 UUIDs, A4 addresses, A5 64-bit numbers, B1..B20 V1, C1..C12 V2, E1 debug
//   images, F1 frames, G1 sizes: refused by the server. P1 ids, P2 required texts, P3 times, P4
//   images, P5 frames, P6 threads, P7 indices, P8 no null, P9 one document: promises of ours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::testing {

enum class ProfileKind { V1, V2 };

enum class ImageTypes {
  AsUploaded,  // "elf" counts as "symbolic", which the uploader puts in its place
  AsWritten,   // the server refuses "elf"
};

struct CheckReport {
  ProfileKind kind = ProfileKind::V2;
  bool is_accepted = false;  // the server's verdict
  std::string reason;        // the server's reason if refused, e.g. "profiling_invalid_json"
  std::vector<std::string> problems;  // all, the server's and ours
};

CheckReport check_sentry_profile(std::string_view json, ProfileKind kind,
                                 ImageTypes image_types = ImageTypes::AsUploaded);

// V2 if the text has a chunk id, else V1.
ProfileKind kind_of(std::string_view json);

}  // namespace sentry_prof::testing
