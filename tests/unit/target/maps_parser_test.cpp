#include "support/catch2.h"
#include "target/mapping_kind.h"
#include "target/proc.h"

#include <string>

#include <fmt/format.h>

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

TEST_CASE("parse_data_below_code finds data of files all of whose code was replaced") {
  const auto data = target::parse_data_below_code(
      "1000-2000 r--p 00000000 fe:01 5                     /usr/lib/libx y.so\n"
      "2000-4000 r-xp 00000000 00:00 0 \n"
      "4000-5000 r--p 00003000 fe:01 5                     /usr/lib/libx y.so\n",
      42);
  REQUIRE(data.size() == 1);
  CHECK(data[0].pid == 42);
  CHECK(data[0].begin == RuntimeAddress{0x1000});
  CHECK(data[0].size_bytes == 0x1000);
  CHECK(data[0].inode == 5);
  CHECK(data[0].path == "/usr/lib/libx y.so");
}

TEST_CASE("parse_data_below_code leaves out what is otherwise beside code without a file") {
  const auto count = [](std::string_view below, std::string_view middle, std::string_view above) {
    std::string text;
    for (const std::string_view line : {below, middle, above}) text.append(line).append("\n");
    return target::parse_data_below_code(text, 1).size();
  };
  constexpr std::string_view kBelow = "1000-2000 r--p 0 0:1 5    /lib/x.so";
  constexpr std::string_view kCode = "2000-4000 r-xp 0 0:0 0 ";
  constexpr std::string_view kAbove = "4000-5000 rw-p 3000 0:1 5    /lib/x.so";
  CHECK(count(kBelow, kCode, kAbove) == 1);
  CHECK(count(kBelow, kCode, "4000-5000 rw-p 3000 0:1 6    /lib/x.so") == 0);
  CHECK(count(kBelow, kCode, "5000-6000 rw-p 3000 0:1 5    /lib/x.so") == 0);
  CHECK(count("1000-1800 r--p 0 0:1 5    /lib/x.so", kCode, kAbove) == 0);
  CHECK(count(kBelow, "2000-4000 rw-p 0 0:0 0 ", kAbove) == 0);
  CHECK(count(kBelow, "2000-4000 r-xp 0 0:1 5    /lib/x.so", kAbove) == 0);
  CHECK(count(kBelow, "2000-4000 r-xp 0 0:6 9    /dev/gpu", kAbove) == 0);
  CHECK(count("1000-2000 r-xp 0 0:1 5    /lib/x.so", kCode, kAbove) == 0);  // a module tells
  CHECK(count("1000-2000 r--p 0 0:0 0 ", kCode, "4000-5000 r--p 0 0:0 0 ") == 0);
}

TEST_CASE("parse_mapped_pieces finds what a process cannot write to of a mapping's file") {
  constexpr std::string_view kMaps =
      "1000-3000 r--p 0 0:1 5    /lib/a.so (deleted)\n"
      "3000-5000 r-xp 2000 0:1 5 /lib/a.so (deleted)\n"
      "5000-6000 r--p 4000 0:1 5 /lib/a.so (deleted)\n"
      "6000-7000 rw-p 5000 0:1 5 /lib/a.so (deleted)\n"
      "7000-8000 ---p 6000 0:1 5 /lib/a.so (deleted)\n"
      "8000-9000 r-xp 2000 0:1 6 /lib/a.so\n"
      "9000-a000 r-xp 2000 0:2 5 /lib/a.so (deleted)\n";
  const std::vector<target::MappedPiece> all = {
      {0, 0x2000, {0x1000}}, {0x2000, 0x2000, {0x3000}}, {0x4000, 0x1000, {0x5000}}};
  target::MappingFacts mapping{
      .begin = {0x3000}, .file_offset = 0x2000, .device_minor = 1, .inode = 5};
  mapping.path = "/lib/a.so";
  const auto pieces = [&] {
    const auto found = target::find_mapping(kMaps, mapping);
    return found ? target::parse_mapped_pieces(kMaps, *found) : std::vector<target::MappedPiece>();
  };
  CHECK(pieces() == all);
  SECTION("another file of that name, or of that number on another device") {
    mapping.inode = 7;
    CHECK(pieces().empty());
    mapping.inode = 5;
    mapping.device_minor = 2;
    CHECK(pieces().empty());
  }
  SECTION("the caller compares the build id, which is given without an inode") {
    mapping.inode = 0;
    mapping.path = "/lib/renamed.so";
    CHECK(pieces().empty());
    mapping.build_id.resize(20);
    CHECK(pieces() == all);
  }
  SECTION("part of what was mapped in one piece") {
    mapping.begin = {0x4000};
    mapping.file_offset = 0x3000;
    CHECK(pieces() == all);
  }
  SECTION("something else is mapped there by now, or the same from elsewhere in the file") {
    mapping.begin = {0xb000};
    CHECK(pieces().empty());
    mapping.begin = {0x4000};
    CHECK(pieces().empty());
  }
  SECTION("another file is mapped in the same place later, from the same offset") {
    const auto found = target::find_mapping(kMaps, mapping);
    REQUIRE(found);
    CHECK(target::parse_mapped_pieces("3000-5000 r-xp 2000 0:1 6 /lib/a.so\n", *found).empty());
    CHECK(target::parse_mapped_pieces("3000-5000 r-xp 2000 0:2 5 /lib/a.so\n", *found).empty());
    CHECK(target::parse_mapped_pieces("3000-5000 r-xp 2000 0:1 5 /lib/a.so\n", *found).size() == 1);
  }
}

TEST_CASE("parse_mapped_pieces has each byte of a file once, however often it is mapped") {
  std::string maps =
      "1000-3000 r-xp 2000 0:1 5 /lib/a.so\n"
      "3000-5000 r--p 3000 0:1 5 /lib/a.so\n"
      "5000-6000 r--p 0 0:1 5    /lib/a.so\n";
  for (int i = 0; i < 1000; ++i) {
    maps += fmt::format("{:x}-{:x} r--p 1000 0:1 5 /lib/a.so\n", 0x10000 + i * 0x4000,
                        0x14000 + i * 0x4000);
  }
  const auto found = target::find_mapping(
      maps, {.begin = {0x1000}, .file_offset = 0x2000, .device_minor = 1, .inode = 5});
  REQUIRE(found);
  const std::vector<target::MappedPiece> all = {{0, 0x1000, {0x5000}}, {0x1000, 0x4000, {0x10000}}};
  CHECK(target::parse_mapped_pieces(maps, *found) == all);
  CHECK(target::parse_mapped_pieces("1000-3000 r-xp 2000 0:1 5 /lib/a.so\n"
                                    "3000-5000 r-xp fffffffffffff000 0:1 5 /lib/a.so\n",
                                    *found)
            .size() == 1);
}
