#include "upload/upload_queue.h"

#include "upload/spool_sender.h"

#include <chrono>
#include <system_error>
#include <utility>

namespace sentry_prof::upload {

Result<std::unique_ptr<UploadQueue>> UploadQueue::start(Uploader& uploader, const StopEvent& stop,
                                                        const std::string& spool_path,
                                                        QueueOptions options, Tell tell) {
  std::unique_ptr<UploadQueue> queue(new UploadQueue(uploader, stop, options, std::move(tell)));
  if (!spool_path.empty()) {
    for (auto* hand : {&queue->keeping_, &queue->sending_}) {
      auto spool = Spool::open(spool_path);
      if (!spool) return tl::unexpected(spool.error());
      *hand = std::move(*spool);
    }
    queue->has_news_ = true;  // what earlier runs left
  }
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

Result<void> UploadQueue::put(QueuedEnvelope envelope) {
  if (keeping_) {
    const auto kept = keeping_->keep(envelope.body, envelope.encoding, envelope.categories);
    if (!kept) return kept;
  }
  {
    const std::lock_guard lock(mutex_);
    has_news_ = true;
    if (!keeping_) {
      queued_bytes_ += envelope.body.size();
      queue_.push_back(std::move(envelope));
      make_room();
    }
  }
  changed_.notify_all();
  return {};
}

void UploadQueue::make_room() {
  while (queue_.size() > 1 &&
         (queued_bytes_ > options_.max_bytes || queue_.size() > options_.max_envelopes)) {
    queued_bytes_ -= queue_.front().body.size();
    queue_.pop_front();
    ++figures_.dropped;
  }
}

std::optional<QueuedEnvelope> UploadQueue::take_front() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return {};
  QueuedEnvelope envelope = std::move(queue_.front());
  queue_.pop_front();
  queued_bytes_ -= envelope.body.size();
  return envelope;
}

void UploadQueue::put_back(QueuedEnvelope envelope) {
  const std::lock_guard lock(mutex_);
  queued_bytes_ += envelope.body.size();
  queue_.push_front(std::move(envelope));
  make_room();
}

void UploadQueue::note(const Outcome& outcome) {
  const bool is_accepted = outcome.kind == OutcomeKind::Accepted;
  {
    const std::lock_guard lock(mutex_);
    if (is_accepted) ++figures_.accepted;
    if (!is_accepted) figures_.trouble = outcome;
    if (!is_accepted && is_final(outcome.kind)) ++figures_.refused;
  }
  const bool is_new = told_ != outcome.kind && outcome.kind != OutcomeKind::Cancelled;
  if (!is_accepted && is_new) tell_(outcome);
  told_ = outcome.kind;
}

// True if all is sent; false if the rest has to wait.
bool UploadQueue::send_memory_round() {
  while (auto envelope = take_front()) {
    const Outcome outcome = uploader_.send(
        {envelope->body, content_encoding(envelope->encoding), envelope->categories});
    note(outcome);
    if (!is_final(outcome.kind)) {
      put_back(std::move(*envelope));
      return false;
    }
  }
  return true;
}

bool UploadQueue::send_spool_round() {
  const auto run =
      send_spooled(*sending_, uploader_, [this](const Outcome& outcome) { note(outcome); });
  if (!run) {
    const std::lock_guard lock(mutex_);
    figures_.error = run.error();
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    figures_.accepted += run->accepted;
  }
  if (run->trouble) {
    note(*run->trouble);
    return false;
  }
  if (run->accepted > 0) told_.reset();
  return true;
}

bool UploadQueue::send_round() { return sending_ ? send_spool_round() : send_memory_round(); }

// False once there is nothing more to do.
bool UploadQueue::wait_for_work() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return has_news_ || is_ending_; });
  const bool has_work = has_news_;
  has_news_ = false;
  return has_work;
}

void UploadQueue::run() {
  while (wait_for_work()) {
    if (send_round()) continue;
    std::unique_lock lock(mutex_);
    if (is_ending_) break;
    // A new envelope is no reason to try earlier; the end is.
    changed_.wait_for(lock, std::chrono::nanoseconds(options_.pause_ns),
                      [this] { return is_ending_; });
    has_news_ = true;
  }
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

QueueFigures UploadQueue::finish(uint64_t grace_ns) {
  {
    std::unique_lock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::nanoseconds(grace_ns), [this] { return has_ended_; });
    if (!has_ended_) stop_.set();
  }
  thread_.join();
  for (auto& envelope : queue_) figures_.unsent.push_back(std::move(envelope));
  queue_.clear();
  for (const auto* hand : {&keeping_, &sending_}) {
    if (!*hand) continue;
    const SpoolLosses& losses = (*hand)->losses();
    figures_.dropped += losses.dropped_for_size + losses.dropped_for_age;
    figures_.set_aside += losses.set_aside;
  }
  if (keeping_) figures_.left_in_spool = keeping_->count();
  return std::move(figures_);
}

}  // namespace sentry_prof::upload
