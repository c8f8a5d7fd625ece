#include "os/helper_processes.h"

#include "os/priority.h"
#include "support/catch2.h"
#include "support/skips.h"
#include "support/wait_until.h"
#include "unit/os/scratch.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

using namespace sentry_prof;
using os::HelperProcesses;

namespace {

constexpr uint64_t kSubject = 7;

// Half of the longest wait, and something less.
constexpr auto kLongAnswer = std::chrono::milliseconds(500);
constexpr uint64_t kLessThanLongAnswer_ns = 400'000'000;

// What the helpers of these tests can do. `door` is a FIFO.
HelperProcesses::Answer give_answer(const std::string& question, const std::string& door,
                                    unsigned& count) {
  if (question == "end") ::_exit(3);
  if (question == "wait") {
    std::ofstream(door + ".stood_at") << "";
    ::close(::open(door.c_str(), O_RDONLY));
  }
  if (question == "take long") std::this_thread::sleep_for(kLongAnswer);
  if (question == "pid") return {std::to_string(::getpid()), os::Fd()};
  if (question == "open") return {"opened", os::Fd(::open("/proc/self/comm", O_RDONLY))};
  if (question == "much") return {std::string(HelperProcesses::kMaxAnswer_bytes, 'm'), os::Fd()};
  if (question == "too much") {
    return {std::string(HelperProcesses::kMaxAnswer_bytes + 1, 'm'), os::Fd()};
  }
  return {std::to_string(++count), os::Fd()};
}

class Helpers {
 public:
  explicit Helpers(os::Patience patience = {HelperProcesses::kPatienceShare,
                                            HelperProcesses::kMostPatience_ns}) {
    REQUIRE(::mkfifo(door_.c_str(), 0600) == 0);
    auto started = HelperProcesses::start(
        "test-helper",
        [door = door_, count = 0u](Bytes question) mutable {
          return give_answer({reinterpret_cast<const char*>(question.data()), question.size()},
                             door, count);
        },
        patience);
    REQUIRE(started);
    helpers_ = std::move(*started);
  }
  ~Helpers() {
    // Who still waits there may go.
    const os::Fd door(::open(door_.c_str(), O_RDWR | O_NONBLOCK));
    helpers_.reset();
  }

  std::optional<HelperProcesses::Answered> ask_any(const std::string& question,
                                                   uint64_t subject = 0) {
    return helpers_->ask_any(std::as_bytes(std::span(question)), subject);
  }
  // Empty: none.
  std::string answer_of(size_t helper, const std::string& question) {
    const auto answer = helpers_->ask(helper, std::as_bytes(std::span(question)), 0);
    return answer ? answer->bytes : "";
  }
  // Waits until a helper stands at the door.
  void open_door() const { ::close(::open(door_.c_str(), O_WRONLY)); }
  // Until a helper waits there.
  void wait_for_who_stands_at_door() const {
    REQUIRE(test::wait_until([&] { return std::filesystem::exists(door_ + ".stood_at"); }));
  }
  void end() { helpers_->end(); }

 private:
  test::ScratchDirectory directory_;
  std::string door_ = directory_ / "door";
  std::unique_ptr<HelperProcesses> helpers_;
};

std::atomic<bool> g_is_stopping = false;

// Two and a half of the longest waits.
constexpr int kStop_ms = static_cast<int>(HelperProcesses::kLongestWait_ns * 5 / 2 / 1'000'000);

// While it lives SIGUSR1 stops a thread.
class StoppingSignal {
 public:
  StoppingSignal() {
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int error_number = errno;
      ::poll(nullptr, 0, kStop_ms);
      errno = error_number;
      g_is_stopping = false;
    };
    REQUIRE(::sigaction(SIGUSR1, &action, &previous_) == 0);
  }
  ~StoppingSignal() { ::sigaction(SIGUSR1, &previous_, nullptr); }
  StoppingSignal(const StoppingSignal&) = delete;
  StoppingSignal& operator=(const StoppingSignal&) = delete;

 private:
  struct sigaction previous_ {};
};

// Another thread, which waits for the answer of a helper that stands at the door.
class WaitingThread {
 public:
  explicit WaitingThread(Helpers& helpers)
      : thread_([this, &helpers] {
          tid_ = static_cast<pid_t>(::syscall(SYS_gettid));
          const os::ThreadPriority before = os::thread_priority();
          got_answer_ = helpers.ask_any("wait", kSubject).has_value();
          has_priority_of_before_ = os::thread_priority() == before;
          is_done_ = true;
        }) {
    helpers.wait_for_who_stands_at_door();
  }
  WaitingThread(const WaitingThread&) = delete;
  WaitingThread& operator=(const WaitingThread&) = delete;
  ~WaitingThread() { join(); }

  bool is_done() const { return is_done_; }
  bool got_answer() const { return got_answer_; }
  int nice() const { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(tid_)); }
  // Until it has been stopped for kStop_ms and goes on where it was. With a StoppingSignal.
  void stop() {
    g_is_stopping = true;
    ::pthread_kill(thread_.native_handle(), SIGUSR1);
    REQUIRE(test::wait_until([this] { return !g_is_stopping || is_done_; }));
  }
  bool has_priority_of_before() const { return has_priority_of_before_; }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<pid_t> tid_ = 0;
  std::atomic<bool> got_answer_ = false;
  std::atomic<bool> has_priority_of_before_ = false;
  std::atomic<bool> is_done_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("A helper answers, remembers, and passes files on") {
  Helpers helpers;
  const auto first = helpers.ask_any("count");
  REQUIRE(first);
  CHECK(first->answer.bytes == "1");
  CHECK_FALSE(first->answer.fd.is_open());
  CHECK(helpers.answer_of(first->helper, "count") == "2");
  const auto opened = helpers.ask_any("open");
  REQUIRE(opened);
  CHECK(opened->helper == first->helper);
  CHECK(opened->answer.bytes == "opened");
  char letter = 0;
  CHECK(::read(opened->answer.fd.get(), &letter, 1) == 1);
}

TEST_CASE("A helper that is late is left alone until it answers, and so is what it is about") {
  Helpers helpers;
  CHECK_FALSE(helpers.ask_any("wait", kSubject));
  CHECK(helpers.answer_of(0, "count").empty());
  CHECK_FALSE(helpers.ask_any("count", kSubject));
  const auto other = helpers.ask_any("count", kSubject + 1);
  REQUIRE(other);
  CHECK(other->helper == 1);
  CHECK(other->answer.bytes == "1");

  helpers.open_door();
  std::string answer;
  for (int i = 0; i < 1000 && answer.empty(); ++i) {
    ::usleep(5000);
    answer = helpers.answer_of(0, "count");
  }
  CHECK(answer == "2");  // the late answer was the first, and is not taken for this one
  CHECK(helpers.ask_any("count", kSubject));
}

TEST_CASE("A late helper that is killed gives free what it was about") {
  Helpers helpers;
  const auto pid = helpers.ask_any("pid");
  REQUIRE(pid);
  CHECK_FALSE(helpers.ask_any("wait", kSubject));
  CHECK(::kill(std::stoi(pid->answer.bytes), SIGKILL) == 0);
  std::optional<HelperProcesses::Answered> next;
  for (int i = 0; i < 1000 && !next; ++i) {
    ::usleep(5000);
    next = helpers.ask_any("count", kSubject);
  }
  REQUIRE(next);
  CHECK(next->helper == 1);
}

TEST_CASE("Nothing is answered behind the end") {
  Helpers helpers;
  CHECK(helpers.ask_any("count"));
  helpers.end();
  CHECK_FALSE(helpers.ask_any("count"));
  CHECK(helpers.answer_of(0, "count").empty());
}

TEST_CASE("While one thread waits for a helper, another one is answered by the next") {
  Helpers helpers;
  WaitingThread waiting(helpers);
  const auto answered = helpers.ask_any("count", kSubject + 1);
  CHECK_FALSE(waiting.is_done());
  REQUIRE(answered);
  CHECK(answered->helper == 1);
}

TEST_CASE("Who started the helpers waits for a turn less long than for an answer") {
  Helpers helpers;
  REQUIRE(helpers.ask_any("count"));
  WaitingThread waiting(helpers);
  CHECK(helpers.answer_of(0, "count").empty());
  CHECK_FALSE(waiting.is_done());
  waiting.join();
}

TEST_CASE("A thread that asks runs before normal ones until it has its answer, as helpers do") {
  int highest_nice = 0;
  std::thread([&] {
    const os::RaisedPriority priority;
    highest_nice = os::thread_priority().nice;
  }).join();
  if (highest_nice == os::thread_priority().nice) {
    testing::note_skip("threads may not be given a higher priority here");
    return;
  }
  Helpers helpers;
  WaitingThread waiting(helpers);
  CHECK(waiting.nice() == highest_nice);
  helpers.open_door();
  waiting.join();
  CHECK(waiting.has_priority_of_before());
}

TEST_CASE("Two threads that ask one helper at once get their own answers") {
  constexpr size_t kQuestions = 1000;
  Helpers helpers;
  std::set<std::string> others;
  std::thread other([&] {
    for (size_t i = 0; i < kQuestions; ++i) {
      const auto answered = helpers.ask_any("count", kSubject);
      if (answered && answered->helper == 0) others.insert(answered->answer.bytes);
    }
  });
  std::set<std::string> own;
  for (size_t i = 0; i < kQuestions; ++i) own.insert(helpers.answer_of(0, "count"));
  other.join();
  CHECK(own.size() == kQuestions);
  CHECK_FALSE(own.contains(""));
  own.merge(others);
  CHECK(others.empty());
}

TEST_CASE("The patience that one thread has lost is not another one's") {
  // Never grows again.
  Helpers helpers(os::Patience(~uint64_t{0}, HelperProcesses::kLongestWait_ns));
  WaitingThread waiting(helpers);
  waiting.join();
  bool got_answer = true;
  std::thread([&] { got_answer = helpers.ask_any("count", kSubject + 1).has_value(); }).join();
  CHECK_FALSE(got_answer);
  CHECK(helpers.ask_any("count", kSubject + 1));
}

TEST_CASE("What an answer takes is spent of the patience, but not the time before it is begun") {
  // Never grows again. The second question is asked with what the first one left.
  Helpers helpers(
      os::Patience(~uint64_t{0}, HelperProcesses::kLongestWait_ns + kLessThanLongAnswer_ns));
  const auto pid = helpers.ask_any("pid");
  REQUIRE(pid);
  const pid_t helper = std::stoi(pid->answer.bytes);
  REQUIRE(::kill(helper, SIGSTOP) == 0);
  std::thread waker([helper] {
    std::this_thread::sleep_for(kLongAnswer);
    ::kill(helper, SIGCONT);
  });
  const auto delayed = helpers.ask_any("count");
  waker.join();
  REQUIRE(delayed);
  CHECK(delayed->helper == pid->helper);
  CHECK(helpers.ask_any("take long"));
  CHECK_FALSE(helpers.ask_any("count"));
}

TEST_CASE("Who waits for an answer at the end gets none") {
  Helpers helpers;
  WaitingThread waiting(helpers);
  helpers.end();
  waiting.join();
  CHECK_FALSE(waiting.got_answer());
  CHECK_FALSE(helpers.ask_any("count"));
}

TEST_CASE("Who did not run for long behind the time of an answer waits a little more for it") {
  constexpr int kTries = 4;  // on a machine so busy that a little is not enough, either
  const StoppingSignal signal;
  bool got_answer = false;
  for (int i = 0; i < kTries && !got_answer; ++i) {
    Helpers helpers;
    WaitingThread waiting(helpers);
    waiting.stop();
    helpers.open_door();
    waiting.join();
    got_answer = waiting.got_answer();
  }
  CHECK(got_answer);
}

TEST_CASE("A helper that has ended is not asked again") {
  Helpers helpers;
  CHECK_FALSE(helpers.ask_any("end"));
  CHECK(helpers.answer_of(0, "count").empty());
  const auto next = helpers.ask_any("count");
  REQUIRE(next);
  CHECK(next->helper == 1);
}

TEST_CASE("A question that does not fit into a message is not asked") {
  Helpers helpers;
  CHECK_FALSE(helpers.ask_any(std::string(HelperProcesses::kMaxQuestion_bytes + 1, 'x')));
  CHECK(helpers.ask_any(std::string(HelperProcesses::kMaxQuestion_bytes, 'x')));
}

TEST_CASE("An answer may be long; of one that is too long nothing is taken") {
  Helpers helpers;
  const auto much = helpers.ask_any("much");
  REQUIRE(much);
  CHECK(much->answer.bytes == std::string(HelperProcesses::kMaxAnswer_bytes, 'm'));
  CHECK(helpers.answer_of(much->helper, "again") == "1");
  CHECK_FALSE(helpers.ask_any("too much"));
}

TEST_CASE("A helper that hangs keeps nothing of ours open") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const os::Fd reader(ends[0]);
  os::Fd writer(ends[1]);
  Helpers helpers;
  CHECK_FALSE(helpers.ask_any("wait"));
  writer.reset();
  pollfd entry{reader.get(), POLLIN, 0};
  CHECK(::poll(&entry, 1, 10'000) == 1);
  CHECK((entry.revents & POLLHUP) != 0);
}

TEST_CASE("Patience grows with time, up to a bound") {
  os::Patience patience(5, 100);
  CHECK(patience.is_enough_for(100, 1000));
  CHECK_FALSE(patience.is_enough_for(101, 1'000'000));
  patience.spend(80);
  CHECK(patience.is_enough_for(20, 1'000'000));
  CHECK_FALSE(patience.is_enough_for(30, 1'000'049));
  CHECK(patience.is_enough_for(30, 1'000'054));
  patience.spend(1000);
  CHECK_FALSE(patience.is_enough_for(1, 1'000'054));
}
