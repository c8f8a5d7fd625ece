#include "sentry/transaction_link.h"

#include "support/catch2.h"

using namespace sentry_prof;
using namespace sentry_prof::sentry;

namespace {

const ProfilerLink kLink{"0123456789abcdef0123456789abcdef", "7", "worker \"a\""};
const std::string kEventId = "89abcdef89abcdef89abcdef89abcdef";  // for what has none

}  // namespace

TEST_CASE("A link adds what is missing and keeps every other byte") {
  const auto linked = link_transaction(
      R"( {"a": [1 , 2],"contexts":{"os":{"name":"x"},"trace":{"data":{"k":1}}}} )", kLink,
      kEventId);
  REQUIRE(linked);
  CHECK(*linked ==
        R"({"a":[1 , 2],"contexts":{"os":{"name":"x"},"trace":{"data":{"k":1,"thread.id":"7",)"
        R"("thread.name":"worker \"a\""}},)"
        R"("profile":{"profiler_id":"0123456789abcdef0123456789abcdef"}},)"
        R"("event_id":"89abcdef89abcdef89abcdef89abcdef"})");
}

TEST_CASE("A wrong profiler is replaced, a thread that is named stays") {
  const auto linked = link_transaction(
      R"({"event_id":"1","contexts":{"profile":{"profiler_id":"old"},"trace":{"data":{"thread.id":"1"}}},)"
      R"("spans":[{"data":null},{"data":{"thread.id":"2"}},3]})",
      kLink, kEventId);
  REQUIRE(linked);
  CHECK(
      *linked ==
      R"({"event_id":"1","contexts":{"profile":{"profiler_id":"0123456789abcdef0123456789abcdef"},)"
      R"("trace":{"data":{"thread.id":"1"}}},)"
      R"("spans":[{"data":{"thread.id":"7","thread.name":"worker \"a\""}},)"
      R"({"data":{"thread.id":"2"}},3]})");
}

TEST_CASE("What is no JSON object cannot be linked") {
  for (const char* text : {"", "[]", "{", "{} {}", "nonsense", R"({"spans":[{]})"}) {
    INFO(text);
    CHECK_FALSE(link_transaction(text, kLink, kEventId));
  }
}

TEST_CASE("A chunk's link names its profiler and its busiest thread") {
  const auto link = read_profiler_link(
      R"({"profiler_id":"p","profile":{"samples":[{"thread_id":"1"},{"thread_id":"2"},)"
      R"({"thread_id":"2"}],"thread_metadata":{"1":{"name":"a"},"2":{"name":"b"}}}})");
  REQUIRE(link);
  CHECK(link->profiler_id == "p");
  CHECK(link->thread_id == "2");
  CHECK(link->thread_name == "b");
  CHECK_FALSE(read_profiler_link(R"({"profiler_id":"p","profile":{"samples":[]}})"));
  CHECK_FALSE(read_profiler_link("{"));
}

TEST_CASE("Idle markers are no work of a thread") {
  const std::string stacks = R"("stacks":[[],[0,1],[0]])";
  const std::string samples =
      R"("samples":[{"thread_id":"1","stack_id":1},{"thread_id":"1","stack_id":2},)"
      R"({"thread_id":"2","stack_id":1},{"thread_id":"2","stack_id":0},)"
      R"({"thread_id":"2","stack_id":0},{"stack_id":1},{"thread_id":"3","stack_id":0}])";
  for (const std::string& profile : {stacks + "," + samples, samples + "," + stacks}) {
    const auto link = read_profiler_link(R"({"profiler_id":"p","profile":{)" + profile + "}}");
    REQUIRE(link);
    CHECK(link->thread_id == "1");
  }
  CHECK(read_profiler_link(
      R"({"profiler_id":"p","profile":{"samples":[{"thread_id":"3","stack_id":0}],"stacks":[[]]}})"));
}
