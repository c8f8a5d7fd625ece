#include "sentry/judge_envelope.h"

#include "sentry/envelope_reader.h"
#include "sentry/scalar_forms.h"
#include "sentry/text_kind.h"
#include "sentry/text_places.h"
#include "sentry/transaction_facts.h"
#include "sentry_prof/limits.h"

#include <algorithm>

#include <fmt/format.h>

namespace sentry_prof::sentry {

namespace {

constexpr double kShortestLinkedS = 0.0198;  // below it Relay takes contexts.profile away

// Where an item stands, to tell of it once all have been read.
struct ItemPlace {
  size_t index = 0;
  size_t header_offset = 0;
  size_t payload_offset = 0;

  std::string header(std::string_view member = {}) const {
    return fmt::format("/items/{}/header{}", index, member);
  }
  std::string payload(std::string_view member = {}) const {
    return fmt::format("/items/{}/payload{}", index, member);
  }
};

// Of the first V1 profile: what must agree with its transaction.
struct LinkedProfile {
  ItemPlace place;
  bool is_sampled = true;
  std::optional<Uuid> transaction_id, trace_id;
  size_t transaction_id_offset = 0, trace_id_offset = 0;  // in the whole text
};

struct LinkedTransaction {
  ItemPlace place;
  TransactionFacts facts;
};

std::optional<Uuid> uuid_of(const std::optional<JsonString>& text) {
  std::string buffer;
  return text ? parse_uuid(text->text(buffer)) : std::nullopt;
}

class EnvelopeJudge {
 public:
  EnvelopeJudge(std::string_view text, const ValidateOptions& options, JudgeProfile judge_profile,
                ProblemList& problems, ProfileSummary& summary)
      : text_(text),
        options_(options),
        judge_profile_(judge_profile),
        problems_(problems),
        summary_(summary) {}

  void judge() {
    EnvelopeReader reader(text_);
    const std::optional<EnvelopeHeader> header = reader.header();
    if (header) {
      header_ = *header;
      while (const std::optional<EnvelopeItem> item = reader.next_item()) judge_item(*item);
    }
    if (reader.fault()) {
      tell_fault(*reader.fault());
    } else {
      judge_items_together();
    }
  }

 private:
  void tell_fault(const EnvelopeFault& fault);
  void judge_item(const EnvelopeItem& item);
  bool judge_size(const EnvelopeItem& item, ItemKind kind);
  void judge_profile_item(const EnvelopeItem& item);
  void judge_chunk_item(const EnvelopeItem& item);
  void judge_platform(const EnvelopeItem& item, std::string_view payload_platform);
  void judge_transaction_item(const EnvelopeItem& item);
  void judge_transaction(const LinkedTransaction& transaction);
  ProfileFacts judge_payload(const EnvelopeItem& item, ValidatedKind kind);
  void count_profile(const EnvelopeItem& item);
  void judge_items_together();
  void judge_numbers();
  void judge_link(const LinkedProfile& profile, const LinkedTransaction& transaction);
  void add(std::string_view rule, std::string pointer, size_t offset, std::string message) {
    problems_.add(rule, std::move(pointer), offset, std::move(message));
  }
  // Of one value in an item's header.
  void add_of_header(std::string_view rule, const EnvelopeItem& item, std::string_view key,
                     std::string message);

  std::string_view text_;
  const ValidateOptions& options_;
  JudgeProfile judge_profile_;
  ProblemList& problems_;
  ProfileSummary& summary_;
  EnvelopeHeader header_;
  size_t profiles_ = 0, chunks_ = 0;
  std::optional<ItemPlace> second_;  // profile or chunk
  std::optional<LinkedProfile> profile_;
  bool has_transaction_ = false;  // also one that was not looked at
  std::optional<LinkedTransaction> transaction_;
};

ItemPlace place_of(const EnvelopeItem& item) {
  return {item.index, item.header_offset, item.payload_offset};
}

void EnvelopeJudge::add_of_header(std::string_view rule, const EnvelopeItem& item,
                                  std::string_view key, std::string message) {
  add(rule, place_of(item).header(fmt::format("/{}", key)),
      member_offset(text_, item.header_offset, key), std::move(message));
}

void EnvelopeJudge::tell_fault(const EnvelopeFault& fault) {
  const std::string item = fmt::format("/items/{}/header", fault.item);
  switch (fault.part) {
    case EnvelopePart::Header:
      return add("envelope-header", "/header", fault.offset, fault.what);
    case EnvelopePart::EventId:
      return add("envelope-event-id-form", "/header/event_id", fault.offset, fault.what);
    case EnvelopePart::ItemHeader:
      return add("envelope-item-header", item, fault.offset,
                 header_.has_type && fault.item == 0
                     ? fault.what +
                           "; the file begins with an item's header: put an envelope's "
                           "header, {} will do, on a line of its own in front of it"
                     : fault.what);
    case EnvelopePart::LengthTooSmall:
      return add("envelope-length-short", item + "/length",
                 member_offset(text_, fault.offset, "length"), fault.what);
    case EnvelopePart::LengthTooLarge:
      return add("envelope-length-long", item + "/length",
                 member_offset(text_, fault.offset, "length"), fault.what);
  }
}

void EnvelopeJudge::judge_item(const EnvelopeItem& item) {
  const ItemKind kind = item_kind_of(item.type);
  if (!item.length && kind != ItemKind::Unknown) {
    add("envelope-length-missing", place_of(item).header(), item.header_offset,
        "no length: the payload ends at the first newline");
  }
  if (kind == ItemKind::V1 || kind == ItemKind::V2) count_profile(item);
  if (kind == ItemKind::Transaction) has_transaction_ = true;
  if (!judge_size(item, kind)) return;
  switch (kind) {
    case ItemKind::V1:
      return judge_profile_item(item);
    case ItemKind::V2:
      return judge_chunk_item(item);
    case ItemKind::Transaction:
      return judge_transaction_item(item);
    case ItemKind::Other:
      return;
    case ItemKind::Unknown:
      break;
  }
  std::string buffer;
  add_of_header("envelope-item-type", item, "type",
                fmt::format("Sentry knows no items of type {}", quoted(item.type.text(buffer))));
}

bool EnvelopeJudge::judge_size(const EnvelopeItem& item, ItemKind kind) {
  const size_t limit = kind == ItemKind::Transaction ? limits::kMaxTransaction_bytes
                       : kind == ItemKind::V1 || kind == ItemKind::V2 ? limits::kMaxItem_bytes
                                                                      : limits::kMaxEnvelope_bytes;
  if (!options_.has_size_limit || item.payload.size() <= limit) return true;
  add("envelope-item-size", place_of(item).payload(), item.payload_offset,
      fmt::format("this item has {} bytes, {} are allowed; it was not looked at",
                  item.payload.size(), limit));
  return false;
}

void EnvelopeJudge::count_profile(const EnvelopeItem& item) {
  ++(item_kind_of(item.type) == ItemKind::V1 ? profiles_ : chunks_);
  if (profiles_ + chunks_ == 2) second_ = place_of(item);
}

ProfileFacts EnvelopeJudge::judge_payload(const EnvelopeItem& item, ValidatedKind kind) {
  problems_.set_base(place_of(item).payload(), item.payload_offset);
  ProfileFacts facts = judge_profile_(item.payload, kind, problems_, summary_);
  problems_.set_base({}, 0);
  return facts;
}

void EnvelopeJudge::judge_profile_item(const EnvelopeItem& item) {
  if (!item.is_sampled) {
    add_of_header("item-sampled", item, "sampled",
                  "sampled is false: no transaction will link to this profile");
  }
  const ProfileFacts facts = judge_payload(item, ValidatedKind::V1);
  if (profile_) return;
  profile_ =
      LinkedProfile{place_of(item),
                    item.is_sampled,
                    parse_uuid(facts.transaction_id),
                    parse_uuid(facts.trace_id),
                    item.payload_offset + path_offset(item.payload, {"transaction", "id"}),
                    item.payload_offset + path_offset(item.payload, {"transaction", "trace_id"})};
}

void EnvelopeJudge::judge_chunk_item(const EnvelopeItem& item) {
  if (item.meta_length) {
    add_of_header("item-meta-length", item, "meta_length",
                  "meta_length is for chunks with a binary trace; this is JSON");
  }
  judge_platform(item, judge_payload(item, ValidatedKind::V2).platform);
}

void EnvelopeJudge::judge_platform(const EnvelopeItem& item, std::string_view payload_platform) {
  if (!item.platform) {
    add("item-platform-missing", place_of(item).header(), item.header_offset,
        payload_platform.empty()
            ? std::string("no platform in the item's header")
            : fmt::format("no platform in the item's header; the chunk says {}",
                          quoted(payload_platform)));
    return;
  }
  std::string buffer;
  const std::string_view platform = item.platform->text(buffer);
  if (payload_platform.empty() || platform == payload_platform) return;
  add("item-platform-differs", place_of(item).header("/platform"), item.platform_offset,
      fmt::format("the item's header says {}, the chunk {}{}", quoted(platform),
                  quoted(payload_platform),
                  is_ui_platform(platform) == is_ui_platform(payload_platform)
                      ? ""
                      : ": these are even counted in different quotas"));
}

void EnvelopeJudge::judge_transaction_item(const EnvelopeItem& item) {
  const LinkedTransaction transaction{place_of(item), read_transaction(item.payload)};
  judge_transaction(transaction);
  if (!transaction_) transaction_ = transaction;
}

void EnvelopeJudge::judge_transaction(const LinkedTransaction& transaction) {
  const auto& [place, facts] = transaction;
  if (facts.fault) {
    add("transaction-json", place.payload(), place.payload_offset + facts.fault->offset,
        facts.fault->what);
    return;
  }
  if (!facts.trace_id || !facts.has_span_id) {
    add("transaction-trace", place.payload("/contexts"), place.payload_offset + facts.trace_offset,
        fmt::format("contexts.trace has no {} of {} hex digits",
                    facts.trace_id ? "span_id" : "trace_id", facts.trace_id ? 16 : 32));
  }
  if (!facts.has_start || !facts.has_end) {
    add("transaction-time", place.payload(), place.payload_offset,
        fmt::format("{} is missing", facts.has_start ? "timestamp" : "start_timestamp"));
    return;
  }
  if (!facts.start_s || !facts.end_s) {
    const bool is_start = !facts.start_s;
    add("transaction-time", place.payload(is_start ? "/start_timestamp" : "/timestamp"),
        place.payload_offset + (is_start ? facts.start_offset : facts.end_offset),
        "this is neither a Unix time in seconds nor RFC 3339 text");
    return;
  }
  const double lasts_s = *facts.end_s - *facts.start_s;
  if (lasts_s < 0) {
    add("transaction-time", place.payload("/timestamp"), place.payload_offset + facts.end_offset,
        fmt::format("the transaction ends {:.6g} s before it starts", -lasts_s));
  } else if (facts.has_profiler_id && lasts_s < kShortestLinkedS) {
    add("transaction-short", place.payload("/timestamp"), place.payload_offset + facts.end_offset,
        fmt::format("the transaction lasts {:.3f} ms: the server removes its link to the profiler",
                    lasts_s * 1e3));
  }
}

void EnvelopeJudge::judge_numbers() {
  if (profiles_ + chunks_ == 0) {
    add("envelope-empty", {}, 0, "this envelope holds neither a profile nor a profile_chunk");
  }
  if (!second_) return;
  const bool has_chunk = chunks_ > 0;
  add(has_chunk ? "envelope-chunks" : "envelope-profiles", second_->header(),
      second_->header_offset,
      fmt::format(
          "this envelope holds {} items of type profile or profile_chunk: send each in an envelope "
          "of its own",
          profiles_ + chunks_));
}

void EnvelopeJudge::judge_items_together() {
  judge_numbers();
  if (profiles_ == 0) return;
  if (!transaction_) {
    if (profile_ && profile_->is_sampled && !has_transaction_) {
      add("envelope-transaction-missing", profile_->place.header(), profile_->place.header_offset,
          "no transaction comes with this profile: the server drops it");
    }
    return;
  }
  if (transaction_->facts.fault) return;
  if (!transaction_->facts.has_sdk) {
    add("transaction-sdk", transaction_->place.payload("/sdk"),
        transaction_->place.payload_offset + transaction_->facts.sdk_offset,
        "sdk.name or sdk.version is missing or empty: Sentry may drop the profile as of a "
        "deprecated sdk");
  }
  if (profile_) judge_link(*profile_, *transaction_);
}

void EnvelopeJudge::judge_link(const LinkedProfile& profile, const LinkedTransaction& transaction) {
  const std::optional<Uuid> envelope_id = uuid_of(header_.event_id);
  const std::optional<Uuid>& event_id = transaction.facts.event_id;
  if (!envelope_id) {
    add("envelope-event-id", "/header", header_.offset,
        "no event_id: the server makes one up, and the profile is not found by it");
  } else if (event_id && *event_id != *envelope_id) {
    add("envelope-event-id", transaction.place.payload("/event_id"),
        transaction.place.payload_offset + transaction.facts.event_id_offset,
        fmt::format("event_id is not the envelope's, {}", envelope_id->to_hex()));
  }
  const std::optional<Uuid> wanted = envelope_id ? envelope_id : event_id;
  if (wanted && profile.transaction_id && *profile.transaction_id != *wanted) {
    add("envelope-event-id", profile.place.payload("/transaction/id"),
        profile.transaction_id_offset,
        fmt::format("the profile is of another transaction than {}", wanted->to_hex()));
  }
  const std::optional<Uuid>& trace_id = transaction.facts.trace_id;
  if (trace_id && profile.trace_id && *profile.trace_id != *trace_id) {
    add("envelope-trace-id", profile.place.payload("/transaction/trace_id"),
        profile.trace_id_offset,
        fmt::format("the transaction's trace_id is {}", trace_id->to_hex()));
  }
}

}  // namespace

void judge_envelope(std::string_view text, const ValidateOptions& options,
                    JudgeProfile judge_profile, ProblemList& problems, ProfileSummary& summary) {
  if (options.has_size_limit && text.size() > limits::kMaxEnvelope_bytes) {
    problems.add("envelope-size", {}, 0,
                 fmt::format("this envelope has {} bytes, {} are allowed; it was not looked at",
                             text.size(), limits::kMaxEnvelope_bytes));
    return;
  }
  EnvelopeJudge(text, options, judge_profile, problems, summary).judge();
}

}  // namespace sentry_prof::sentry
