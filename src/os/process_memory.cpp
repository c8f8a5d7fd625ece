#include "os/process_memory.h"

#include "os/clock.h"
#include "os/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/uio.h>

namespace sentry_prof::os {

namespace {

constexpr uint64_t kPage_bytes = 4096;

// A transfer is whole or partial by pieces, never within one: so each page is a piece.
using Pages = std::array<iovec, 256>;

size_t split_into_pages(uint64_t address, size_t size_bytes, Pages& pages) {
  size_t count = 0;
  while (size_bytes > 0 && count < pages.size()) {
    const size_t piece = std::min<size_t>(size_bytes, kPage_bytes - address % kPage_bytes);
    pages[count++] = {reinterpret_cast<void*>(address), piece};
    address += piece;
    size_bytes -= piece;
  }
  return count;
}

size_t total_bytes(const Pages& pages, size_t count) {
  size_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += pages[i].iov_len;
  return sum;
}

size_t read_memory_of_thread(pid_t tid, uint64_t address, std::span<std::byte> out) {
  Pages pages;
  size_t done = 0;
  while (done < out.size()) {
    const size_t count = split_into_pages(address + done, out.size() - done, pages);
    const iovec local{out.data() + done, total_bytes(pages, count)};
    const ssize_t got = ::process_vm_readv(tid, &local, 1, pages.data(), count, 0);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
    if (static_cast<size_t>(got) < local.iov_len) break;
  }
  return done;
}

}  // namespace

size_t read_memory(pid_t pid, uint64_t address, std::span<std::byte> out) {
  errno = 0;
  const size_t done = read_memory_of_thread(pid, address, out);
  if (errno != ESRCH || done != 0) return done;
  const pid_t living = living_thread_of(pid);
  return living == pid ? 0 : read_memory_of_thread(living, address, out);
}

// One thread, and what is asked of it. The thread has a share in it, and its own copy of the bytes:
// it may come back when nobody waits any more.
class ProcessMemoryReader::Worker {
 public:
  // Null if no thread can be started.
  static std::shared_ptr<Worker> start() {
    auto worker = std::make_shared<Worker>();
    try {
      std::thread([worker] { worker->run(); }).detach();
    } catch (const std::system_error&) {
      return nullptr;
    }
    return worker;
  }

  enum class Answer : uint8_t { Read, NotBegun, Late };

  // NotBegun: the machine was so busy that the thread did not run within `wait_ns`. Late: it did,
  // and is on its own from now on.
  Answer read(pid_t pid, std::span<MemoryRange> ranges, uint64_t wait_ns) {
    std::unique_lock lock(mutex_);
    pid_ = pid;
    place_own(ranges);
    state_ = State::Asked;
    hand_over(asked_, lock);
    const bool is_answered = wait_for_answer(lock, wait_ns);
    if (!is_answered && state_ == State::Asked) {
      state_ = State::Waiting;
      return Answer::NotBegun;
    }
    if (!is_answered) {
      is_left_ = true;
      return Answer::Late;
    }
    for (size_t i = 0; i < ranges.size(); ++i) {
      ranges[i].got_bytes = own_[i].got_bytes;
      std::copy_n(own_[i].out.begin(), own_[i].got_bytes, ranges[i].out.begin());
    }
    return Answer::Read;
  }

  // Ends the thread as soon as it is not reading.
  void leave() {
    std::lock_guard lock(mutex_);
    is_left_ = true;
    asked_.notify_one();
  }

  bool has_ended() {
    std::lock_guard lock(mutex_);
    return state_ == State::Ended;
  }

 private:
  enum class State : uint8_t { Waiting, Asked, Reading, Ended };

  // Wakes the other side with the lock released: who wakes while it is held goes to sleep again for
  // it, which is half of what a turn costs.
  static void hand_over(std::condition_variable& condition, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    condition.notify_one();
    lock.lock();
  }

  // Where we ourselves did not run for a while (a busy machine, a container's share of the CPUs),
  // the thread has not either, and gets its time now.
  bool wait_for_answer(std::unique_lock<std::mutex>& lock, uint64_t wait_ns) {
    const auto wait = [&] {
      return answered_.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                                [this] { return state_ == State::Waiting; });
    };
    const uint64_t begin_ns = monotonic_ns();
    if (wait()) return true;
    const bool are_we_late = monotonic_ns() - begin_ns > 2 * wait_ns;
    return are_we_late && wait();
  }

  // The same ranges, in bytes_.
  void place_own(std::span<const MemoryRange> ranges) {
    size_t sum_bytes = 0;
    for (const MemoryRange& range : ranges) sum_bytes += range.out.size();
    if (bytes_.size() < sum_bytes) bytes_.resize(sum_bytes);
    std::span<std::byte> rest(bytes_);
    own_.clear();
    for (const MemoryRange& range : ranges) {
      own_.push_back({range.address, rest.first(range.out.size())});
      rest = rest.subspan(range.out.size());
    }
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!is_left_) {
      asked_.wait(lock, [this] { return is_left_ || state_ == State::Asked; });
      if (state_ != State::Asked) break;
      state_ = State::Reading;
      lock.unlock();
      for (MemoryRange& own : own_) own.got_bytes = read_memory(pid_, own.address, own.out);
      lock.lock();
      state_ = State::Waiting;
      hand_over(answered_, lock);
    }
    state_ = State::Ended;
  }

  std::mutex mutex_;
  std::condition_variable asked_, answered_;
  State state_ = State::Waiting;
  bool is_left_ = false;
  pid_t pid_ = 0;
  std::vector<MemoryRange> own_;
  std::vector<std::byte> bytes_;
};

ProcessMemoryReader::ProcessMemoryReader() = default;

ProcessMemoryReader::~ProcessMemoryReader() {
  if (worker_ != nullptr) worker_->leave();
}

void ProcessMemoryReader::read(pid_t pid, std::span<MemoryRange> ranges) {
  if (try_to_read(pid, ranges)) return;
  for (MemoryRange& range : ranges) range.got_bytes = 0;
  ++reads_given_up_;
}

bool ProcessMemoryReader::try_to_read(pid_t pid, std::span<MemoryRange> ranges) {
  const uint64_t begin_ns = monotonic_ns();
  if (!patience_.is_enough_for(kLongestWait_ns, begin_ns) || !may_read(pid)) return false;
  if (worker_ == nullptr) worker_ = Worker::start();
  if (worker_ == nullptr) return false;
  const auto answer = worker_->read(pid, ranges, kLongestWait_ns);
  // A second wait was for what we did not do in the first, nor could have done.
  patience_.spend(std::min(monotonic_ns() - begin_ns, kLongestWait_ns));
  if (answer == Worker::Answer::Late) late_.push_back({pid, std::exchange(worker_, nullptr)});
  return answer == Worker::Answer::Read;
}

bool ProcessMemoryReader::may_read(pid_t pid) {
  std::erase_if(late_, [](const Late& late) { return late.worker->has_ended(); });
  return late_.size() < kMaxLate &&
         std::ranges::none_of(late_, [pid](const Late& late) { return late.pid == pid; });
}

}  // namespace sentry_prof::os
