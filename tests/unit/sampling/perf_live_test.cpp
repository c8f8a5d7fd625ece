// The perf backend on real processes. Where the kernel does not permit it, each test is skipped.
#include "os/clock.h"
#include "sampling/perf_open.h"
#include "sampling/perf_sampler.h"
#include "sampling/thread_events.h"
#include "support/catch2.h"
#include "support/fork_child.h"
#include "support/skips.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

using namespace sentry_prof;
using namespace sentry_prof::sampling;

namespace {

// A process made by fork that runs `body`, ended and reaped with this object.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void()>& body) : pid_(test::fork_child()) {
    if (pid_ != 0) return;
    body();
    ::_exit(0);
  }
  ~ChildProcess() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }
  pid_t pid() const { return pid_; }
  double cpu_seconds() const {
    clockid_t clock;
    timespec time{};
    if (::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }

 private:
  pid_t pid_;
};

// A pipe that lets a child wait for the word to go on.
class Gate {
 public:
  Gate() { REQUIRE(::pipe(ends_) == 0); }
  ~Gate() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void open() { REQUIRE(::write(ends_[1], "x", 1) == 1); }
  void wait() {
    char byte;
    while (::read(ends_[0], &byte, 1) != 1) continue;
  }

 private:
  int ends_[2];
};

class Collector final : public EventSink {
 public:
  void on_event(const Event& event) override {
    times_decreased |= event.time_ns < last_time_ns_;
    last_time_ns_ = event.time_ns;
    if (const auto* sample = std::get_if<SampleEvent>(&event.body)) take(*sample);
    if (const auto* map = std::get_if<MapEvent>(&event.body)) paths.insert(std::string(map->path));
    if (const auto* comm = std::get_if<CommEvent>(&event.body); comm != nullptr && comm->is_exec) {
      executed.insert(std::string(comm->name));
    }
    if (const auto* exit = std::get_if<ExitEvent>(&event.body)) exited.insert(exit->tid);
  }
  size_t samples_of(pid_t tid) { return samples_by_tid[static_cast<uint32_t>(tid)]; }

  std::map<uint32_t, size_t> samples_by_tid;
  std::set<std::string> paths, executed;
  std::set<uint32_t> exited;
  size_t samples = 0, samples_with_stack = 0;
  bool times_decreased = false;

 private:
  void take(const SampleEvent& sample) {
    ++samples;
    ++samples_by_tid[sample.tid];
    if (sample.registers.is_present && !sample.stack.empty()) ++samples_with_stack;
  }
  uint64_t last_time_ns_ = 0;
};

SamplerOptions at_hz(uint32_t frequency_hz) {
  SamplerOptions options;
  options.frequency_hz = frequency_hz;
  return options;
}

void wait_and_drain(Sampler& sampler, EventSink& sink) {
  std::vector<pollfd> polled;
  for (int fd : sampler.poll_fds()) polled.push_back({fd, POLLIN, 0});
  ::poll(polled.data(), polled.size(), 20);
  sampler.drain(sink, false);
}

// Until `is_enough`, or 20 s have passed: then the checks behind it fail.
void record_until(Sampler& sampler, EventSink& sink, const std::function<bool()>& is_enough) {
  const uint64_t give_up_ns = os::monotonic_ns() + 20'000'000'000;
  while (!is_enough() && os::monotonic_ns() < give_up_ns) wait_and_drain(sampler, sink);
}

// False where the kernel does not let us: the test is skipped.
bool is_permitted(const Result<void>& attached) {
  if (attached) return true;
  const bool is_refusal = attached.error().code == ErrorCode::PermissionDenied ||
                          attached.error().code == ErrorCode::Unsupported;
  if (!is_refusal) FAIL(attached.error().message);
  testing::note_skip(attached.error().message);
  return false;
}

bool attach(Sampler& sampler, pid_t pid) {
  return is_permitted(sampler.attach(std::span<const pid_t>(&pid, 1)));
}

void burn() {
  volatile unsigned count = 0;
  for (;;) count = count + 1;
}

void burn_until_parent_ends() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  burn();
}

}  // namespace

TEST_CASE("a busy process is sampled with registers and stack, in step with its CPU time") {
  constexpr uint32_t kHz = 497;
  ChildProcess child(burn);
  auto sampler = make_perf_sampler(at_hz(kHz));
  if (!attach(*sampler, child.pid())) return;
  const double cpu_before = child.cpu_seconds();
  Collector seen;
  record_until(*sampler, seen, [&] { return seen.samples >= 300; });
  const double cpu_seconds = child.cpu_seconds() - cpu_before;
  sampler->stop();
  sampler->drain(seen, true);
  const SamplerStats& stats = sampler->stats();
  std::printf("%zu samples in %.3f s of CPU time at %u Hz (%s), %zu with stack, %lu samples lost\n",
              seen.samples, cpu_seconds, kHz, sampler->setup().event_name.c_str(),
              seen.samples_with_stack, static_cast<unsigned long>(stats.lost_samples));
  CHECK(seen.samples_of(child.pid()) == seen.samples);
  CHECK(seen.samples_with_stack == seen.samples);
  CHECK(stats.sample_records == seen.samples);
  CHECK(stats.undecodable == 0);
  CHECK_FALSE(seen.times_decreased);
  // A tenth for what runs between reading the clock and the attach or the stop.
  const double taken = static_cast<double>(seen.samples + stats.lost_samples);
  CHECK(taken >= 0.9 * kHz * cpu_seconds);
}

namespace {

// Whether a thread that is followed by its child on a CPU keeps its period (Linux 6.13).
bool keeps_periods() {
  const auto choices = probe_choices({});
  if (choices && choices->keeps_periods) return true;
  testing::note_optional_skip("needs perf_event_open, and Linux 6.13");
  return false;
}

void burn_one_second_of_cpu() {
  timespec used{};
  while (used.tv_sec < 1) ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
}

// Of a process that uses one second of CPU time, and inherited its events, while nobody reads the
// rings: no record comes behind the losses, so that none tells of them.
SamplerStats stats_of_unread_second(Sampler& sampler, bool is_ended_first) {
  Gate go, is_done;
  ChildProcess parent([&] {
    go.wait();
    ChildProcess heir([&] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      burn_one_second_of_cpu();
      is_done.open();
      ::pause();
    });
    ::pause();
  });
  if (!attach(sampler, parent.pid())) return {};
  go.open();
  is_done.wait();
  if (is_ended_first) {
    ::kill(parent.pid(), SIGKILL);
    parent.wait();
  }
  sampler.stop();
  Collector seen;
  sampler.drain(seen, true);
  return sampler.stats();
}

}  // namespace

TEST_CASE("samples that are lost to the very end are counted") {
  constexpr uint32_t kHz = 997;  // the rings have room for a quarter of a second each
  for (const bool is_ended_first : {true, false}) {
    CAPTURE(is_ended_first);
    auto sampler = make_perf_sampler(at_hz(kHz));
    const SamplerStats stats = stats_of_unread_second(*sampler, is_ended_first);
    if (!sampler->setup().counts_lost_samples) {
      testing::note_optional_skip("needs perf_event_open, and Linux 6.0");
      return;
    }
    std::printf("%lu samples and %lu lost in one second of CPU time at %u Hz\n",
                static_cast<unsigned long>(stats.sample_records),
                static_cast<unsigned long>(stats.lost_samples), kHz);
    CHECK(stats.lost_samples > 0);
    CHECK(static_cast<double>(stats.sample_records + stats.lost_samples) >= 0.9 * kHz);
    CHECK(stats.on_cpu_ns >= 900'000'000);
  }
}

TEST_CASE(
    "a launched shell that starts many short processes is sampled in step with its own CPU time") {
  constexpr uint32_t kHz = 997;
  Gate go;
  ChildProcess parent([&] {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    go.wait();
    ::execl("/bin/sh", "sh", "-c",
            "while :; do /bin/true; i=0; while [ $i -lt 300 ]; do i=$((i + 1)); done; done",
            static_cast<char*>(nullptr));
  });
  if (!keeps_periods()) return;
  auto sampler = make_perf_sampler(at_hz(kHz));
  if (!is_permitted(sampler->attach_before_exec(parent.pid()))) return;
  go.open();
  Collector seen;
  record_until(*sampler, seen, [&] { return parent.cpu_seconds() >= 0.4; });
  sampler->stop();
  sampler->drain(seen, true);
  std::printf("%zu samples of a parent in 0.4 s of CPU time at %u Hz\n",
              seen.samples_of(parent.pid()), kHz);
  const double seen_share = static_cast<double>(seen.samples_of(parent.pid())) / (0.4 * kHz);
  // Without a period of its own it is a few samples; a busy machine took away a fifth once.
  CHECK(seen_share + static_cast<double>(sampler->stats().lost_samples) / (0.4 * kHz) >= 0.7);
}

TEST_CASE("nothing comes after stop") {
  ChildProcess child(burn);
  auto sampler = make_perf_sampler(at_hz(997));
  if (!attach(*sampler, child.pid())) return;
  Collector seen;
  record_until(*sampler, seen, [&] { return seen.samples >= 20; });
  CHECK(seen.samples >= 20);
  sampler->stop();
  sampler->drain(seen, true);
  const uint64_t records = sampler->stats().records;
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  sampler->drain(seen, true);
  CHECK(sampler->stats().records == records);
  CHECK(sampler->stats().cpus_not_sampled == 0);
}

TEST_CASE("threads that are there and threads that are born later are all sampled") {
  Gate second;
  ChildProcess child([&] {
    std::thread first(burn);
    second.wait();
    std::thread later(burn);
    later.join();
  });
  auto sampler = make_perf_sampler(at_hz(497));
  if (!attach(*sampler, child.pid())) return;
  Collector seen;
  record_until(*sampler, seen, [&] { return seen.samples >= 10; });
  CHECK(seen.samples_by_tid.size() == 1);
  second.open();
  // The main thread may be hit as well, while it starts the second.
  const auto has_both = [&] {
    return std::ranges::count_if(seen.samples_by_tid,
                                 [](auto& entry) { return entry.second >= 10; }) == 2;
  };
  record_until(*sampler, seen, has_both);
  CHECK(has_both());
}

TEST_CASE("a launched command is sampled from its exec on") {
  Gate go;
  ChildProcess child([&] {
    go.wait();
    ::execl("/bin/sh", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", nullptr);
  });
  auto sampler = make_perf_sampler(at_hz(997));
  if (!is_permitted(sampler->attach_before_exec(child.pid()))) return;
  Collector seen;
  go.open();
  const auto pid = static_cast<uint32_t>(child.pid());
  record_until(*sampler, seen, [&] { return seen.exited.contains(pid); });
  CHECK(seen.exited.contains(pid));
  CHECK(seen.executed.size() == 1);
  CHECK(seen.samples > 0);
  const auto is_libc = [](const std::string& path) { return path.find("libc") != path.npos; };
  CHECK(std::ranges::any_of(seen.paths, is_libc));
}

TEST_CASE("children are followed, or not, as asked") {
  for (const bool follows : {true, false}) {
    CAPTURE(follows);
    Gate go;
    ChildProcess parent([&] {
      go.wait();
      ChildProcess child(burn_until_parent_ends);
      burn();
    });
    SamplerOptions options = at_hz(497);
    options.follow_children = follows;
    auto sampler = make_perf_sampler(options);
    if (!attach(*sampler, parent.pid())) return;
    Collector seen;
    go.open();
    record_until(*sampler, seen, [&] { return seen.samples >= 100; });
    CHECK(seen.samples_by_tid.size() == (follows ? 2 : 1));
    CHECK(seen.samples_of(parent.pid()) > 0);
  }
}

TEST_CASE("a process that has ended is told as gone") {
  ChildProcess child([] {});
  const pid_t pid = child.pid();
  child.wait();
  auto sampler = make_perf_sampler(at_hz(101));
  const auto attached = sampler->attach(std::span(&pid, 1));
  REQUIRE_FALSE(attached.has_value());
  if (attached.error().code != ErrorCode::Gone) {
    CHECK_FALSE(is_permitted(attached));
    return;
  }
  CHECK(attached.error().message.find(std::to_string(pid)) != std::string::npos);
}

TEST_CASE("of several processes the one that is refused is named") {
  ChildProcess process([] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(1);
    const std::vector<pid_t> pids = {::getpid(), 1};
    const auto attached = make_perf_sampler(at_hz(101))->attach(pids);
    if (attached) ::_exit(1);  // process 1 is ours as well: a container
    const std::string& message = attached.error().message;
    if (message.find("process") == std::string::npos) ::_exit(1);  // perf itself is refused
    ::_exit(message.find("process 1 ") != std::string::npos ? 0 : 2);
  });
  const int outcome = WEXITSTATUS(process.wait());
  if (outcome == 1) {
    testing::note_optional_skip("sampling oneself is not permitted, or process 1 is");
  }
  CHECK(outcome <= 1);
}

TEST_CASE("a frequency above the kernel's limit is refused with that limit") {
  ChildProcess child([] { ::pause(); });
  auto sampler = make_perf_sampler(at_hz(2'000'000'000));
  const pid_t pid = child.pid();
  const auto attached = sampler->attach(std::span(&pid, 1));
  REQUIRE_FALSE(attached.has_value());
  if (attached.error().code != ErrorCode::InvalidArgument) {
    CHECK_FALSE(is_permitted(attached));
    return;
  }
  CHECK(attached.error().message.find("perf_event_max_sample_rate") != std::string::npos);
}

namespace {

// Attaches to a process of 100 threads with only so many open files; in a process of its own, since
// the hard limit cannot be raised again.
Result<SamplerSetup> attach_with_file_limit(rlim_t limit) {
  Gate ready;
  ChildProcess target([&] {
    for (int i = 1; i < 100; ++i) std::thread([] { ::pause(); }).detach();
    ready.open();
    ::pause();
  });
  ready.wait();
  const rlimit files{limit, limit};
  ::setrlimit(RLIMIT_NOFILE, &files);
  auto sampler = make_perf_sampler(at_hz(101));
  const pid_t pid = target.pid();
  if (auto attached = sampler->attach(std::span(&pid, 1)); !attached) {
    return tl::unexpected<Error>(attached.error());
  }
  return sampler->setup();
}

// 0: attached to all threads; 1: not permitted; 2: refused for the limit; 3: something else.
int outcome_with_file_limit(rlim_t limit) {
  ChildProcess process([&] {
    const auto setup = attach_with_file_limit(limit);
    if (setup) ::_exit(setup->threads_attached == 100 ? 0 : 3);
    if (setup.error().code == ErrorCode::LimitExceeded) ::_exit(2);
    ::_exit(setup.error().code == ErrorCode::PermissionDenied ? 1 : 3);
  });
  return WEXITSTATUS(process.wait());
}

}  // namespace

TEST_CASE("with few open files, all threads are attached in the cheaper way or none") {
  if (outcome_with_file_limit(100'000) == 1) {
    testing::note_skip("perf_event_open is not permitted");
    return;
  }
  const auto cpus = static_cast<rlim_t>(std::thread::hardware_concurrency());
  CHECK(outcome_with_file_limit(100 * cpus * 3 / 2 + 200) == 0);
  // Root raises even the hard limit where it has CAP_SYS_RESOURCE.
  const int with_64 = outcome_with_file_limit(64);
  CHECK((with_64 == 2 || (with_64 == 0 && ::geteuid() == 0)));
}

TEST_CASE("a thread that could not be opened on all CPUs leaves no late event behind") {
  const std::vector<int> cpus = {0, 0};  // two rings, on any machine
  const auto rings = open_rings(cpus, 128 * 1024);
  if (!rings) {
    testing::note_skip(rings.error().message);
    return;
  }
  EventChoices choices;
  choices.excludes_kernel = true;
  const ThreadAttrs attrs{std::nullopt, sampling_attr(choices)};
  std::vector<uint64_t> told;
  const auto on_late_event = [&](uint32_t, uint32_t, uint64_t id) { told.push_back(id); };
  ThreadEvents too_few(*rings, 1);
  CHECK(too_few.open_thread(::gettid(), attrs, on_late_event) == EMFILE);
  CHECK(told.empty());
  ThreadEvents enough(*rings, 2);
  CHECK(enough.open_thread(::gettid(), attrs, on_late_event) == 0);
  CHECK(told.size() == 2);
}
