#include "os/process_memory.h"

#include "support/catch2.h"

#include <cstring>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

using namespace sentry_prof;

namespace {

constexpr size_t kPage = 4096;

// Three pages, of which the last cannot be read.
struct Mapping {
  Mapping()
      : bytes(static_cast<std::byte*>(::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    std::memset(bytes, 7, 2 * kPage);
    ::mprotect(bytes + 2 * kPage, kPage, PROT_NONE);
  }
  ~Mapping() { ::munmap(bytes, 3 * kPage); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes); }

  std::byte* bytes;
};

}  // namespace

TEST_CASE("Memory of a process is read up to where it cannot be") {
  const Mapping mapping;
  std::vector<std::byte> out(3 * kPage);
  CHECK(os::read_memory(::getpid(), mapping.address() + 100, out) == 2 * kPage - 100);
  CHECK(out[2 * kPage - 101] == std::byte{7});
  CHECK(os::read_memory(::getpid(), mapping.address() + 2 * kPage, out) == 0);
  CHECK(os::read_memory(::getpid(), mapping.address(), std::span(out).first(8)) == 8);
}

TEST_CASE("More pages than one system call takes are read in turns") {
  constexpr size_t kSize = 1200 * kPage;
  std::vector<std::byte> from(kSize, std::byte{3});
  std::vector<std::byte> out(kSize);
  CHECK(os::read_memory(::getpid(), reinterpret_cast<uint64_t>(from.data()), out) == kSize);
  CHECK(out == from);
}

TEST_CASE(
    "No memory is read of addresses that no process has, nor of a process that is not there") {
  std::vector<std::byte> out(kPage);
  CHECK(os::read_memory(::getpid(), UINT64_MAX - 100, out) == 0);
  CHECK(os::read_memory(::getpid(), 8, out) == 0);
  CHECK(os::read_memory(0x7fff'ffff, reinterpret_cast<uint64_t>(out.data()), out) == 0);
}
