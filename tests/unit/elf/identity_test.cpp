#include "elf/identity.h"

#include "base/hex.h"
#include "support/catch2.h"
#include "support/elf_builder.h"

using namespace sentry_prof;
using namespace sentry_prof::elf;
using namespace sentry_prof::test;

namespace {

Identity identity_of(const std::vector<std::byte>& bytes) {
  const MemoryByteSource file(bytes);
  return read_identity(file, read_layout(file).value());
}

Identity identity_of(const ElfBuilder& elf) { return identity_of(elf.build()); }

std::string debug_id_hex(const Identity& identity) {
  return to_hex(std::as_bytes(std::span(identity.debug_id.bytes)));
}

std::vector<std::byte> from_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

std::vector<std::byte> build_id_note(std::string_view hex,
                                     std::endian order = std::endian::little) {
  return elf_note(order, "GNU", NT_GNU_BUILD_ID, from_hex(hex));
}

// As linkers write it: a section .note.gnu.build-id and a PT_NOTE over it.
ElfBuilder with_note(const std::vector<std::byte>& note, ElfKind kind = {},
                     uint64_t alignment = 4) {
  ElfBuilder elf(kind);
  elf.section(
      {.name = ".note.gnu.build-id", .type = SHT_NOTE, .contents = note, .alignment = alignment});
  elf.section({.name = ".text", .contents = to_bytes("0123456789abcdef")});
  elf.segment({.type = PT_NOTE, .of_section = ".note.gnu.build-id"});
  return elf;
}

constexpr std::string_view kFoldedDigits = "33323130353437363839616263646566";

}  // namespace

TEST_CASE("read_identity agrees with sentry-cli on build ids of every length and byte order") {
  struct Example {
    std::string_view build_id, debug_id;
    std::endian order = std::endian::little;
  };
  const Example examples[] = {
      {"abcd", "0000cdab000000000000000000000000"},
      {"6f773b475acf6a70", "473b776fcf5a706a0000000000000000"},  // lld --build-id=fast
      {"135afc8c6d1b9e02356cce218bf0109c00112233", "8cfc5a131b6d029e356cce218bf0109c"},
      {"135afc8c6d1b9e02356cce218bf0109c00112233445566778899aabbccddeeff",
       "8cfc5a131b6d029e356cce218bf0109c"},
      {"c6ef9820399e0102030405060708090a0b0c0d0e", "c6ef9820399e0102030405060708090a",
       std::endian::big},
  };
  for (const Example& example : examples) {
    const ElfKind kind{.order = example.order};
    const Identity identity =
        identity_of(with_note(build_id_note(example.build_id, example.order), kind));
    CHECK(identity.code_id == example.build_id);
    CHECK(debug_id_hex(identity) == example.debug_id);
  }
}

TEST_CASE("read_identity finds the build id by segment alone and by section alone") {
  const auto note = build_id_note("00112233");
  auto without_sections = with_note(note, {.with_section_headers = false});
  CHECK(identity_of(without_sections).code_id == "00112233");
  ElfBuilder without_segments;
  without_segments.section({.name = ".note.gnu.build-id", .type = SHT_NOTE, .contents = note});
  CHECK(identity_of(without_segments).code_id == "00112233");
}

TEST_CASE("read_identity prefers the first PT_NOTE with a build id over the section") {
  ElfBuilder elf = with_note(build_id_note("aaaa"));
  elf.section(
      {.name = ".note", .type = SHT_NOTE, .contents = build_id_note("bbbb"), .alignment = 4});
  elf.segment({.type = PT_NOTE, .of_section = ".note"});
  CHECK(identity_of(elf).code_id == "aaaa");
}

TEST_CASE("read_identity passes over other notes, with padding to 4 and to 8 bytes") {
  for (uint64_t alignment : {4, 8}) {
    const auto little = std::endian::little;
    ByteWriter notes;
    notes.raw(elf_note(little, "GNU", 5, from_hex("0102030405"), alignment));
    notes.raw(elf_note(little, "Go", 4, from_hex("aabbccddee"), alignment));
    notes.raw(elf_note(little, "GNU", NT_GNU_BUILD_ID, from_hex("00112233"), alignment));
    CHECK(identity_of(with_note(notes.bytes(), {}, alignment)).code_id == "00112233");
  }
}

TEST_CASE("read_identity folds the first page of .text where there is no build id") {
  ElfBuilder elf;
  std::vector<std::byte> code(5000);
  code[0] = std::byte{0x01};
  code[16] = std::byte{0x02};
  code[4095] = std::byte{0x80};
  code[4096] = std::byte{0xff};  // beyond the first page
  elf.section({.name = ".text", .contents = code});
  const Identity identity = identity_of(elf);
  CHECK(identity.code_id.empty());
  CHECK(identity.build_id.empty());
  CHECK(debug_id_hex(identity) == "00000003000000000000000000000080");

  ElfBuilder big({.machine = EM_PPC64, .order = std::endian::big});
  big.section({.name = ".text", .contents = code});
  CHECK(debug_id_hex(identity_of(big)) == "03000000000000000000000000000080");
}

TEST_CASE("read_identity has nothing for a file with neither build id nor code") {
  CHECK(identity_of(ElfBuilder()).debug_id.is_nil());
  ElfBuilder split;
  split.section({.name = ".text", .type = SHT_NOBITS, .stated_size = 64});
  CHECK(identity_of(split).debug_id.is_nil());
}

TEST_CASE("read_identity looks at the first .text only, as sentry-cli does") {
  ElfBuilder elf;
  elf.section({.name = ".text"});
  elf.section({.name = ".text", .contents = to_bytes("code")});
  CHECK(identity_of(elf).debug_id.is_nil());
}

TEST_CASE("an empty build id leaves the file without identity, as for sentry-cli") {
  const Identity identity = identity_of(with_note(build_id_note("")));
  CHECK(identity.code_id.empty());
  CHECK(identity.debug_id.is_nil());
}

TEST_CASE("read_identity takes the first note of type 3 whoever owns it, as sentry-cli does") {
  ByteWriter nameless;
  nameless.u32(0).u32(4).u32(NT_GNU_BUILD_ID).u32(0x11223344);
  CHECK(identity_of(with_note(nameless.bytes())).code_id == "44332211");
  ByteWriter foreign;
  foreign.raw(elf_note(std::endian::little, "Xen", 3, from_hex("00112233")));
  foreign.raw(build_id_note("44556677"));
  CHECK(identity_of(with_note(foreign.bytes())).code_id == "00112233");
}

TEST_CASE("read_identity does without a build id note that is malformed") {
  ByteWriter beyond_the_file;
  beyond_the_file.u32(4).u32(UINT32_MAX).u32(NT_GNU_BUILD_ID).text("GNU").u8(0).u32(1);
  ByteWriter endless_name;
  endless_name.u32(UINT32_MAX).u32(UINT32_MAX).u32(NT_GNU_BUILD_ID);
  ByteWriter cut_off;
  cut_off.u32(4).u8(0);
  for (const ByteWriter& note : {beyond_the_file, endless_name, cut_off}) {
    const Identity identity = identity_of(with_note(note.bytes()));
    CHECK(identity.code_id.empty());
    CHECK(debug_id_hex(identity) == kFoldedDigits);
  }
}

TEST_CASE("read_identity takes no build id of more than 64 bytes, and none of odd alignment") {
  const auto longest = build_id_note(std::string(128, 'a'));
  CHECK(identity_of(with_note(longest)).build_id.size() == 64);
  const auto too_long = build_id_note(std::string(130, 'a'));
  CHECK(debug_id_hex(identity_of(with_note(too_long))) == kFoldedDigits);
  const auto note = build_id_note("00112233");
  CHECK(identity_of(with_note(note, {}, 1)).code_id == "00112233");
  CHECK(debug_id_hex(identity_of(with_note(note, {}, 16))) == kFoldedDigits);
}

TEST_CASE("read_identity ends on a segment of very many notes") {
  ByteWriter notes;
  for (int i = 0; i < 5000; ++i) notes.raw(elf_note(std::endian::little, "x", 1, {}));
  CHECK(debug_id_hex(identity_of(with_note(notes.bytes()))) == kFoldedDigits);
}
