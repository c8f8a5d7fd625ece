// Debug images while they are read: which attributes their type asks for, and how those are
// spelled. Source: Debug Meta Interface; of the server, Relay's debug images of profiles.
#pragma once

#include "sentry/field_tables.h"
#include "sentry/profile_facts.h"
#include "sentry/scalar.h"
#include "sentry/scan_reporter.h"

#include <string>
#include <string_view>

namespace sentry_prof::sentry {

class ImageGatherer {
 public:
  ImageGatherer(ScanReporter& reporter, ProfileFacts& facts) : reporter_(reporter), facts_(facts) {}

  void begin(size_t offset);
  void take(Slot slot, const Scalar& scalar);
  void end(const Shape& shape, uint32_t present, size_t offset);

 private:
  void judge_type();
  void judge_debug_id();
  void judge_code_id();
  void require(const Shape& shape, uint32_t present, std::string_view key, std::string_view rule,
               size_t offset);

  // A piece of text and where it stands.
  struct Piece {
    std::string text;
    size_t offset = 0;
    bool is_there = false;
  };
  static Piece piece(const Scalar& scalar);

  ScanReporter& reporter_;
  ProfileFacts& facts_;
  ImageFact image_;
  Piece type_, debug_id_, code_id_;
};

}  // namespace sentry_prof::sentry
