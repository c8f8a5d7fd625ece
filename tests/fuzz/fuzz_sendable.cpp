// What is made of foreign profiles, envelopes and transactions before they are sent: an envelope
// whose structure holds, without the image type that the server does not know, and a linked
// transaction that is JSON again. An input is a profile or an envelope; behind its first NUL a
// transaction.
#include "base/json_reader.h"
#include "fuzz/require.h"
#include "sentry/envelope_images.h"
#include "sentry/envelope_reader.h"
#include "sentry/envelope_writer.h"
#include "sentry/payload_facts.h"
#include "sentry/transaction_facts.h"
#include "sentry/transaction_link.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

using namespace sentry_prof;
using fuzz::require;
using namespace sentry_prof::sentry;

namespace {

bool is_json_object(std::string_view text) {
  JsonReader json(text);
  const bool is_object = json.peek() == JsonKind::Object;
  json.skip_value();
  return is_object && !json.failed();
}

struct Item {
  std::string type, payload;
  bool has_length = false;
};

// Of an envelope that holds together; nothing of a faulty one.
std::vector<Item> items_of(std::string_view envelope) {
  EnvelopeReader reader(envelope);
  if (!reader.header()) return {};
  std::vector<Item> items;
  while (const auto item = reader.next_item()) {
    std::string buffer;
    items.push_back({std::string(item->type.text(buffer)), std::string(item->payload),
                     item->length.has_value()});
  }
  return reader.fault() ? std::vector<Item>() : items;
}

void check_same_facts(const PayloadFacts& before, const PayloadFacts& after) {
  require(after.elf_type_offsets.empty());
  require(after.kind == before.kind && after.platform == before.platform);
  require(after.transaction_id == before.transaction_id && after.trace_id == before.trace_id);
  require(after.start_unix_ns == before.start_unix_ns);
  require(after.last_sample_ns == before.last_sample_ns);
}

void check_profile_item(const std::vector<Item>& items, const char* type, std::string_view profile,
                        const PayloadFacts& facts) {
  require(!items.empty() && items.back().type == type);
  const auto sent = read_payload_facts(items.back().payload);
  require(sent.has_value());
  check_same_facts(facts, *sent);
  require(items.back().payload.size() ==
          profile.size() + facts.elf_type_offsets.size() * (sizeof "symbolic" - sizeof "elf"));
}

// The server takes an envelope's id only if it is a UUID. What is not is the judge's business.
bool has_readable_id(std::string_view envelope) {
  EnvelopeReader reader(envelope);
  return reader.header().has_value();
}

void check_profile(std::string_view profile, std::string_view transaction) {
  const auto facts = read_payload_facts(profile);
  if (!facts) return;
  const EnvelopeOptions options{false, "sentry-prof", "1"};
  if (facts->kind == SentryFormat::V2) {
    const auto items = items_of(chunk_envelope(profile, *facts, options));
    require(items.size() == 1);
    return check_profile_item(items, "profile_chunk", profile, *facts);
  }
  const std::string envelope = profile_envelope(profile, *facts, options);
  const auto given = profile_envelope_with(profile, *facts, transaction, options);
  if (!has_readable_id(envelope)) return;
  const auto items = items_of(envelope);
  require(items.size() == 2 && items[0].type == "transaction" && is_json_object(items[0].payload));
  require(!read_transaction(items[0].payload).fault);
  check_profile_item(items, "profile", profile, *facts);
  if (given) check_profile_item(items_of(*given), "profile", profile, *facts);
}

void check_envelope(const std::string& envelope) {
  const auto before = items_of(envelope);
  const std::string mended = with_symbolic_images(envelope);
  const auto after = items_of(mended);
  require(after.size() == before.size());
  for (size_t i = 0; i < after.size(); ++i) {
    require(after[i].type == before[i].type && after[i].has_length == before[i].has_length);
    const bool is_profile = after[i].type == "profile" || after[i].type == "profile_chunk";
    if (!is_profile) {
      require(after[i].payload == before[i].payload);
      continue;
    }
    const auto facts = read_payload_facts(before[i].payload);
    if (facts) check_same_facts(*facts, read_payload_facts(after[i].payload).value());
  }
  require(with_symbolic_images(mended) == mended);
}

void check_transaction(std::string_view transaction, const ProfilerLink& link) {
  (void)read_transaction(transaction);
  if (const auto envelope = transaction_envelope(transaction)) {
    require(!has_readable_id(*envelope) || items_of(*envelope).size() == 1);
  }
  const auto linked = link_transaction(transaction, link, "1");
  if (!linked) return;
  require(is_json_object(*linked) && linked->find("profiler_id") != linked->npos);
  const auto again = link_transaction(*linked, link, "2");
  require(again && *again == *linked);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const size_t end = std::min(input.find('\0'), input.size());
  const std::string_view text = input.substr(0, end);
  const std::string_view transaction = input.substr(std::min(end + 1, input.size()));
  check_profile(text, transaction);
  check_envelope(std::string(text));
  const auto link = read_profiler_link(text);
  if (link) require(!link->profiler_id.empty());
  check_transaction(transaction, link ? *link : ProfilerLink{"p", "7", "main"});
  return 0;
}
