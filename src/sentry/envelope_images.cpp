#include "sentry/envelope_images.h"

#include "base/json_reader.h"
#include "sentry/envelope_reader.h"
#include "sentry/payload_facts.h"
#include "sentry/text_kind.h"

#include <cstddef>
#include <string_view>
#include <vector>

namespace sentry_prof::sentry {

namespace {

struct Edit {
  size_t offset = 0, length = 0;
  std::string text;
};

// Of the number behind "length".
void add_length_edit(std::string_view envelope, const EnvelopeItem& item, size_t new_length,
                     std::vector<Edit>& edits) {
  JsonReader json = JsonReader::at(envelope, item.header_offset);
  if (json.peek() != JsonKind::Object) return;
  json.begin_object();
  JsonString key;
  while (json.next_member(key)) {
    if (!key.is("length") || json.peek() != JsonKind::Number) {
      json.skip_value();
      continue;
    }
    const std::string_view number = json.number();
    edits.push_back({static_cast<size_t>(number.data() - envelope.data()), number.size(),
                     std::to_string(new_length)});
  }
}

void add_edits_of(std::string_view envelope, const EnvelopeItem& item, std::vector<Edit>& edits) {
  const ItemKind kind = item_kind_of(item.type);
  if (kind != ItemKind::V1 && kind != ItemKind::V2) return;
  const auto facts = read_payload_facts(item.payload);
  if (!facts || facts->elf_type_offsets.empty()) return;
  const size_t more = facts->elf_type_offsets.size() * (kSymbolicToken.size() - kElfToken.size());
  if (item.length) add_length_edit(envelope, item, item.payload.size() + more, edits);
  for (const size_t offset : facts->elf_type_offsets) {
    edits.push_back({item.payload_offset + offset, kElfToken.size(), std::string(kSymbolicToken)});
  }
}

}  // namespace

std::string with_symbolic_images(std::string envelope) {
  EnvelopeReader reader(envelope);
  if (!reader.header()) return envelope;
  std::vector<Edit> edits;
  while (const auto item = reader.next_item()) add_edits_of(envelope, *item, edits);
  if (reader.fault() || edits.empty()) return envelope;
  std::string out;
  out.reserve(envelope.size() + edits.size() * (kSymbolicToken.size() - kElfToken.size() + 1));
  size_t done = 0;
  for (const Edit& edit : edits) {
    out.append(envelope, done, edit.offset - done).append(edit.text);
    done = edit.offset + edit.length;
  }
  out.append(envelope, done);
  return out;
}

}  // namespace sentry_prof::sentry
