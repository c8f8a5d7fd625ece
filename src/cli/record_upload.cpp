#include "cli/record_upload.h"

#include "base/time_units.h"
#include "cli/chunk_files.h"
#include "cli/exit_code.h"
#include "cli/message.h"
#include "cli/upload_words.h"
#include "os/atomic_file.h"
#include "os/clock.h"
#include "os/fd.h"
#include "sentry/envelope_writer.h"
#include "upload/outcome.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

// How long ^C waits for a server.
constexpr uint64_t kGrace_ns = 5'000'000'000;
// How long a recording that ended by itself does: the default retries of one envelope, and a large
// chunk on a slow line.
constexpr uint64_t kLongestEnd_ns = 60'000'000'000;
constexpr uint64_t kTick_ns = 100'000'000;
// Nobody wonders about so much.
constexpr uint64_t kSilence_ns = 2'000'000'000;

recorder::UploadFigures plain_figures(const upload::QueueFigures& queue, uint64_t lost) {
  recorder::UploadFigures figures;
  figures.accepted = queue.accepted;
  figures.refused = queue.refused;
  figures.dropped = queue.dropped;
  figures.dropped_for_age = queue.losses.dropped_for_age;
  figures.dropped_for_size = queue.losses.dropped_for_size;
  figures.set_aside = queue.losses.set_aside;
  figures.not_kept = queue.not_kept;
  figures.left_in_spool = queue.left_in_spool;
  figures.unsent_files = queue.unsent.size() - lost;
  figures.lost = lost;
  return figures;
}

// What is there of earlier runs, and what became of it, is told, but decides nothing: their exit
// codes did. Of these two all that is counted is this recording's.
bool is_own_pending(const upload::QueueFigures& queue) {
  return !queue.unsent.empty() || queue.own.left_in_spool > 0;
}

uint64_t own_dropped(const upload::QueueFigures& queue) {
  return queue.dropped + queue.own.losses.dropped();
}

bool is_pending(const upload::QueueFigures& queue) {
  return !queue.unsent.empty() || queue.left_in_spool > 0;
}

int exit_code_of(const upload::QueueFigures& queue, uint64_t lost) {
  int code = own_dropped(queue) > 0 ? upload::exit_code(upload::OutcomeKind::NetworkFailed) : kDone;
  if (queue.own.refusal) code = std::max(code, upload::exit_code(queue.own.refusal->kind));
  if (queue.trouble && is_own_pending(queue)) {
    code = std::max(code, upload::exit_code(queue.trouble->kind));
  }
  const bool has_disk_trouble = lost > 0 || queue.own.losses.set_aside > 0 || queue.error;
  return has_disk_trouble ? kInputOutput : code;
}

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

// With a spool, only what its disk refuses and the server does not take comes there.
Result<void> check_unsent_place(const std::string& directory) {
  auto ok = os::check_writable(directory + "unsent.envelope");
  if (ok) return ok;
  return fail(ok.error().code, ok.error().message +
                                   " What cannot be sent would be kept there: record from another "
                                   "directory, or give --spool DIR.");
}

upload::QueueEvents events_for(const std::string& host) {
  upload::QueueEvents events;
  events.failed = [host](const upload::Outcome& outcome) {
    complain("upload: " + upload::sentence(outcome, host));
  };
  events.spool_failed = [](const Error& error) {
    complain("upload: " + error.message + " Until it works again, chunks are kept in memory.");
  };
  events.spool_works = [] { complain("upload: the spool works again"); };
  events.sending_failed = [](const Error& error) { complain("upload: " + error.message); };
  return events;
}

}  // namespace

Result<std::unique_ptr<RecordUpload>> RecordUpload::start(const RecordOptions& options,
                                                          const std::string& output_path,
                                                          const os::SignalSet& signals) {
  auto stop = upload::StopEvent::create();
  if (!stop) return tl::unexpected(stop.error());
  std::unique_ptr<RecordUpload> result(new RecordUpload(options, std::move(*stop)));
  result->unsent_directory_ = output_path.substr(0, output_path.rfind('/') + 1);
  if (options.sending.spool.empty()) {
    if (auto ok = check_unsent_place(result->unsent_directory_); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  auto sender = Sender::create(options.sending, signals, result->stop_.fd());
  if (!sender) return tl::unexpected(sender.error());
  result->sender_ = std::move(*sender);
  auto queue =
      upload::UploadQueue::start(result->sender_->uploader(), result->stop_, options.sending.spool,
                                 {}, events_for(result->sender_->host()));
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
  queue_->put({std::move(packed->body), packed->encoding, packed->categories});
  return {};
}

Result<void> RecordUpload::send_chunk(const Profile& profile, std::string_view json) {
  auto sendable = make_sendable(std::string(json), {options_.sending.keep_image_type, ""});
  if (!sendable) return tl::unexpected(sendable.error());
  follow(profile);
  return put(std::move(sendable->body), sendable->categories);
}

// Where the wall clock was set in between, the first chunk has another time than the last.
uint64_t RecordUpload::transaction_start_unix_ns() const {
  const uint64_t age_ns = os::boottime_ns() - begin_boottime_ns_;  // sleep counts, too
  const uint64_t earliest_ns = end_unix_ns_ - std::min(end_unix_ns_, age_ns);
  return start_unix_ns_ <= end_unix_ns_ ? std::max(start_unix_ns_, earliest_ns) : earliest_ns;
}

void RecordUpload::send_transaction() {
  const bool is_wanted = options_.format == SentryFormat::V2 && !options_.transaction.empty();
  if (!is_wanted || start_unix_ns_ == 0) return;
  const std::string transaction =
      sentry::recording_transaction(session_, transaction_start_unix_ns(), end_unix_ns_, link_);
  auto envelope = sentry::transaction_envelope(transaction);
  if (!envelope) return complain(envelope.error().message);
  if (auto ok = put(std::move(*envelope), upload::Category::Transaction); !ok) {
    complain(ok.error().message);
  }
}

// How many are lost.
uint64_t RecordUpload::keep_unsent(const upload::QueueFigures& figures) {
  const std::string stem = session_.profiler_id.to_hex().substr(0, 8);
  size_t number = 0;
  std::vector<Error> errors;
  for (const upload::QueuedEnvelope& envelope : figures.unsent) {
    const std::string path = fmt::format("{}unsent-{}-{}.envelope{}", unsent_directory_, stem,
                                         ++number, suffix_of(envelope.encoding));
    if (auto ok = write_file(path, envelope.body); !ok) {
      errors.push_back(ok.error());
    } else {
      complain("not sent, kept as " + path + " (sentry-prof upload " + path + ")");
    }
  }
  if (!errors.empty()) {
    complain(fmt::format("{} not sent and lost: {}", errors.size(), errors.front().message));
  }
  return errors.size();
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
  for (const std::string& text : loss_sentences(figures.losses, options_.sending.spool)) {
    complain(text);
  }
  if (is_pending(figures) && figures.trouble) {
    complain("upload: " + upload::sentence(*figures.trouble, host));
  }
  if (figures.left_for_others > 0) {
    complain(others_sentence(figures.left_for_others, options_.sending.spool));
  }
  if (figures.left_in_spool > 0) {
    complain(fmt::format("{} not sent yet, kept in {} (sentry-prof upload --spool {})",
                         figures.left_in_spool, options_.sending.spool, options_.sending.spool));
  }
}

void RecordUpload::send_the_rest(int signal_fd, uint64_t patience_ns,
                                 const std::function<void()>& on_tick) {
  const uint64_t begin_ns = os::monotonic_ns();
  bool is_told = options_.is_quiet;
  for (;;) {
    const uint64_t elapsed_ns = os::monotonic_ns() - begin_ns;
    if (elapsed_ns >= patience_ns || os::is_readable(signal_fd)) return;
    const uint64_t left_ns = patience_ns - elapsed_ns;
    const upload::QueueEnd end = queue_->end_within(std::min(kTick_ns, left_ns), left_ns);
    if (end != upload::QueueEnd::GoingOn) return;
    if (on_tick) on_tick();
    if (!is_told && elapsed_ns >= kSilence_ns && patience_ns > kGrace_ns) {
      complain(fmt::format("sending the rest to {}, for at most {} s (^C keeps it instead)",
                           sender_->host(), patience_ns / kNsPerSecond));
      is_told = true;
    }
  }
}

UploadEnd RecordUpload::finish(int signal_fd, bool was_end_asked_for,
                               const std::function<void()>& on_tick) {
  send_transaction();
  send_the_rest(signal_fd, was_end_asked_for ? kGrace_ns : kLongestEnd_ns, on_tick);
  const upload::QueueFigures figures = queue_->finish(0);
  tell(figures);
  const uint64_t lost = keep_unsent(figures);
  UploadEnd end;
  end.is_safe =
      lost + figures.own.refused + own_dropped(figures) + figures.own.losses.set_aside == 0;
  end.exit_code = exit_code_of(figures, lost);
  end.figures = plain_figures(figures, lost);
  return end;
}

}  // namespace sentry_prof::cli
