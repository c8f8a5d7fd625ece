// Takes the values that a scan has found to have their form, makes ProfileFacts of them, and judges
// what one value or one object tells by itself: spellings, and attributes that depend on others.
#pragma once

#include "sentry/field_tables.h"
#include "sentry/image_gatherer.h"
#include "sentry/profile_facts.h"
#include "sentry/scalar.h"
#include "sentry/scan_reporter.h"
#include "sentry/transaction_gatherer.h"

#include <string>
#include <string_view>
#include <unordered_map>

namespace sentry_prof::sentry {

class FactGatherer {
 public:
  FactGatherer(ValidatedKind kind, ScanReporter& reporter, ProfileFacts& facts);

  // A list of them begins, `rest_bytes` before the end of the text: reserves for the most of them
  // that there can be (which costs memory only once it is used), so that growing never copies.
  void begin_list(ShapeKind kind, size_t rest_bytes);
  void begin_stacks(size_t rest_bytes);
  // An object of that kind begins at `offset`. They nest.
  void begin(ShapeKind kind, size_t offset);
  // It has ended. `present`: which of the shape's fields are there and not null, a bit each.
  // `is_sound`: the server has nothing against any of it.
  void end(const Shape& shape, uint32_t present, size_t offset, bool is_sound);
  void take(Slot slot, Scalar& scalar);
  // The same for a value that has just been read as what its form mostly is, if it has that form
  // and there is nothing to tell of it. Else false, and nothing has been taken.
  bool take_plain(const Field& field, const Scalar& scalar);
  void take_stack(const StackFact& stack) { facts_.stacks.push_back(stack); }
  // A key of thread_metadata and the offset of its value.
  void take_thread_metadata(const JsonString& id, size_t offset);
  void set_in_transaction_list(bool is_in_list) { transactions_.set_in_list(is_in_list); }

 private:
  bool take_plain_text(Slot slot, const JsonString& text);
  bool take_plain_address(Slot slot, const JsonString& text);
  void take_of_profile(Slot slot, Scalar& scalar);
  void take_id(const Scalar& scalar, bool must_be_random);
  void take_address(const Scalar& scalar);
  void end_profile(const Shape& shape, uint32_t present, size_t offset);
  void judge_cocoa(size_t offset);
  void judge_version();
  void note_number_form(const Scalar& scalar);
  std::string_view kept(const JsonString& string);
  std::string_view keep(std::string_view text);
  std::string_view number_id(const Scalar& scalar);
  uint32_t thread_index(std::string_view id);
  std::string_view text_of(const Scalar& scalar) { return scalar.string.text(buffer_); }

  ValidatedKind kind_;
  ScanReporter& reporter_;
  ProfileFacts& facts_;
  ImageGatherer images_;
  TransactionGatherer transactions_;
  std::string buffer_;
  std::unordered_map<std::string_view, uint32_t> threads_;
  uint32_t last_thread_ = 0;
  size_t most_threads_ = 0;
  size_t most_sampled_threads_ = SIZE_MAX;
  SampleFact sample_;
  FrameFact frame_;
  std::string version_;
  size_t version_offset_ = 0;
  // All that the server wants of a cocoa profile besides.
  bool has_whole_device_ = false, has_whole_os_ = false;
};

}  // namespace sentry_prof::sentry
