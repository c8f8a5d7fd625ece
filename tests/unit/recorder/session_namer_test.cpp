#include "recorder/session_namer.h"

#include "support/catch2.h"
#include "unit/target/fake_opener.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using recorder::SessionNamer;

TEST_CASE("What a program is called is asked again until somebody answers") {
  FakeOpener opener;
  opener.files["/usr/bin/python3.11"] = make_library(build_id_of(1));
  target::ImageStore images(opener);
  target::ProcessTable processes(images);
  const auto mapping = code_of("/usr/bin/python3.11", 0x1000'0000);
  processes.on_map(1, mapping);
  processes.on_comm(mapping.pid, mapping.pid, "python3", false, 2);
  int asked = 0;
  const auto name_executable = [&](const std::string&,
                                   const std::string& comm) -> std::optional<std::string> {
    return ++asked == 1 ? std::nullopt : std::optional(comm);
  };
  SessionNamer namer({}, mapping.pid, mapping.path, name_executable, processes, images);
  CHECK(namer.session().transaction_name == "python3.11");
  for (int chunk = 0; chunk < 2; ++chunk) {
    CHECK(namer.session().transaction_name == "python3");
    CHECK(namer.session().release == "python3@011111111111");
  }
  CHECK(asked == 2);
}
