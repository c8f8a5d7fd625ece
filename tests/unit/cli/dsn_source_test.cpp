#include "cli/dsn_source.h"

#include "cli/message.h"
#include "integration/environment_guard.h"
#include "support/catch2.h"
#include "support/fork_child.h"
#include "unit/os/scratch.h"

#include <csignal>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {

// A home with a .sentryclirc, and nothing else that names a DSN.
struct HomeWithRc {
  explicit HomeWithRc(const std::string& host) : rc(home / ".sentryclirc") {
    environment.set("HOME", home.path().string());
    environment.set("SENTRY_DSN", "");
    test::write_text(rc, "[auth]\ndsn = https://k@" + host + "/1\n");
  }
  test::ScratchDirectory home;
  std::string rc;
  testing::EnvironmentGuard environment;
};

}  // namespace

TEST_CASE("A .sentryclirc that everybody may write to is passed over") {
  const HomeWithRc home("ours");
  REQUIRE(find_dsn("", ""));
  CHECK(find_dsn("", "")->dsn.host() == "ours");
  REQUIRE(::chmod(home.rc.c_str(), 0666) == 0);
  const auto found = find_dsn("", "");
  REQUIRE_FALSE(found);
  CHECK(found.error().message.find(home.rc + " was passed over") != std::string::npos);
}

TEST_CASE("The .sentryclirc that is judged is the one that is read") {
  const HomeWithRc home("ours");
  const std::string theirs = home.home / "theirs";
  test::write_text(theirs, "[auth]\ndsn = https://k@theirs/1\n");
  REQUIRE(::chmod(theirs.c_str(), 0666) == 0);
  const pid_t swapper = test::fork_child();
  if (swapper == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::renameat2(AT_FDCWD, home.rc.c_str(), AT_FDCWD, theirs.c_str(), RENAME_EXCHANGE);
  }
  size_t ours = 0, others = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto found = find_dsn("", "");
    if (found) ++(found->dsn.host() == "ours" ? ours : others);
  }
  ::kill(swapper, SIGKILL);
  ::waitpid(swapper, nullptr, 0);
  CHECK(ours > 0);
  CHECK(others == 0);
}

TEST_CASE("The DSN of .sentryclirc may stand in quotes") {
  CHECK(dsn_in_sentryclirc("[auth]\ndsn = \"https://k@h/1\"\n") == "https://k@h/1");
  CHECK(dsn_in_sentryclirc("[auth]\ndsn='https://k@h/1'\n") == "https://k@h/1");
  CHECK(dsn_in_sentryclirc("[auth]\ndsn=\"\n") == "\"");
}

TEST_CASE("What stands before @ in a URL is not shown, but in our own example") {
  CHECK(without_userinfo("dsn https://0123@h/1") == "dsn https://***@h/1");
  CHECK(without_userinfo("https://KEY@HOST/PROJECT_ID") == "https://KEY@HOST/PROJECT_ID");
  CHECK(without_userinfo("https://KEY:0123@h/1") == "https://***@h/1");
}

}  // namespace sentry_prof::cli
