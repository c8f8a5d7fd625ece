#include "cli/record_upload.h"

#include "cli/chunk_files.h"
#include "cli/message.h"
#include "sentry/envelope_writer.h"
#include "upload/outcome.h"

#include <utility>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

// How long ^C waits for a server.
constexpr uint64_t kGrace_ns = 5'000'000'000;

const char* suffix_of(upload::BodyEncoding encoding) {
  switch (encoding) {
    case upload::BodyEncoding::Gzip:
      return ".gz";
    case upload::BodyEncoding::Zstd:
      return ".zst";
    case upload::BodyEncoding::Identity:
      break;
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<RecordUpload>> RecordUpload::start(const RecordOptions& options) {
  auto stop = upload::StopEvent::create();
  if (!stop) return tl::unexpected(stop.error());
  std::unique_ptr<RecordUpload> result(new RecordUpload(options, std::move(*stop)));
  SendingOptions sending = options.sending;
  const std::string spool = std::exchange(sending.spool, "");  // the queue's
  auto sender = Sender::create(sending, result->stop_.fd());
  if (!sender) return tl::unexpected(sender.error());
  result->sender_ = std::move(*sender);
  auto queue =
      upload::UploadQueue::start(result->sender_->uploader(), result->stop_, spool, {},
                                 [host = result->sender_->host()](const upload::Outcome& outcome) {
                                   complain("upload: " + upload::sentence(outcome, host));
                                 });
  if (!queue) return tl::unexpected(queue.error());
  result->queue_ = std::move(*queue);
  return result;
}

// The transaction names the thread that the last chunk shows first.
void RecordUpload::follow(const Profile& profile) {
  if (start_unix_ns_ == 0) start_unix_ns_ = profile.start_unix_ns;
  end_unix_ns_ = profile.end_unix_ns;
  session_ = profile.session;
  const Thread& thread = profile.threads[profile.main_thread];
  link_ = {session_.profiler_id.to_hex(), std::to_string(thread.id), thread.name};
}

Result<void> RecordUpload::put(std::string envelope, upload::Categories categories) {
  auto packed = pack({std::move(envelope), upload::BodyEncoding::Identity, categories},
                     options_.sending.compression);
  if (!packed) return tl::unexpected(packed.error());
  return queue_->put({std::move(packed->body), packed->encoding, packed->categories});
}

Result<void> RecordUpload::send_chunk(const Profile& profile, std::string_view json) {
  auto sendable = make_sendable(std::string(json), {options_.sending.keep_image_type, ""});
  if (!sendable) return tl::unexpected(sendable.error());
  follow(profile);
  return put(std::move(sendable->body), sendable->categories);
}

void RecordUpload::send_transaction() {
  const bool is_wanted = options_.format == SentryFormat::V2 && !options_.transaction.empty();
  if (!is_wanted || start_unix_ns_ == 0) return;
  const std::string transaction =
      sentry::recording_transaction(session_, start_unix_ns_, end_unix_ns_, link_);
  auto envelope = sentry::transaction_envelope(transaction);
  if (!envelope) return complain(envelope.error().message);
  if (auto ok = put(std::move(*envelope), upload::Category::Transaction); !ok) {
    complain(ok.error().message);
  }
}

// False if one is lost.
bool RecordUpload::keep_unsent(const upload::QueueFigures& figures) {
  const std::string stem = session_.profiler_id.to_hex().substr(0, 8);
  size_t number = 0;
  for (const upload::QueuedEnvelope& envelope : figures.unsent) {
    const std::string path =
        fmt::format("unsent-{}-{}.envelope{}", stem, ++number, suffix_of(envelope.encoding));
    if (auto ok = write_file(path, envelope.body); !ok) {
      complain(ok.error().message);
      return false;
    }
    complain("not sent, kept as " + path + " (sentry-prof upload " + path + ")");
  }
  return true;
}

void RecordUpload::tell(const upload::QueueFigures& figures) {
  const std::string host = sender_->host();
  if (!options_.is_quiet && figures.accepted > 0) {
    print(fmt::format("  uploaded  {} accepted by {}\n", figures.accepted, host));
  }
  if (figures.refused > 0) complain(fmt::format("{} refused by {}", figures.refused, host));
  if (figures.dropped > 0) {
    complain(fmt::format("{} dropped unsent: {} was away for too long", figures.dropped, host));
  }
  if (figures.left_in_spool > 0) {
    complain(fmt::format("{} not sent yet, kept in {} (sentry-prof upload --spool {})",
                         figures.left_in_spool, options_.sending.spool, options_.sending.spool));
  }
  if (figures.error) complain(figures.error->message);
}

UploadEnd RecordUpload::finish() {
  send_transaction();
  const upload::QueueFigures figures = queue_->finish(kGrace_ns);
  tell(figures);
  const bool is_kept = keep_unsent(figures);
  UploadEnd end;
  end.is_complete = is_kept && figures.unsent.empty() && figures.refused == 0 &&
                    figures.dropped == 0 && !figures.error;
  const bool is_pending = !figures.unsent.empty() || figures.left_in_spool > 0;
  if (figures.trouble && (!end.is_complete || is_pending)) {
    end.exit_code = upload::exit_code(figures.trouble->kind);
  }
  return end;
}

}  // namespace sentry_prof::cli
