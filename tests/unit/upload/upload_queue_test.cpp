#include "upload/upload_queue.h"

#include "integration/temporary_directory.h"
#include "os/clock.h"
#include "support/catch2.h"
#include "support/wait_until.h"
#include "unit/upload/failing_disk.h"
#include "upload/clock_waiter.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using namespace sentry_prof::upload;
using sentry_prof::sentry::Dsn;
using sentry_prof::test::wait_until;
using sentry_prof::testing::TemporaryDirectory;

namespace {

constexpr uint64_t kLong_ns = 20'000'000'000;  // a bound, never waited for

// Answers all requests with one status, but those of `poison` with 500, those of `refused` with 413
// and those of `limited` with a limit for chunks.
class FixedClient final : public HttpClient {
 public:
  HttpResult post(const HttpRequest& request) override {
    if (during_post) during_post(request.body);  // which may call the queue
    const std::lock_guard lock(mutex_);
    bodies_.emplace_back(request.body);
    times_ns_.push_back(sentry_prof::os::monotonic_ns());
    if (is_out_of_memory.exchange(false)) throw std::bad_alloc();
    HttpReply reply;
    reply.status = request.body == poison ? 500 : status.load();
    if (reply.status == 429) reply.retry_after = "100";
    reply.rate_limits = rate_limits;
    if (request.body == refused) reply.status = 413;
    if (request.body == limited) {
      reply.status = 429;
      reply.rate_limits = "100:profile_chunk:key";
    }
    return reply;
  }
  std::vector<std::string> bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  // Between one request and the next.
  std::vector<uint64_t> gaps_ns() const {
    const std::lock_guard lock(mutex_);
    std::vector<uint64_t> gaps_ns;
    for (size_t i = 1; i < times_ns_.size(); ++i) {
      gaps_ns.push_back(times_ns_[i] - times_ns_[i - 1]);
    }
    return gaps_ns;
  }
  std::atomic<int> status = 200;
  std::atomic<bool> is_out_of_memory = false;
  std::string poison = "none", limited = "none", refused = "none";
  std::string rate_limits;
  std::function<void(std::string_view)> during_post;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> bodies_;
  std::vector<uint64_t> times_ns_;
};

struct Bench {
  FixedClient client;
  StopEvent stop = *StopEvent::create();
  ClockWaiter waiter{stop.fd()};
  Uploader uploader{*Dsn::parse("http://key@localhost/1"), client, waiter, options(),
                    [] { return uint64_t{0}; }};

  std::string spool;
  QueueEvents events;

  static UploaderOptions options() {
    UploaderOptions result;
    result.retries.max_retries = 0;
    return result;
  }
  std::unique_ptr<UploadQueue> start(QueueOptions options = {}) {
    auto queue = UploadQueue::start(uploader, stop, spool, options, events);
    REQUIRE(queue);
    return std::move(*queue);
  }
};

QueuedEnvelope envelope(const std::string& body) {
  return {body, BodyEncoding::Identity, Category::ProfileChunk};
}

}  // namespace

TEST_CASE("A queue sends all in the order of putting") {
  Bench bench;
  const auto queue = bench.start();
  for (const char* body : {"a", "b", "c"}) queue->put(envelope(body));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 3);
  CHECK(figures.unsent.empty());
  CHECK(bench.client.bodies() == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("What a server that fails did not take is given back, the oldest first") {
  Bench bench;
  bench.client.status = 503;
  const auto queue = bench.start();
  for (const char* body : {"a", "b"}) queue->put(envelope(body));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 0);
  REQUIRE(figures.unsent.size() == 2);
  CHECK(figures.unsent[0].body == "a");
  CHECK(figures.unsent[1].body == "b");
  REQUIRE(figures.trouble);
  CHECK(figures.trouble->kind == OutcomeKind::ServerFailed);
}

TEST_CASE("An envelope that breaks the server does not hold up the others in memory") {
  Bench bench;
  bench.client.poison = "poison";
  const auto queue = bench.start();
  for (const char* body : {"poison", "a", "poison", "poison", "b"}) queue->put(envelope(body));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 2);
  CHECK(figures.unsent.size() == 3);
  REQUIRE(figures.trouble);
  CHECK(figures.trouble->kind == OutcomeKind::ServerFailed);
}

TEST_CASE("What goes on failing is told once, although others are accepted") {
  Bench bench;
  bench.client.poison = "poison";
  int told = 0;
  bench.events.failed = [&](const Outcome&) { ++told; };
  QueueOptions options;
  options.pause_ns = 1;
  const auto queue = bench.start(options);
  queue->put(envelope("poison"));
  for (const char* body : {"a", "b"}) {
    queue->put(envelope(body));
    const size_t requests = bench.client.bodies().size() + 5;
    REQUIRE(wait_until([&] { return bench.client.bodies().size() >= requests; }));
  }
  CHECK(queue->finish(kLong_ns).accepted == 2);
  CHECK(told == 1);
}

TEST_CASE("What is refused for good is counted and not sent again") {
  Bench bench;
  bench.client.status = 413;
  const auto queue = bench.start();
  queue->put(envelope("a"));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.refused == 1);
  CHECK(figures.unsent.empty());
  CHECK(bench.client.bodies().size() == 1);
}

TEST_CASE("What comes while a last round fails is tried, too") {
  Bench bench;
  const auto queue = bench.start();
  bench.client.status = 401;
  bench.client.during_post = [&](std::string_view) {
    if (bench.client.bodies().empty()) {
      queue->put(envelope("b"));
      queue->end_within(0, 0);
    } else {
      bench.client.status = 200;
    }
  };
  queue->put(envelope("a"));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(bench.client.bodies() == std::vector<std::string>{"a", "a", "b"});
  CHECK(figures.accepted == 2);
}

TEST_CASE("What is accepted from the spool is no reason to forget why memory's is left") {
  const TemporaryDirectory directory;
  Bench bench;
  bench.spool = directory.path() + "/spool";
  bench.client.poison = "poison";
  const auto queue = bench.start();
  auto other = Spool::open(bench.spool);
  REQUIRE(other);
  REQUIRE(::rename(bench.spool.c_str(), (bench.spool + ".away").c_str()) == 0);
  bench.client.during_post = [&](std::string_view body) {
    if (body != "poison") return;
    ::rename((bench.spool + ".away").c_str(), bench.spool.c_str());
    other->keep("a", BodyEncoding::Identity, Category::ProfileChunk).value();
    queue->end_within(0, 0);
  };
  queue->put(envelope("poison"));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 1);
  CHECK(figures.left_in_spool == 1);
  REQUIRE(figures.trouble);
  CHECK(figures.trouble->kind == OutcomeKind::ServerFailed);
}

TEST_CASE("What becomes of earlier runs' envelopes is counted apart from this run's own") {
  const TemporaryDirectory directory;
  Bench bench;
  bench.spool = directory.path() + "/spool";
  bench.client.refused = "refused";
  bench.client.poison = "poison";
  const bool is_own = GENERATE(false, true);
  std::unique_ptr<UploadQueue> queue;
  if (is_own) {
    queue = bench.start();
    queue->put(envelope("refused"));
    queue->put(envelope("poison"));
  } else {
    auto earlier = Spool::open(bench.spool, destination_of(bench.uploader.dsn()));
    REQUIRE(earlier);
    const auto keep = [&](const char* body) {
      return bench.spool + "/" +
             *earlier->keep(body, BodyEncoding::Identity, Category::ProfileChunk);
    };
    keep("refused");
    keep("poison");
    REQUIRE(::truncate(keep("damaged").c_str(), 3) == 0);
    auto old = *parse_spool_name(keep("old").substr(bench.spool.size() + 1));
    const std::string new_path = bench.spool + "/" + to_text(old);
    old.kept_unix_ns = 1;
    REQUIRE(::rename(new_path.c_str(), (bench.spool + "/" + to_text(old)).c_str()) == 0);
    queue = bench.start();
  }
  queue->put(envelope("a"));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 1);
  CHECK(figures.refused == 1);
  CHECK(figures.left_in_spool == 1);
  CHECK(figures.losses.set_aside == (is_own ? 0 : 1));
  CHECK(figures.losses.dropped() == (is_own ? 0 : 1));
  CHECK(figures.own.refused == (is_own ? 1 : 0));
  CHECK(figures.own.refusal.has_value() == is_own);
  CHECK(figures.own.left_in_spool == (is_own ? 1 : 0));
  CHECK(figures.own.losses.set_aside == 0);
  CHECK(figures.own.losses.dropped() == 0);
}

TEST_CASE("A full queue drops the oldest and counts them") {
  Bench bench;
  bench.client.status = 503;
  QueueOptions options;
  options.max_bytes = 25;
  const auto queue = bench.start(options);
  for (const char c : {'a', 'b', 'c', 'd', 'e'}) queue->put(envelope(std::string(10, c)));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.dropped + figures.unsent.size() == 5);
  REQUIRE(figures.unsent.size() <= 2);
  CHECK(figures.unsent.back().body == "eeeeeeeeee");
}

TEST_CASE("What a failing spool does not take is sent from memory, and told at once") {
  const TemporaryDirectory directory;
  Bench bench;
  bench.spool = directory.path() + "/spool";
  int failures = 0, repairs = 0;
  bench.events.spool_failed = [&](const sentry_prof::Error&) { ++failures; };
  bench.events.spool_works = [&] { ++repairs; };
  const auto queue = bench.start();
  // Gone, as the directory of a file system that was unmounted.
  REQUIRE(::rmdir(bench.spool.c_str()) == 0);
  for (const char* body : {"a", "b"}) queue->put(envelope(body));
  CHECK(failures == 1);
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 2);
  CHECK(figures.not_kept == 2);
  CHECK(repairs == 0);
}

TEST_CASE("What is left of a failing spool goes there once it works again, else back") {
  const TemporaryDirectory directory;
  Bench bench;
  bench.client.status = 503;
  bench.spool = directory.path() + "/spool";
  const bool is_mended = GENERATE(false, true);
  const auto queue = bench.start();
  REQUIRE(::rename(bench.spool.c_str(), (bench.spool + ".away").c_str()) == 0);
  queue->put(envelope("a"));
  if (is_mended) REQUIRE(::rename((bench.spool + ".away").c_str(), bench.spool.c_str()) == 0);
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.unsent.size() == (is_mended ? 0 : 1));
  CHECK(figures.left_in_spool == (is_mended ? 1 : 0));
}

TEST_CASE("Where the newest is limited, a round goes on with those before it, and ends") {
  Bench bench;
  bench.client.poison = "bad";
  bench.client.limited = "limited";
  UploaderOptions options = Bench::options();
  options.longest_limit_wait_ns = 0;
  Uploader uploader(*Dsn::parse("http://key@localhost/1"), bench.client, bench.waiter, options,
                    [] { return uint64_t{0}; });
  auto queue = UploadQueue::start(uploader, bench.stop, "", {}, {});
  REQUIRE(queue);
  for (int i = 0; i < 4; ++i) (*queue)->put(envelope("bad"));
  (*queue)->put({"good", BodyEncoding::Identity, Category::Transaction});
  (*queue)->put(envelope("limited"));
  const QueueFigures figures = (*queue)->finish(kLong_ns);
  CHECK(figures.accepted == 1);
  CHECK(figures.unsent.size() == 5);
}

TEST_CASE("Running out of memory in an upload ends neither the recording nor the envelope") {
  Bench bench;
  bench.client.is_out_of_memory = true;
  QueueOptions options;
  options.pause_ns = 1;
  const auto queue = bench.start(options);
  queue->put(envelope("a"));
  REQUIRE(wait_until([&] { return bench.client.bodies().size() >= 2; }));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 1);
  CHECK_FALSE(figures.error);  // all was sent in the end
}

TEST_CASE("Nobody waits at the end for a limit that holds for longer") {
  Bench bench;
  bench.client.status = 429;
  UploaderOptions options;
  Uploader patient(*Dsn::parse("http://key@localhost/1"), bench.client, bench.waiter, options,
                   [] { return uint64_t{0}; });
  auto queue = UploadQueue::start(patient, bench.stop, "", {}, {});
  REQUIRE(queue);
  (*queue)->put(envelope("a"));
  // 100 s are left.
  CHECK((*queue)->end_within(kLong_ns, 5'000'000'000) == QueueEnd::Limited);
  const QueueFigures figures = (*queue)->finish(0);
  REQUIRE(figures.trouble);
  CHECK(figures.trouble->kind == OutcomeKind::RateLimited);  // not "cancelled"
  CHECK(figures.unsent.size() == 1);
}

TEST_CASE("A limit that came with an answer of success holds at the end, too") {
  Bench bench;
  bench.client.rate_limits = "100::organization";
  auto queue = bench.start();
  queue->put(envelope("a"));
  REQUIRE(wait_until([&] { return !bench.client.bodies().empty(); }));
  queue->put(envelope("b"));
  CHECK(queue->end_within(kLong_ns, 5'000'000'000) == QueueEnd::Limited);
  const QueueFigures figures = queue->finish(0);
  CHECK(figures.accepted == 1);
  REQUIRE(figures.trouble);
  CHECK(figures.trouble->kind == OutcomeKind::RateLimited);
  CHECK(figures.unsent.size() == 1);
}

TEST_CASE("What a spool took back is sent once, from memory, and told") {
  const TemporaryDirectory directory;
  Bench bench;
  bench.spool = directory.path() + "/spool";
  std::vector<std::string> failures;
  bench.events.spool_failed = [&](const sentry_prof::Error& error) {
    failures.push_back(error.message);
  };
  // Until the end the queue's thread does not look into the spool again.
  bench.client.status = 503;
  const auto queue = bench.start();
  queue->put(envelope("kept"));
  REQUIRE(wait_until([&] { return !bench.client.bodies().empty(); }));
  {
    const sentry_prof::test::FailingDisk disk(sentry_prof::test::DiskCall::SyncDirectory);
    queue->put(envelope("taken back"));
  }
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].find("EIO") != std::string::npos);
  bench.client.status = 200;
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(bench.client.bodies() == std::vector<std::string>{"kept", "taken back", "kept"});
  CHECK(figures.accepted == 2);
  CHECK(figures.not_kept == 1);
  CHECK(figures.left_in_spool == 0);
}

namespace {

// The pauses between the first rounds with a server that answers `status`; the envelope is kept.
std::vector<uint64_t> pauses_with(int status, uint64_t pause_ns, size_t count,
                                  bool has_accepted_others = false) {
  Bench bench;
  QueueOptions options;
  options.pause_ns = pause_ns;
  const auto queue = bench.start(options);
  if (has_accepted_others) {
    queue->put(envelope("other"));
    REQUIRE(wait_until([&] { return !bench.client.bodies().empty(); }));
  }
  bench.client.status = status;
  queue->put(envelope("a"));
  REQUIRE(wait_until([&] { return bench.client.gaps_ns().size() >= count; }));
  std::vector<uint64_t> pauses_ns = bench.client.gaps_ns();
  pauses_ns.resize(count);
  CHECK(queue->finish(kLong_ns).unsent.size() == 1);
  return pauses_ns;
}

}  // namespace

// A loaded machine makes pauses longer, never shorter: what is exact here are the lower bounds.
TEST_CASE("A wrong key is asked about ever less often, to a bound") {
  constexpr uint64_t kPause_ns = 1'000'000;
  const int status = GENERATE(401, 403);
  INFO(status);
  const auto pauses_ns = pauses_with(status, kPause_ns, 13);
  uint64_t total_ns = 0;
  for (size_t i = 0; i < pauses_ns.size(); ++i) {
    INFO(i);
    const uint64_t pauses = std::min(uint64_t{2} << i, uint64_t{20});
    CHECK(pauses_ns[i] >= pauses * kPause_ns / 2);
    total_ns += pauses_ns[i];
  }
  CHECK(total_ns < 4'000'000'000);  // 0.2 s, but 8 s if they went on growing
}

TEST_CASE("One that a firewall does not take slows no others that were taken lately") {
  constexpr uint64_t kPause_ns = 1'000'000;
  const auto pauses_ns = pauses_with(403, kPause_ns, 15, true);
  CHECK(*std::min_element(pauses_ns.begin() + 6, pauses_ns.end()) < 10 * kPause_ns);
}

TEST_CASE("A server that is away is asked as often as before") {
  constexpr uint64_t kPause_ns = 1'000'000;
  const auto pauses_ns = pauses_with(503, kPause_ns, 50);
  // Less than any that has grown.
  CHECK(*std::min_element(pauses_ns.begin() + 5, pauses_ns.end()) < 10 * kPause_ns);
}
