#include "cli/sendable.h"

#include "sentry/envelope_images.h"
#include "sentry/envelope_reader.h"
#include "sentry/envelope_writer.h"
#include "sentry/payload_facts.h"
#include "sentry/text_kind.h"

#include <utility>

namespace sentry_prof::cli {

namespace {

using upload::Categories;
using upload::Category;

Category category_of_chunk(std::string_view platform) {
  return sentry::is_ui_platform(platform) ? Category::ProfileChunkUi : Category::ProfileChunk;
}

Categories categories_of(const sentry::EnvelopeItem& item) {
  const sentry::ItemKind kind = sentry::item_kind_of(item.type);
  if (kind == sentry::ItemKind::V1) return Category::Profile;
  if (kind == sentry::ItemKind::Transaction) return Category::Transaction;
  if (kind != sentry::ItemKind::V2) return Categories::all();
  std::string buffer;
  return category_of_chunk(item.platform ? item.platform->text(buffer) : "");
}

Categories categories_in(std::string_view envelope) {
  sentry::EnvelopeReader reader(envelope);
  if (!reader.header()) return Categories::all();
  Categories categories;
  while (const auto item = reader.next_item()) categories = categories | categories_of(*item);
  return categories.empty() ? Categories::all() : categories;
}

Result<Sendable> from_envelope(std::string text, const SendableOptions& options) {
  Sendable result;
  result.categories = categories_in(text);
  result.body =
      options.keeps_image_type ? std::move(text) : sentry::with_symbolic_images(std::move(text));
  return result;
}

tl::unexpected<Error> fail_without_use(const char* what) {
  return fail(
      ErrorCode::InvalidArgument,
      std::string("this is ")
          .append(what)
          .append(", and --transaction-file is for V1 profiles (--link-transaction for V2)"));
}

Result<Sendable> from_profile(const std::string& text, const SendableOptions& options) {
  const auto facts = sentry::read_payload_facts(text);
  if (!facts) return tl::unexpected(facts.error());
  const sentry::EnvelopeOptions envelope{options.keeps_image_type, "sentry-prof",
                                         SENTRY_PROF_VERSION};
  Sendable result;
  if (facts->kind == SentryFormat::V2) {
    if (!options.transaction.empty()) return fail_without_use("a V2 chunk");
    result.categories = category_of_chunk(facts->platform);
    result.body = sentry::chunk_envelope(text, *facts, envelope);
    return result;
  }
  result.categories = Category::Profile | Category::Transaction;
  if (options.transaction.empty()) {
    result.body = sentry::profile_envelope(text, *facts, envelope);
    return result;
  }
  auto body = sentry::profile_envelope_with(text, *facts, options.transaction, envelope);
  if (!body) return tl::unexpected(body.error());
  result.body = std::move(*body);
  return result;
}

}  // namespace

Result<Sendable> make_sendable(std::string text, const SendableOptions& options) {
  if (sentry::looks_like_envelope(text)) {
    if (!options.transaction.empty()) return fail_without_use("an envelope");
    return from_envelope(std::move(text), options);
  }
  return from_profile(text, options);
}

Result<Sendable> pack(Sendable sendable, upload::BodyEncoding encoding) {
  if (encoding == upload::BodyEncoding::Identity) return sendable;
  auto body = upload::encode_body(sendable.body, encoding);
  if (!body) return tl::unexpected(body.error());
  return Sendable{std::move(*body), encoding, sendable.categories};
}

}  // namespace sentry_prof::cli
