#include "os/process_memory.h"

#include "os/clock.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/uio.h>

namespace sentry_prof::os {

namespace {

constexpr uint64_t kPageBytes = 4096;

// A transfer is whole or partial by pieces, never within one: so each page is a piece.
using Pages = std::array<iovec, 256>;

size_t split_into_pages(uint64_t address, size_t size_bytes, Pages& pages) {
  size_t count = 0;
  while (size_bytes > 0 && count < pages.size()) {
    const size_t piece = std::min<size_t>(size_bytes, kPageBytes - address % kPageBytes);
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

}  // namespace

size_t read_memory(pid_t pid, uint64_t address, std::span<std::byte> out) {
  Pages pages;
  size_t done = 0;
  while (done < out.size()) {
    const size_t count = split_into_pages(address + done, out.size() - done, pages);
    const iovec local{out.data() + done, total_bytes(pages, count)};
    const ssize_t got = ::process_vm_readv(pid, &local, 1, pages.data(), count, 0);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
    if (static_cast<size_t>(got) < local.iov_len) break;
  }
  return done;
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

  // How many bytes; nothing if it took longer than `wait_ns`: then the worker is on its own.
  std::optional<size_t> read(pid_t pid, uint64_t address, std::span<std::byte> out,
                             uint64_t wait_ns) {
    std::unique_lock lock(mutex_);
    pid_ = pid;
    address_ = address;
    bytes_.resize(out.size());
    state_ = State::Asked;
    hand_over(asked_, lock);
    const bool is_answered = answered_.wait_for(lock, std::chrono::nanoseconds(wait_ns),
                                                [this] { return state_ == State::Waiting; });
    if (!is_answered) {
      is_left_ = true;
      return std::nullopt;
    }
    std::copy_n(bytes_.begin(), got_, out.begin());
    return got_;
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
  enum class State : uint8_t { Waiting, Asked, Ended };

  // Wakes the other side with the lock released: who wakes while it is held goes to sleep again for
  // it, which is half of what a turn costs.
  static void hand_over(std::condition_variable& condition, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    condition.notify_one();
    lock.lock();
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (!is_left_) {
      asked_.wait(lock, [this] { return is_left_ || state_ == State::Asked; });
      if (state_ != State::Asked) break;
      lock.unlock();
      const size_t got = read_memory(pid_, address_, bytes_);
      lock.lock();
      got_ = got;
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
  uint64_t address_ = 0;
  std::vector<std::byte> bytes_;
  size_t got_ = 0;
};

ProcessMemoryReader::ProcessMemoryReader() = default;

ProcessMemoryReader::~ProcessMemoryReader() {
  if (worker_ != nullptr) worker_->leave();
}

size_t ProcessMemoryReader::read(pid_t pid, uint64_t address, std::span<std::byte> out) {
  const uint64_t begin_ns = monotonic_ns();
  if (!patience_.is_enough_for(kLongestWait_ns, begin_ns) || !may_read(pid)) {
    ++reads_given_up_;
    return 0;
  }
  if (worker_ == nullptr) worker_ = Worker::start();
  if (worker_ == nullptr) {
    ++reads_given_up_;
    return 0;
  }
  const std::optional<size_t> got = worker_->read(pid, address, out, kLongestWait_ns);
  patience_.spend(monotonic_ns() - begin_ns);
  if (got) return *got;
  ++reads_given_up_;
  late_.push_back({pid, std::exchange(worker_, nullptr)});
  return 0;
}

bool ProcessMemoryReader::may_read(pid_t pid) {
  std::erase_if(late_, [](const Late& late) { return late.worker->has_ended(); });
  return late_.size() < kMaxLate &&
         std::ranges::none_of(late_, [pid](const Late& late) { return late.pid == pid; });
}

}  // namespace sentry_prof::os
