#include "upload/upload_queue.h"

#include "os/clock.h"
#include "upload/spool_sender.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>

namespace sentry_prof::upload {

Result<std::unique_ptr<UploadQueue>> UploadQueue::start(Uploader& uploader, const StopEvent& stop,
                                                        const std::string& spool_path,
                                                        QueueOptions options, QueueEvents events) {
  std::unique_ptr<UploadQueue> queue(new UploadQueue(uploader, stop, options, std::move(events)));
  if (!spool_path.empty()) {
    for (auto* hand : {&queue->keeping_, &queue->sending_}) {
      auto spool = Spool::open(spool_path, destination_of(uploader.dsn()));
      if (!spool) return tl::unexpected(spool.error());
      *hand = std::move(*spool);
    }
    queue->sending_->is_one_with(*queue->keeping_);
    queue->has_news_ = true;  // what earlier runs left
  }
  uploader.on_failed_try(
      [&queue = *queue](const Outcome& outcome) { queue.note_failed_try(outcome); });
  uploader.on_wait([&queue = *queue](const Wait& wait) { queue.note_wait(wait); });
  try {
    queue->thread_ = std::thread([&queue = *queue] { queue.run(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::LimitExceeded, std::string("no thread for uploads: ") + error.what());
  }
  return queue;
}

UploadQueue::~UploadQueue() {
  if (thread_.joinable()) finish(0);
}

// Whether the spool has it.
bool UploadQueue::keep(const QueuedEnvelope& envelope) {
  if (!keeping_) return false;
  const auto kept = keeping_->keep(envelope.body, envelope.encoding, envelope.categories);
  const bool was_failing = std::exchange(is_spool_failing_, !kept);
  if (!kept && !was_failing) events_.spool_failed(kept.error());
  if (kept && was_failing) events_.spool_works();
  return kept.has_value();
}

void UploadQueue::put(QueuedEnvelope envelope) {
  const bool is_kept = keep(envelope);
  {
    const std::lock_guard lock(mutex_);
    has_news_ = true;
    if (!is_kept) {
      if (keeping_) ++figures_.not_kept;
      queued_bytes_ += envelope.body.size();
      queue_.push_back({++last_number_, std::move(envelope)});
      make_room();
    }
  }
  changed_.notify_all();
}

void UploadQueue::make_room() {
  while (queue_.size() > 1 &&
         (queued_bytes_ > options_.max_bytes || queue_.size() > options_.max_envelopes)) {
    queued_bytes_ -= queue_.front().envelope.body.size();
    queue_.pop_front();
    ++figures_.dropped;
  }
}

std::deque<UploadQueue::Numbered>::iterator UploadQueue::behind(uint64_t number) {
  return std::upper_bound(
      queue_.begin(), queue_.end(), number,
      [](uint64_t wanted, const Numbered& numbered) { return wanted < numbered.number; });
}

// The oldest one that is untried, or the newest.
std::optional<UploadQueue::Numbered> UploadQueue::take_next(Untried& untried, bool is_newest) {
  const std::lock_guard lock(mutex_);
  const auto first = behind(untried.behind);
  const auto end = behind(untried.before - 1);
  if (first == queue_.end() || first >= end) return {};
  const auto place = is_newest ? std::prev(end) : first;
  (is_newest ? untried.before : untried.behind) = place->number;
  Numbered result = std::move(*place);
  queue_.erase(place);
  queued_bytes_ -= result.envelope.body.size();
  return result;
}

void UploadQueue::put_back(Numbered numbered) {
  const std::lock_guard lock(mutex_);
  queued_bytes_ += numbered.envelope.body.size();
  queue_.insert(behind(numbered.number), std::move(numbered));
  make_room();
}

// A failure that lasts is told once, until all is sent again; a refusal, too.
void UploadQueue::tell_once(const Outcome& outcome) {
  if (outcome.kind == OutcomeKind::Cancelled || told_ == outcome.kind) return;
  told_ = outcome.kind;
  events_.failed(outcome);
}

void UploadQueue::note_failed_try(const Outcome& outcome) {
  {
    const std::lock_guard lock(mutex_);
    figures_.trouble = outcome;
  }
  tell_once(outcome);
}

// Also for a limit that came with another envelope's answer, accepted or not.
void UploadQueue::note_wait(const Wait& wait) {
  if (wait.reason != WaitReason::RateLimit) return;
  {
    const std::lock_guard lock(mutex_);
    limited_until_ns_ = os::monotonic_ns() + wait.duration_ns;
    if (!figures_.trouble) {
      figures_.trouble = Outcome{.kind = OutcomeKind::RateLimited, .retry_in_ns = wait.duration_ns};
    }
  }
  changed_.notify_all();
}

void UploadQueue::note(const Outcome& outcome, bool is_own) {
  const bool is_accepted = outcome.kind == OutcomeKind::Accepted;
  {
    const std::lock_guard lock(mutex_);
    limited_until_ns_ = 0;
    if (is_accepted) {
      ++figures_.accepted;
      figures_.trouble.reset();
    } else if (is_final(outcome.kind)) {
      ++figures_.refused;
      if (is_own) {
        ++figures_.own.refused;
        figures_.own.refusal = outcome;
      }
    } else if (outcome.kind != OutcomeKind::Cancelled || !figures_.trouble) {
      figures_.trouble = outcome;  // what was answered before says more than "cancelled"
    }
  }
  if (!is_accepted) tell_once(outcome);
}

// What failed for a moment in a recording of months is no reason to end with it.
void UploadQueue::forget_error() {
  const std::lock_guard lock(mutex_);
  figures_.error.reset();
}

void UploadQueue::note_error(Error error) {
  had_error_ = true;
  bool is_new = false;
  {
    const std::lock_guard lock(mutex_);
    is_new = !figures_.error || figures_.error->message != error.message;
    figures_.error = error;
  }
  if (is_new) events_.sending_failed(error);
}

Outcome UploadQueue::send(const QueuedEnvelope& envelope, Tries tries) {
  return uploader_.send({envelope.body, content_encoding(envelope.encoding), envelope.categories},
                        tries);
}

// False if the rest of the round would fare no better.
bool UploadQueue::send_numbered(Numbered numbered, SendingRound& round) {
  Outcome outcome;
  try {
    outcome = send(numbered.envelope, round.tries());
  } catch (...) {  // out of memory: later, perhaps
    put_back(std::move(numbered));
    throw;
  }
  if (!is_final(outcome.kind)) {
    put_back(std::move(numbered));
    return round.goes_on_past(outcome);
  }
  round.note_verdict();
  note(outcome);
  return true;
}

// True if all is sent; false if something has to wait.
bool UploadQueue::send_memory_round() {
  SendingRound round;
  Untried untried;
  while (auto next = take_next(untried, round.asks_for_newest())) {
    if (!send_numbered(std::move(*next), round)) break;
  }
  if (round.trouble()) note(*round.trouble());
  return !round.trouble();
}

bool UploadQueue::send_spool_round() {
  const auto run = send_spooled(*sending_, uploader_,
                                [this](const SpooledEnvelope& envelope, const Outcome& outcome) {
                                  note(outcome, envelope.is_own);
                                });
  if (!run) {
    note_error(run.error());
    return false;
  }
  if (run->accepted > 0) {
    const std::lock_guard lock(mutex_);
    figures_.accepted += run->accepted;
    if (queue_.empty()) figures_.trouble.reset();  // else it may be that of what memory has
  }
  if (run->error) note_error(*run->error);
  if (run->trouble) note(*run->trouble);
  return !run->trouble;
}

// What only memory has goes first. An exception here would end the recording.
bool UploadQueue::send_round() {
  const uint64_t accepted_before = figures_.accepted;  // which no other thread writes to
  had_error_ = false;
  try {
    const bool is_memory_sent = send_memory_round();
    const bool is_all_sent = (!sending_ || send_spool_round()) && is_memory_sent;
    const bool has_accepted = figures_.accepted > accepted_before;
    rounds_without_accepted_ = has_accepted ? 0 : rounds_without_accepted_ + 1;
    if (is_all_sent && has_accepted) told_.reset();
    if (is_all_sent && !had_error_ && !(sending_ && sending_->has_sent_ones())) forget_error();
    return is_all_sent;
  } catch (const std::exception& error) {
    note_error({ErrorCode::LimitExceeded, std::string("sending failed: ") + error.what()});
    return false;
  }
}

// False once there is nothing more to do.
bool UploadQueue::wait_for_work() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_news_ || is_ending_; });
  const bool has_work = has_news_;
  has_news_ = false;
  return has_work;
}

// With jitter: hosts that lost a server at one moment must not come back at one. What a person has
// to mend, a key or an address, is not asked about each half minute of a night; where others were
// accepted lately it is one envelope's trouble.
uint64_t UploadQueue::next_pause_ns() {
  const bool is_for_people = figures_.trouble && !is_worth_retrying(figures_.trouble->kind) &&
                             rounds_without_accepted_ > kRoundsOfOneInTrouble && !is_ending_;
  pauses_ = is_for_people ? std::min(pauses_ * 2, kMostPauses) : 1;
  const uint64_t pause_ns = options_.pause_ns * pauses_;
  return pause_ns / 2 + jitter_() % (pause_ns / 2 + 1);
}

void UploadQueue::run() {
  while (wait_for_work()) {
    if (send_round()) {
      pauses_ = 1;
      continue;
    }
    std::unique_lock lock(mutex_);
    if (is_ending_ && !has_news_) break;  // what came during the round may be untried
    // A new envelope is no reason to try earlier; the end is.
    changed_.wait_for(lock, std::chrono::nanoseconds(next_pause_ns()),
                      [this] { return is_ending_; });
    has_news_ = true;
  }
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

QueueEnd UploadQueue::end_within(uint64_t wait_ns, uint64_t patience_ns) {
  std::unique_lock lock(mutex_);
  is_ending_ = true;
  changed_.notify_all();
  const uint64_t patience_end_ns = os::monotonic_ns() + patience_ns;
  const auto is_limited = [&] { return limited_until_ns_ > patience_end_ns; };
  changed_.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                    [&] { return has_ended_ || is_limited(); });
  if (has_ended_) return QueueEnd::Done;
  return is_limited() ? QueueEnd::Limited : QueueEnd::GoingOn;
}

// A spool that failed may have room now.
void UploadQueue::collect_what_is_left() {
  for (auto& [number, envelope] : queue_) {
    if (!keep(envelope)) figures_.unsent.push_back(std::move(envelope));
  }
  queue_.clear();
  for (const auto* hand : {&keeping_, &sending_}) {
    if (!*hand) continue;
    figures_.losses += (*hand)->losses();
    figures_.own.losses += (*hand)->own_losses();
  }
  if (!sending_) return;
  const SpoolCounts counts = sending_->counts();
  figures_.own.left_in_spool = counts.own;
  figures_.left_in_spool = counts.ours;
  figures_.left_for_others = counts.for_others;
}

QueueFigures UploadQueue::finish(uint64_t grace_ns) {
  if (end_within(grace_ns, grace_ns) != QueueEnd::Done) stop_.set();
  thread_.join();
  collect_what_is_left();
  return std::move(figures_);
}

}  // namespace sentry_prof::upload
