#include "upload/spool_sender.h"

#include "integration/temporary_directory.h"
#include "support/catch2.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using sentry_prof::sentry::Dsn;
using sentry_prof::testing::TemporaryDirectory;
using namespace sentry_prof::upload;

namespace {

// Answers by what it is sent.
class JudgingClient final : public HttpClient {
 public:
  HttpResult post(const HttpRequest& request) override {
    const std::string body(request.body);
    bodies.push_back(body);
    if (body == unreachable) return tl::unexpected(HttpFailure{HttpFailureKind::Unreachable, ""});
    HttpReply reply;
    reply.status = status_of(body);
    if (reply.status == 429) reply.rate_limits = "60:profile_chunk:key";
    return reply;
  }

  std::function<int(const std::string&)> status_of;
  std::string unreachable = "none is";  // the body for which nobody is there
  std::vector<std::string> bodies;
};

class NoTimeWaiter final : public Waiter {
 public:
  uint64_t now_ns() const override { return 0; }
  int64_t unix_now_s() const override { return 0; }
  bool wait(uint64_t) override { return true; }
};

struct Fixture {
  explicit Fixture(std::function<int(const std::string&)> status_of) {
    client.status_of = std::move(status_of);
  }
  void keep(const std::string& body, Categories categories = Category::ProfileChunk) {
    REQUIRE(spool.keep(body, BodyEncoding::Identity, categories));
  }
  // Of the envelope that was kept first.
  std::string oldest_path() const {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      names.push_back(file.path());
    }
    return *std::min_element(names.begin(), names.end());
  }
  SpoolRun send() {
    UploaderOptions options;
    options.retries.max_retries = 1;
    options.longest_limit_wait_ns = 0;
    Uploader uploader(*Dsn::parse("http://key@localhost/1"), client, waiter, options,
                      [] { return uint64_t{0}; });
    auto run = send_spooled(spool, uploader,
                            [this](const SpooledEnvelope&, const Outcome&) { ++given_up; });
    REQUIRE(run);
    return std::move(*run);
  }

  TemporaryDirectory folder;
  Spool spool = *Spool::open(folder.path());
  JudgingClient client;
  NoTimeWaiter waiter;
  int given_up = 0;
};

using Bodies = std::vector<std::string>;

}  // namespace

TEST_CASE("A spool is sent the oldest first, with what comes meanwhile", "[spool_sender]") {
  Fixture fixture([&](const std::string& body) {
    if (body == "b") fixture.keep("c");
    return 200;
  });
  for (const char* body : {"a", "b"}) fixture.keep(body);
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 3);
  CHECK_FALSE(run.trouble);
  CHECK(fixture.client.bodies == Bodies{"a", "b", "c"});
  CHECK(fixture.spool.counts().ours == 0);
}

TEST_CASE("An envelope that breaks the server does not hold up the others", "[spool_sender]") {
  Fixture fixture([](const std::string& body) { return body == "poison" ? 500 : 200; });
  for (const char* body : {"poison", "a", "b"}) fixture.keep(body);
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 2);
  REQUIRE(run.trouble);
  CHECK(run.trouble->tries == 2);
  CHECK(fixture.client.bodies == Bodies{"poison", "poison", "a", "b"});
  CHECK(fixture.spool.counts().ours == 1);
}

TEST_CASE("Several envelopes that break the server do not hold up the others", "[spool_sender]") {
  Fixture fixture([](const std::string& body) { return body == "poison" ? 500 : 200; });
  for (const char* body : {"poison", "poison", "poison", "poison", "a", "poison", "b"}) {
    fixture.keep(body);
  }
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 2);
  REQUIRE(run.trouble);
  CHECK(run.trouble->kind == OutcomeKind::ServerFailed);
  CHECK(run.trouble->tries == 2);
  CHECK(fixture.spool.counts().ours == 5);
}

TEST_CASE("Where nobody is there, no further envelope is tried", "[spool_sender]") {
  Fixture fixture([](const std::string&) { return 200; });
  fixture.client.unreachable = "a";
  for (const char* body : {"a", "b"}) fixture.keep(body);
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 0);
  REQUIRE(run.trouble);
  CHECK(run.trouble->kind == OutcomeKind::NetworkFailed);
  CHECK(fixture.client.bodies == Bodies{"a", "a"});
}

TEST_CASE("What was sent and cannot be removed is not sent again, and holds nothing up",
          "[spool_sender]") {
  // A directory in the way of unlink: it fails for root, too.
  Fixture fixture([&](const std::string& body) {
    if (body == "stuck") {
      const std::string path = fixture.oldest_path();
      REQUIRE(::unlink(path.c_str()) == 0);
      REQUIRE(::mkdir(path.c_str(), 0700) == 0);
    }
    return 200;
  });
  for (const char* body : {"stuck", "a"}) fixture.keep(body);
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 2);
  REQUIRE(run.error);
  CHECK(fixture.spool.counts().ours == 0);
  CHECK(fixture.send().accepted == 0);
  CHECK(fixture.client.bodies == Bodies{"stuck", "a"});
}

TEST_CASE("A wrong address costs no envelope", "[spool_sender]") {
  Fixture fixture([](const std::string&) { return 404; });
  for (const char* body : {"a", "b", "c", "d", "e", "f"}) fixture.keep(body);
  const SpoolRun run = fixture.send();
  CHECK(run.given_up == 0);
  REQUIRE(run.trouble);
  CHECK(run.trouble->kind == OutcomeKind::Misconfigured);
  CHECK(fixture.client.bodies == Bodies{"a", "b", "c", "d", "f"});  // the newest at last
  CHECK(fixture.spool.counts().ours == 6);
}

TEST_CASE("A server that fails five in a row is left alone", "[spool_sender]") {
  Fixture fixture([](const std::string&) { return 503; });
  for (const char* body : {"a", "b", "c", "d", "e", "f"}) fixture.keep(body);
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 0);
  REQUIRE(run.trouble);
  CHECK(run.trouble->tries == 2);
  CHECK(fixture.client.bodies == Bodies{"a", "a", "b", "c", "d", "f"});
  CHECK(fixture.spool.counts().ours == 6);
}

TEST_CASE("However many are never taken and have become the oldest, the others are sent",
          "[spool_sender]") {
  Fixture fixture([](const std::string& body) { return body == "poison" ? 403 : 200; });
  constexpr size_t kPoison = 70;
  for (size_t i = 0; i < kPoison; ++i) fixture.keep("poison");
  constexpr size_t kGood = 20;
  for (size_t i = 0; i < kGood; ++i) fixture.keep("good");
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == kGood);
  REQUIRE(run.trouble);
  CHECK(fixture.spool.counts().ours == kPoison);
  for (const char* body : {"f", "g"}) fixture.keep(body);
  CHECK(fixture.send().accepted == 2);
}

TEST_CASE("What was kept while another one failed is sent in the same run", "[spool_sender]") {
  Fixture fixture([](const std::string&) { return 200; });
  fixture.client.status_of = [&](const std::string& body) {
    if (body != "poison") return 200;
    if (fixture.client.bodies.size() == 1) fixture.keep("meanwhile");
    return 503;
  };
  fixture.keep("poison");
  CHECK(fixture.send().accepted == 1);
  CHECK(fixture.client.bodies == Bodies{"poison", "poison", "meanwhile"});
}

TEST_CASE("However many wait for a limit, what has none is sent", "[spool_sender]") {
  Fixture fixture([](const std::string& body) { return body == "limited" ? 429 : 200; });
  constexpr size_t kMany = 70;
  for (size_t i = 0; i < kMany; ++i) fixture.keep("limited");
  fixture.keep("good", Category::Transaction);
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 1);
  REQUIRE(run.trouble);
  CHECK(run.trouble->kind == OutcomeKind::RateLimited);
  CHECK(run.trouble->retry_in_ns == 60'000'000'000);
  CHECK(fixture.client.bodies == Bodies{"limited", "good"});
  CHECK(fixture.spool.counts().ours == kMany);
}

TEST_CASE("What has to wait for a limit is not read", "[spool_sender]") {
  Fixture fixture([](const std::string&) { return 429; });
  fixture.keep("limited");
  const auto name =
      fixture.spool.keep("limited, too", BodyEncoding::Identity, Category::ProfileChunk);
  REQUIRE(name);
  REQUIRE(::truncate((fixture.folder.path() + "/" + *name).c_str(), 1) == 0);
  fixture.send();
  CHECK(fixture.spool.losses().set_aside == 0);
  CHECK(fixture.spool.counts().ours == 2);
}

TEST_CASE("What is limited waits, what is refused goes, the rest is sent", "[spool_sender]") {
  Fixture fixture([](const std::string& body) {
    return body == "limited" ? 429 : body == "refused" ? 413 : 200;
  });
  fixture.keep("limited");
  fixture.keep("limited, too");
  fixture.keep("refused", Category::Transaction);
  fixture.keep("good", Category::Transaction);
  const SpoolRun run = fixture.send();
  CHECK(run.accepted == 1);
  CHECK(run.given_up == 1);
  CHECK(fixture.given_up == 1);
  REQUIRE(run.trouble);
  CHECK(run.trouble->kind == OutcomeKind::RateLimited);
  CHECK(fixture.client.bodies == Bodies{"limited", "refused", "good"});
  CHECK(fixture.spool.counts().ours == 2);
}
