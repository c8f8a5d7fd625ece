#include "os/ordinary_reader.h"

#include "os/fd.h"
#include "support/catch2.h"
#include "unit/os/scratch.h"

#include <fcntl.h>
#include <unistd.h>

using namespace sentry_prof;

namespace {

bool can_read(const std::string& path) {
  return os::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)).is_open();
}

}  // namespace

TEST_CASE("An ordinary reader may read what the mode permits, and everything again afterwards") {
  const test::ScratchDirectory scratch;
  const std::string path = scratch / "secret";
  os::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0));
  REQUIRE(file.is_open());
  const bool could_read = can_read(path);
  {
    const os::AsOrdinaryReader ordinary;
    CHECK_FALSE(can_read(path));
  }
  CHECK(can_read(path) == could_read);
}
