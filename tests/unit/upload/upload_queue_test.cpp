#include "upload/upload_queue.h"

#include "support/catch2.h"
#include "upload/clock_waiter.h"

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

using namespace sentry_prof::upload;
using sentry_prof::sentry::Dsn;

namespace {

constexpr uint64_t kLong_ns = 20'000'000'000;  // a bound, never waited for

// Answers all requests with one status.
class FixedClient final : public HttpClient {
 public:
  HttpResult post(const HttpRequest& request) override {
    const std::lock_guard lock(mutex_);
    bodies_.emplace_back(request.body);
    HttpReply reply;
    reply.status = status;
    return reply;
  }
  std::vector<std::string> bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::atomic<int> status = 200;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> bodies_;
};

struct Bench {
  FixedClient client;
  StopEvent stop = *StopEvent::create();
  ClockWaiter waiter{stop.fd()};
  Uploader uploader{*Dsn::parse("http://key@localhost/1"), client, waiter, options(),
                    [] { return uint64_t{0}; }};

  static UploaderOptions options() {
    UploaderOptions result;
    result.retries.max_retries = 0;
    return result;
  }
  std::unique_ptr<UploadQueue> start(QueueOptions options = {}) {
    auto queue = UploadQueue::start(uploader, stop, "", options, [](const Outcome&) {});
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
  for (const char* body : {"a", "b", "c"}) REQUIRE(queue->put(envelope(body)));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 3);
  CHECK(figures.unsent.empty());
  CHECK(bench.client.bodies() == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("What a server that fails did not take is given back, the oldest first") {
  Bench bench;
  bench.client.status = 503;
  const auto queue = bench.start();
  for (const char* body : {"a", "b"}) REQUIRE(queue->put(envelope(body)));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.accepted == 0);
  REQUIRE(figures.unsent.size() == 2);
  CHECK(figures.unsent[0].body == "a");
  CHECK(figures.unsent[1].body == "b");
  REQUIRE(figures.trouble);
  CHECK(figures.trouble->kind == OutcomeKind::ServerFailed);
}

TEST_CASE("What is refused for good is counted and not sent again") {
  Bench bench;
  bench.client.status = 400;
  const auto queue = bench.start();
  REQUIRE(queue->put(envelope("a")));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.refused == 1);
  CHECK(figures.unsent.empty());
  CHECK(bench.client.bodies().size() == 1);
}

TEST_CASE("A full queue drops the oldest and counts them") {
  Bench bench;
  bench.client.status = 503;
  QueueOptions options;
  options.max_bytes = 25;
  const auto queue = bench.start(options);
  for (const char c : {'a', 'b', 'c', 'd', 'e'}) REQUIRE(queue->put(envelope(std::string(10, c))));
  const QueueFigures figures = queue->finish(kLong_ns);
  CHECK(figures.dropped + figures.unsent.size() == 5);
  REQUIRE(figures.unsent.size() <= 2);
  CHECK(figures.unsent.back().body == "eeeeeeeeee");
}
