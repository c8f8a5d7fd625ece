#include "os/helper_processes.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "os/errors.h"
#include "os/heap.h"
#include "os/limits.h"
#include "os/memory_privacy.h"
#include "os/priority.h"
#include "os/process.h"
#include "os/standard_streams.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

// AddressSanitizer writes what it finds to the standard error output.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kReportsErrorsOfItsOwn = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool kReportsErrorsOfItsOwn = true;
#else
constexpr bool kReportsErrorsOfItsOwn = false;
#endif
#else
constexpr bool kReportsErrorsOfItsOwn = false;
#endif

// As many as a program may have libraries on such a file system.
constexpr uint64_t kFilesOfHelper = 65'536;

// Helpers that are not late end as soon as nobody can ask them.
constexpr int kWaitForEnd_ms = 100;

// Who asks waits for a second, or a little more.
constexpr std::chrono::milliseconds kForkAgain(10);

// The CPU time of a container with a limit comes every 100 ms by default.
constexpr uint64_t kSecondWait_ns = 100'000'000;

// What of the patience is spent of the time in which an answer was waited for that nobody worked
// at. Not nothing: hundreds of questions, each of which waits for a CPU, are minutes.
constexpr uint64_t kIdleShare = 4;

// Stays the same memory in the processes that are forked.
std::shared_ptr<std::byte> share_room() {
  void* const room = ::mmap(nullptr, HelperProcesses::kMaxAnswer_bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(room),
          [](std::byte* begin) { ::munmap(begin, HelperProcesses::kMaxAnswer_bytes); }};
}

bool send_message(int socket, Bytes bytes, int passed_fd) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed_fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &passed_fd, sizeof(int));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

struct Message {
  size_t size_bytes = 0;  // 0: the other side's end
  Fd fd;
};

// Nothing if there is none yet and `flags` has MSG_DONTWAIT. What is longer than `buffer` is cut.
std::optional<Message> receive_message(int socket, int flags, std::span<std::byte> buffer) {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t size = 0;
  do {
    size = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) return std::nullopt;
  Message result{static_cast<size_t>(std::max<ssize_t>(size, 0)), Fd()};
  const cmsghdr* const header = size > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    result.fd = Fd(fd);
  }
  return result;
}

// 0: there is none. Negative: as poll(2).
int wait_for_message(int socket, uint64_t deadline_ns) {
  pollfd entry{socket, POLLIN, 0};
  int ready = 0;
  do {
    const uint64_t now_ns = monotonic_ns();
    const uint64_t left_ns = deadline_ns - std::min(deadline_ns, now_ns);
    const timespec left{static_cast<time_t>(left_ns / kNsPerSecond),
                        static_cast<long>(left_ns % kNsPerSecond)};
    ready = ::ppoll(&entry, 1, &left, nullptr);
  } while (ready < 0 && errno == EINTR);
  return ready;
}

// What is said of an answer; its bytes lie in the room.
struct AnswerHead {
  uint64_t size_bytes = 0;
  uint64_t taken_ns = 0;  // from the question on, once the helper had it
};

bool send_answer(int socket, std::byte* room, const HelperProcesses::Answer& answer,
                 uint64_t taken_ns) {
  const AnswerHead head{answer.bytes.size(), taken_ns};
  if (head.size_bytes == 0 || head.size_bytes > HelperProcesses::kMaxAnswer_bytes) return false;
  std::memcpy(room, answer.bytes.data(), head.size_bytes);
  return send_message(socket, std::as_bytes(std::span(&head, 1)), answer.fd.get());
}

struct ReceivedAnswer {
  HelperProcesses::Answer answer;
  uint64_t taken_ns = 0;
};

// As receive_message(); without bytes at the other side's end.
std::optional<ReceivedAnswer> receive_answer(int socket, const std::byte* room) {
  AnswerHead head;
  auto message = receive_message(socket, MSG_DONTWAIT, std::as_writable_bytes(std::span(&head, 1)));
  if (!message) return std::nullopt;
  ReceivedAnswer received{{{}, std::move(message->fd)}, head.taken_ns};
  const bool is_whole =
      message->size_bytes == sizeof(head) && head.size_bytes <= HelperProcesses::kMaxAnswer_bytes;
  if (is_whole) received.answer.bytes.assign(reinterpret_cast<const char*>(room), head.size_bytes);
  return received;
}

// Of a helper: where it is asked and answers.
struct Place {
  Fd socket;
  std::shared_ptr<std::byte> room;
};

void close_from_to(unsigned first, unsigned last) {
#ifdef SYS_close_range
  if (first > last || ::syscall(SYS_close_range, first, last, 0) == 0) return;
#endif
  constexpr unsigned kUsualLimit = 1023;  // before Linux 5.9
  for (unsigned fd = first; fd <= std::min(last, kUsualLimit); ++fd) ::close(static_cast<int>(fd));
}

// A helper may outlive us: a pipe of ours would stay open, and whoever reads from it would wait.
void keep_only(const std::vector<Place>& places) {
  std::vector<unsigned> numbers;
  for (const Place& place : places) numbers.push_back(static_cast<unsigned>(place.socket.get()));
  std::ranges::sort(numbers);
  unsigned next = STDERR_FILENO + 1;
  for (const unsigned number : numbers) {
    if (number > next) close_from_to(next, number - 1);
    next = number + 1;
  }
  close_from_to(next, ~0u);
  const Fd nothing(open_nothing(O_RDWR | O_CLOEXEC));
  ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(nothing.get(), STDOUT_FILENO);
  if (!kReportsErrorsOfItsOwn) ::dup2(nothing.get(), STDERR_FILENO);
}

[[noreturn]] void help(const Place& place, const HelperProcesses::GiveAnswer& give_answer) {
  keep_freed_blocks();
  std::vector<std::byte> question(HelperProcesses::kMaxQuestion_bytes);
  for (;;) {
    const auto message = receive_message(place.socket.get(), 0, question);
    if (!message || message->size_bytes == 0) ::_exit(0);
    const uint64_t begin_ns = monotonic_ns();
    const auto answer = give_answer(Bytes(question).first(message->size_bytes));
    const uint64_t taken_ns = monotonic_ns() - begin_ns;
    if (!send_answer(place.socket.get(), place.room.get(), answer, taken_ns)) ::_exit(1);
  }
}

// Has one thread for ever, and so may fork: a process with more could leave a lock in the child
// that nobody there holds. Each socket is for one helper, which begins with its first question.
[[noreturn]] void spawn_helpers(const char* name, std::vector<Place> places,
                                const HelperProcesses::GiveAnswer& give_answer) {
  ::prctl(PR_SET_NAME, name);  // else who looks for us to send us a signal might find these
  make_memory_private();
  keep_only(places);
  raise_open_file_limit(kFilesOfHelper);
  const RaisedPriority priority;
  while (!places.empty()) {
    std::vector<pollfd> entries;
    for (const Place& place : places) entries.push_back({place.socket.get(), POLLIN, 0});
    if (::poll(entries.data(), entries.size(), -1) < 0) continue;
    for (size_t i = 0; i < places.size(); ++i) {
      if (entries[i].revents == 0) continue;
      // At our end all sockets can be read from, too: there is nobody left to answer.
      const bool is_asked = (entries[i].revents & (POLLIN | POLLHUP)) == POLLIN;
      const pid_t pid = is_asked ? ::fork() : 0;
      if (pid < 0) {  // the limit of processes: the question stays in the socket
        std::this_thread::sleep_for(kForkAgain);
        continue;
      }
      const Place place = std::move(places[i]);
      if (!is_asked || pid > 0) continue;
      places.clear();
      help(place, give_answer);
    }
    std::erase_if(places, [](const Place& place) { return !place.socket.is_open(); });
  }
  while (::wait(nullptr) > 0 || errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace

Result<std::unique_ptr<HelperProcesses>> HelperProcesses::start(const char* name,
                                                                GiveAnswer give_answer,
                                                                Patience patience) {
  std::unique_ptr<HelperProcesses> helpers(new HelperProcesses(patience));
  std::vector<Place> theirs;
  for (Helper& helper : helpers->helpers_) {
    std::array<int, 2> fds{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data()) != 0) {
      const int error_number = errno;
      return fail(error_code_of(error_number),
                  fmt::format("no sockets for processes of our own ({}). Raise the limit of open "
                              "files (ulimit -n)",
                              describe_errno(error_number)));
    }
    helper.socket = Fd(fds[0]);
    helper.room = share_room();
    theirs.push_back({Fd(fds[1]), helper.room});
    if (helper.room == nullptr) return fail_with_errno(errno, "no memory for processes of our own");
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int error_number = errno;
    return fail(error_code_of(error_number),
                fmt::format("no further process can be started ({}). Raise the limit of processes "
                            "(ulimit -u, TasksMax= of a service)",
                            describe_errno(error_number)));
  }
  if (pid == 0) spawn_helpers(name, std::move(theirs), give_answer);
  helpers->spawner_ = pid;
  return helpers;
}

void HelperProcesses::end() {
  Lock lock(mutex_);
  is_over_ = true;
  // Wakes who waits for an answer; the socket stays theirs until then.
  for (const Helper& helper : helpers_) {
    if (helper.state == State::Busy) ::shutdown(helper.socket.get(), SHUT_RDWR);
  }
  turns_.wait(lock, [this] {
    return std::ranges::none_of(helpers_,
                                [](const Helper& helper) { return helper.state == State::Busy; });
  });
  for (Helper& helper : helpers_) helper = {.state = State::Ended};
  if (spawner_ < 0) return;
  const pid_t spawner = std::exchange(spawner_, -1);
  const auto end = open_pidfd(spawner);
  if (!end) return;
  pollfd entry{end->get(), POLLIN, 0};
  ::poll(&entry, 1, kWaitForEnd_ms);
  ::waitpid(spawner, nullptr, WNOHANG);
}

std::optional<HelperProcesses::Answered> HelperProcesses::ask_any(Bytes question, uint64_t subject,
                                                                  std::optional<size_t>* late) {
  return ask_found(
      question, subject,
      [this](Lock& lock, uint64_t begin_ns) { return wait_for_any(lock, begin_ns); }, late);
}

std::optional<HelperProcesses::Answer> HelperProcesses::ask(size_t helper, Bytes question,
                                                            uint64_t subject) {
  auto answered = ask_found(
      question, subject,
      [&](Lock& lock, uint64_t begin_ns) {
        Helper& found = helpers_[helper];
        const uint64_t deadline_ns =
            is_starter() ? found.asked_ns + kLongestTurn_ns : begin_ns + kLongestWait_ns;
        return wait_for_turn(lock, found, deadline_ns) ? &found : nullptr;
      },
      nullptr);
  return answered ? std::optional(std::move(answered->answer)) : std::nullopt;
}

bool HelperProcesses::is_askable(size_t helper, uint64_t subject) {
  const std::lock_guard lock(mutex_);
  take_late_answers();
  return may_ask(helpers_[helper], subject) &&
         patience_of_caller().is_enough_for(kLongestWait_ns, monotonic_ns());
}

bool HelperProcesses::has_ended(size_t helper) const {
  const std::lock_guard lock(mutex_);
  return helpers_[helper].state == State::Ended;
}

std::optional<HelperProcesses::Answered> HelperProcesses::ask_found(
    Bytes question, uint64_t subject, const std::function<Helper*(Lock&, uint64_t)>& find_helper,
    std::optional<size_t>* late) {
  // A helper is busy until its answer is taken, and the starting thread may wait for it.
  std::optional<RaisedPriority> priority;
  if (!is_starter()) priority.emplace();
  Lock lock(mutex_);
  const uint64_t begin_ns = monotonic_ns();
  Patience& patience = patience_of_caller();
  const uint64_t taken_before_ns = taken_ns_;
  take_late_answers();
  const bool is_askable = question.size() <= kMaxQuestion_bytes && !is_late_about(subject) &&
                          patience.is_enough_for(kLongestWait_ns, begin_ns);
  Helper* const helper = is_askable ? find_helper(lock, begin_ns) : nullptr;
  std::optional<Answer> answer;
  const bool was_asked = helper != nullptr && may_ask(*helper, subject);
  if (was_asked) answer = ask_now(lock, *helper, question, subject);
  const uint64_t waited_ns = monotonic_ns() - begin_ns;
  const uint64_t taken_ns = std::min(taken_ns_ - taken_before_ns, waited_ns);
  patience.spend(answer ? taken_ns + (waited_ns - taken_ns) / kIdleShare : waited_ns);
  const auto number = static_cast<size_t>(helper == nullptr ? 0 : helper - helpers_.data());
  if (answer) return Answered{number, std::move(*answer)};
  if (was_asked && helper->state == State::Late && late != nullptr) *late = number;
  return std::nullopt;
}

bool HelperProcesses::is_free(const Helper& helper) const {
  return helper.state == State::Idle && (is_starter() || !helper.is_awaited_by_starter);
}

// The first that is free, or soon will be.
HelperProcesses::Helper* HelperProcesses::wait_for_any(Lock& lock, uint64_t begin_ns) {
  for (;;) {
    take_late_answers();
    const uint64_t now_ns = monotonic_ns();
    const auto found = std::ranges::find_if(helpers_, [&](const Helper& helper) {
      const bool answers_others = helper.state == State::Busy || helper.state == State::Idle;
      return is_free(helper) ||
             (answers_others && now_ns < std::min(begin_ns, helper.asked_ns) + kUsualWait_ns);
    });
    if (found == helpers_.end()) return nullptr;
    if (is_free(*found)) return &*found;
    wait_for_turn(lock, *found, std::min(begin_ns, found->asked_ns) + kUsualWait_ns);
  }
}

bool HelperProcesses::wait_for_turn(Lock& lock, Helper& helper, uint64_t deadline_ns) {
  const bool is_first = is_starter();
  if (is_first) helper.is_awaited_by_starter = true;
  const auto is_free = [&] {
    return helper.state != State::Busy && (is_first || !helper.is_awaited_by_starter);
  };
  const uint64_t now_ns = monotonic_ns();
  const std::chrono::nanoseconds left(deadline_ns - std::min(deadline_ns, now_ns));
  const bool is_our_turn = turns_.wait_for(lock, left, is_free);
  if (is_first) {
    helper.is_awaited_by_starter = false;
    turns_.notify_all();
  }
  return is_our_turn;
}

// What they answer is of no use any more.
void HelperProcesses::take_late_answers() {
  for (Helper& helper : helpers_) {
    if (helper.state != State::Late) continue;
    const auto received = receive_answer(helper.socket.get(), helper.room.get());
    if (received) helper.state = received->answer.bytes.empty() ? State::Ended : State::Idle;
  }
}

bool HelperProcesses::is_late_about(uint64_t subject) const {
  return std::ranges::any_of(helpers_, [subject](const Helper& helper) {
    return helper.state == State::Late && helper.subject == subject;
  });
}

bool HelperProcesses::may_ask(const Helper& helper, uint64_t subject) const {
  return !is_over_ && helper.state == State::Idle && !is_late_about(subject);
}

std::optional<HelperProcesses::Answer> HelperProcesses::ask_now(Lock& lock, Helper& helper,
                                                                Bytes question, uint64_t subject) {
  helper.state = State::Busy;
  helper.subject = subject;
  helper.asked_ns = monotonic_ns();
  lock.unlock();
  State state = State::Ended;
  uint64_t taken_ns = 0;
  auto answer = wait_for_answer(helper, question, state, taken_ns);
  lock.lock();
  helper.state = state;
  taken_ns_ += std::min(taken_ns, monotonic_ns() - helper.asked_ns);
  turns_.notify_all();
  return answer;
}

std::optional<HelperProcesses::Answer> HelperProcesses::wait_for_answer(const Helper& helper,
                                                                        Bytes question,
                                                                        State& state,
                                                                        uint64_t& taken_ns) {
  state = State::Ended;
  if (!send_message(helper.socket.get(), question, -1)) return std::nullopt;
  const uint64_t deadline_ns = monotonic_ns() + kLongestWait_ns;
  int ready = wait_for_message(helper.socket.get(), deadline_ns);
  const uint64_t now_ns = monotonic_ns();
  // Where we ourselves did not run for as long, the helper has not either, and gets its time now.
  const bool are_we_late = now_ns > deadline_ns + kSecondWait_ns;
  if (ready == 0 && are_we_late) {
    ready = wait_for_message(helper.socket.get(), now_ns + kSecondWait_ns);
  }
  if (ready == 0) state = State::Late;
  if (ready <= 0) return std::nullopt;
  auto received = receive_answer(helper.socket.get(), helper.room.get());
  if (!received || received->answer.bytes.empty()) return std::nullopt;
  state = State::Idle;
  taken_ns = received->taken_ns;
  return std::move(received->answer);
}

}  // namespace sentry_prof::os
