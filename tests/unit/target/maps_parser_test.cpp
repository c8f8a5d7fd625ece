#include "support/catch2.h"
#include "target/mapping_kind.h"
#include "target/proc.h"

using namespace sentry_prof;
using target::MappingKind;
using target::parse_maps;

TEST_CASE("parse_maps keeps executable mappings with all their facts") {
  const auto maps = parse_maps(
      "55d0c0a00000-55d0c0a02000 r--p 00000000 fe:01 123456                     /usr/bin/cat\n"
      "55d0c0a02000-55d0c0a28000 r-xp 00002000 fe:01 123456                     /usr/bin/cat\n"
      "7ffd1c9e8000-7ffd1c9ea000 r-xp 00000000 00:00 0                          [vdso]\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
      42);
  REQUIRE(maps.size() == 4);
  CHECK(maps[0].pid == 42);
  CHECK(maps[0].begin == RuntimeAddress{0x55d0c0a02000});
  CHECK(maps[0].size_bytes == 0x26000);
  CHECK(maps[0].file_offset == 0x2000);
  CHECK(maps[0].device_major == 0xfe);
  CHECK(maps[0].device_minor == 1);
  CHECK(maps[0].inode == 123456);
  CHECK(maps[0].path == "/usr/bin/cat");
  CHECK(maps[0].build_id.empty());
  CHECK(maps[1].path == "[vdso]");
  CHECK(maps[2].path.empty());
  CHECK(maps[3].begin == RuntimeAddress{0xffffffffff600000});
}

TEST_CASE(
    "parse_maps takes names with blanks, newlines and the word deleted as the kernel writes them") {
  const auto maps = parse_maps(
      "1000-2000 r-xp 0 0:1 5    /tmp/a b  c\n"
      "2000-3000 r-xp 0 0:1 5    /tmp/line\\012feed\\013\n"
      "3000-4000 r-xp 0 0:1 5    /usr/lib/libx.so (deleted)\n"
      "4000-5000 r-xp 0 0:1 5    /tmp/\x1b[31m\xff\n",
      1);
  REQUIRE(maps.size() == 4);
  CHECK(maps[0].path == "/tmp/a b  c");
  CHECK(maps[1].path == "/tmp/line\nfeed\\013");
  CHECK(maps[2].path == "/usr/lib/libx.so (deleted)");
  CHECK(maps[3].path == "/tmp/\x1b[31m\xff");
}

TEST_CASE("parse_maps skips what is no mapping") {
  const auto maps = parse_maps(
      "garbage\n"
      "1000-2000\n"
      "2000-1000 r-xp 0 0:1 5 /backwards\n"
      "1000-1000 r-xp 0 0:1 5 /empty\n"
      "10000000000000000-10000000000000001 r-xp 0 0:1 5 /beyond-64-bits\n"
      "1000-2000 r-x 0 0:1 5 /permissions\n"
      "1000-2000 r-xp -1 0:1 5 /offset\n"
      "1000-2000 r-xp 0 0:1 5x /inode\n"
      "1000-2000 r-xp 0 0:1 5 /good\n"
      "\n"
      "3000-4000 r-xp 0 0:1 6",
      1);
  REQUIRE(maps.size() == 2);
  CHECK(maps[0].path == "/good");
  CHECK(maps[1].inode == 6);
}

TEST_CASE("parse_maps takes lines of any length") {
  const std::string path = "/" + std::string(1'000'000, 'x');
  const auto maps = parse_maps("1000-2000 r-xp 0 0:1 5 " + path, 1);
  REQUIRE(maps.size() == 1);
  CHECK(maps[0].path == path);
}

TEST_CASE("The name of a mapping says whether there is a file to open") {
  using target::kind_of_mapping;
  CHECK(kind_of_mapping("/usr/bin/cat") == MappingKind::File);
  CHECK(kind_of_mapping("/dev/shm/plugin.so") == MappingKind::File);
  CHECK(kind_of_mapping("/memfd:jit (deleted)") == MappingKind::MemoryFd);
  CHECK(kind_of_mapping("[vdso]") == MappingKind::Vdso);
  for (const char* path :
       {"", "//anon", "[heap]", "[stack]", "[anon:jit]", "[vsyscall]", "[uprobes]", "/dev/zero",
        "/dev/zero (deleted)", "/dev/mem", "/SYSV00000000 (deleted)", "/anon_hugepage (deleted)",
        "anon_inode:[perf_event]"}) {
    INFO(path);
    CHECK(kind_of_mapping(path) == MappingKind::Anonymous);
  }
}
