#include "elf/layout.h"

#include "support/catch2.h"
#include "support/elf_builder.h"
#include "support/piecewise_source.h"

#include <string>

using namespace sentry_prof;
using namespace sentry_prof::elf;
using namespace sentry_prof::test;

namespace {

Result<Layout> layout_of(std::vector<std::byte> bytes) {
  return read_layout(MemoryByteSource(std::move(bytes)));
}

// Overwrites a little-endian number of a built file.
void patch(std::vector<std::byte>& file, uint64_t offset, uint64_t value, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    file.at(static_cast<size_t>(offset) + i) = static_cast<std::byte>(value >> (8 * i) & 0xff);
  }
}

uint64_t u64_at(const std::vector<std::byte>& file, size_t offset) {
  return ByteReader(std::span(file).subspan(offset)).u64();
}

constexpr uint64_t kShoffAt = 0x28, kPhnumAt = 0x38, kShnumAt = 0x3c, kShstrndxAt = 0x3e;

ElfBuilder typical(ElfKind kind) {
  ElfBuilder elf(kind);
  elf.section({.name = ".text", .address = 0x1040, .contents = to_bytes("code"), .alignment = 16});
  elf.section({.name = ".eh_frame_hdr", .address = 0x2000, .contents = to_bytes("header__")});
  elf.section({.name = ".eh_frame",
               .type = 0x70000001,  // SHT_X86_64_UNWIND
               .address = 0x2010,
               .contents = to_bytes("frames")});
  elf.section({.name = ".debug_frame", .flags = 0, .contents = to_bytes("debug")});
  SymbolTableBuilder symbols(kind);
  symbols.add({.name = "main", .value = 0x1040, .section = 1});
  elf.section(
      {.name = ".symtab", .type = SHT_SYMTAB, .contents = symbols.symbols(), .link = ".strtab"});
  elf.section({.name = ".strtab", .type = SHT_STRTAB, .contents = symbols.strings()});
  elf.segment(
      {.type = PT_LOAD, .flags = PF_R, .vaddr = 0x400, .file_bytes = 32, .memory_bytes = 64});
  elf.segment({.type = PT_LOAD, .flags = PF_R | PF_X, .of_section = ".text"});
  elf.segment({.type = PT_GNU_EH_FRAME, .of_section = ".eh_frame_hdr"});
  return elf;
}

const ElfKind kKinds[] = {
    {.machine = EM_X86_64, .is_64_bit = true, .order = std::endian::little},
    {.machine = EM_386, .is_64_bit = false, .order = std::endian::little},
    {.machine = EM_PPC64, .is_64_bit = true, .order = std::endian::big},
    {.machine = EM_MIPS, .is_64_bit = false, .order = std::endian::big},
};

}  // namespace

TEST_CASE("read_layout finds segments and sections in every class and byte order") {
  for (const ElfKind& kind : kKinds) {
    const auto layout = layout_of(typical(kind).build());
    REQUIRE(layout);
    CHECK(layout->is_64_bit == kind.is_64_bit);
    CHECK(layout->order == kind.order);
    CHECK(layout->machine == kind.machine);
    REQUIRE(layout->segments.size() == 2);
    CHECK_FALSE(layout->segments[0].is_executable);
    CHECK(layout->segments[1].is_executable);
    CHECK(layout->segments[1].vaddr.value == 0x1040);
    CHECK(layout->segments[1].file_bytes == 4);
    CHECK(layout->first_vaddr().value == 0x400);
    CHECK(layout->size_in_memory_bytes() == 0x1044 - 0x400);
    REQUIRE(layout->text);
    CHECK(layout->text->address.value == 0x1040);
    CHECK(layout->text->size_bytes == 4);
    REQUIRE(layout->eh_frame);
    CHECK(layout->eh_frame->size_bytes == 6);
    REQUIRE(layout->eh_frame_hdr);
    CHECK(layout->eh_frame_hdr->address.value == 0x2000);
    REQUIRE(layout->debug_frame);
    REQUIRE(layout->symtab);
    CHECK(layout->symtab->symbols.size_bytes == (kind.is_64_bit ? 48 : 32));
    CHECK(layout->symtab->strings.size_bytes == 6);
    CHECK_FALSE(layout->dynsym);
  }
}

TEST_CASE("read_layout takes .eh_frame_hdr from its program header where no section headers are") {
  for (ElfKind kind : kKinds) {
    kind.with_section_headers = false;
    const auto layout = layout_of(typical(kind).build());
    REQUIRE(layout);
    CHECK(layout->segments.size() == 2);
    CHECK_FALSE(layout->text);
    CHECK_FALSE(layout->symtab);
    REQUIRE(layout->eh_frame_hdr);
    CHECK(layout->eh_frame_hdr->address.value == 0x2000);
    CHECK(layout->eh_frame_hdr->size_bytes == 8);
  }
}

TEST_CASE("read_layout asks the program headers for what useless section headers do not tell") {
  auto nameless = typical({}).build();
  patch(nameless, kShstrndxAt, 0, 2);
  auto single = typical({}).build();
  patch(single, kShnumAt, 1, 2);
  for (const auto& bytes : {nameless, single}) {
    const auto layout = layout_of(bytes);
    REQUIRE(layout);
    CHECK_FALSE(layout->text);
    REQUIRE(layout->eh_frame_hdr);
    CHECK(layout->eh_frame_hdr->address.value == 0x2000);
  }
}

TEST_CASE("read_layout understands extended numbering of sections and program headers") {
  auto file = typical({}).build();
  const auto shoff = static_cast<size_t>(u64_at(file, kShoffAt));
  patch(file, shoff + 0x20, 8, 8);  // sh_size: number of sections
  patch(file, shoff + 0x28, 7, 4);  // sh_link: index of .shstrtab
  patch(file, shoff + 0x2c, 3, 4);  // sh_info: number of program headers
  patch(file, kShnumAt, 0, 2);
  patch(file, kShstrndxAt, SHN_XINDEX, 2);
  patch(file, kPhnumAt, PN_XNUM, 2);
  const auto layout = layout_of(file);
  REQUIRE(layout);
  CHECK(layout->segments.size() == 2);
  CHECK(layout->text);
  CHECK(layout->symtab);
}

TEST_CASE("read_layout refuses what is no ELF file, or one of no known class or byte order") {
  CHECK(layout_of({}).error().code == ErrorCode::Malformed);
  CHECK(layout_of(to_bytes("\177ELF")).error().code == ErrorCode::Malformed);
  CHECK(layout_of(std::vector<std::byte>(64)).error().code == ErrorCode::Malformed);
  auto file = typical({}).build();
  auto wrong_class = file, wrong_order = file, cut_off = file;
  patch(wrong_class, EI_CLASS, 3, 1);
  patch(wrong_order, EI_DATA, 0, 1);
  cut_off.resize(60);
  CHECK(layout_of(wrong_class).error().code == ErrorCode::Unsupported);
  CHECK(layout_of(wrong_order).error().code == ErrorCode::Unsupported);
  CHECK(layout_of(cut_off).error().code == ErrorCode::Malformed);
}

TEST_CASE("read_layout refuses program headers that lie outside the file or are too many") {
  auto file = typical({}).build();
  auto outside = file, many = file, wrapping = file, odd_size = file;
  patch(outside, 0x20, UINT64_MAX - 8, 8);
  patch(many, kPhnumAt, 60000, 2);
  patch(wrapping, 64 + 0x28, UINT64_MAX, 8);  // p_memsz of the first PT_LOAD
  patch(odd_size, 0x36, 55, 2);
  CHECK(layout_of(outside).error().code == ErrorCode::Malformed);
  CHECK(layout_of(many).error().code == ErrorCode::Unsupported);
  CHECK(layout_of(wrapping).error().code == ErrorCode::Malformed);
  CHECK(layout_of(odd_size).error().code == ErrorCode::Malformed);
}

TEST_CASE("read_layout goes without section headers that cannot be right") {
  auto file = typical({}).build();
  const auto shoff = static_cast<size_t>(u64_at(file, kShoffAt));
  auto outside = file, wrapping = file, countless = file, cut_off = file;
  patch(outside, kShoffAt, file.size() - 8, 8);
  patch(wrapping, kShoffAt, UINT64_MAX - 63, 8);
  patch(countless, kShnumAt, 0, 2);
  patch(countless, shoff + 0x20, UINT64_MAX / 64, 8);
  cut_off.resize(file.size() - 1);
  for (const auto& bytes : {outside, wrapping, countless, cut_off}) {
    const auto layout = layout_of(bytes);
    REQUIRE(layout);
    CHECK_FALSE(layout->text);
    CHECK(layout->eh_frame_hdr);
    CHECK(layout->segments.size() == 2);
  }
}

TEST_CASE("read_layout leaves out sections that are compressed, empty or not in the file") {
  ElfBuilder elf;
  elf.section({.name = ".text", .type = SHT_NOBITS, .stated_size = 64});
  elf.section({.name = ".debug_frame", .flags = SHF_COMPRESSED, .contents = to_bytes("bomb")});
  elf.section({.name = ".eh_frame", .contents = to_bytes("x"), .stated_size = UINT64_MAX});
  elf.section({.name = ".eh_frame_hdr"});
  elf.section(
      {.name = ".symtab", .type = SHT_SYMTAB, .contents = to_bytes("symbols"), .link = ".text"});
  const auto layout = layout_of(elf.build());
  REQUIRE(layout);
  CHECK_FALSE(layout->text);
  CHECK_FALSE(layout->debug_frame);
  CHECK_FALSE(layout->eh_frame);
  CHECK_FALSE(layout->eh_frame_hdr);
  CHECK_FALSE(layout->symtab);
}

TEST_CASE("read_layout shortens a segment whose contents are cut off and keeps its addresses") {
  ElfBuilder elf;
  elf.segment({.vaddr = 0x10000, .file_bytes = 0x5000, .memory_bytes = 0x6000});
  elf.segment({.file_offset = 0x9000, .vaddr = 0x20000, .file_bytes = 1, .memory_bytes = 0x1000});
  const auto file = elf.build();
  const auto layout = layout_of(file);
  REQUIRE(layout);
  CHECK(layout->segments[0].file_bytes == file.size());
  CHECK(layout->segments[0].memory_bytes == 0x6000);
  CHECK(layout->segments[1].file_bytes == 0);
  CHECK(layout->segments[1].file_offset <= file.size());
  CHECK(layout->size_in_memory_bytes() == 0x11000);
}

TEST_CASE("read_layout reads section names from behind the first 64 KiB of .shstrtab") {
  ElfBuilder elf;
  elf.section({.name = std::string(100'000, 'x'), .contents = to_bytes("x")});
  elf.section({.name = ".text", .contents = to_bytes("code")});
  const auto layout = layout_of(elf.build());
  REQUIRE(layout);
  CHECK(layout->text);
}

namespace {

// A file whose program headers state more than it has would be shortened, so it is filled up.
Layout loaded_as(std::vector<ElfSegment> segments, ElfKind kind = {}) {
  ElfBuilder elf(kind);
  for (const ElfSegment& segment : segments) elf.segment(segment);
  auto bytes = elf.build();
  bytes.resize(0x100000);
  return layout_of(bytes).value();
}

std::optional<uint64_t> bias(const Layout& layout, uint64_t begin, uint64_t size, uint64_t offset) {
  const auto found = bias_of_mapping(layout, {begin}, size, offset);
  return found ? std::optional(found->value) : std::nullopt;
}

constexpr uint64_t kBase = 0x7f0000000000;

}  // namespace

TEST_CASE("read_layout makes few reads of a file with thousands of symbol tables without names") {
  ElfBuilder elf;
  for (int i = 0; i < 3000; ++i) {
    elf.section({.name = ".symtab",
                 .type = SHT_SYMTAB,
                 .flags = 0,
                 .contents = std::vector<std::byte>(sizeof(Elf64_Sym)),
                 .link = ".symtab"});
  }
  const test::PiecewiseSource file(elf.build());
  const auto layout = elf::read_layout(file);
  REQUIRE(layout);
  CHECK_FALSE(layout->symtab.has_value());
  CHECK(file.reads < 30);
}

TEST_CASE("bias_of_mapping takes the segment that was mapped, whole or in part") {
  const Layout layout = loaded_as({
      {.file_offset = 0, .vaddr = 0, .file_bytes = 0x8f0, .memory_bytes = 0x8f0},
      {.flags = PF_R | PF_X,
       .file_offset = 0x1000,
       .vaddr = 0x1000,
       .file_bytes = 0x4321,
       .memory_bytes = 0x4321},
      {.flags = PF_R | PF_W,
       .file_offset = 0x6db0,
       .vaddr = 0x7db0,
       .file_bytes = 0x1000,
       .memory_bytes = 0x2000},
  });
  CHECK(bias(layout, kBase, 0x1000, 0) == kBase);
  CHECK(bias(layout, kBase + 0x1000, 0x5000, 0x1000) == kBase);
  CHECK(bias(layout, kBase + 0x3000, 0x1000, 0x3000) == kBase);  // split by mprotect
  CHECK(bias(layout, kBase + 0x7000, 0x2000, 0x6000) == kBase);
  CHECK_FALSE(bias(layout, kBase, 0x1000, 0x9000));
  CHECK_FALSE(bias(layout, kBase, 0x1000, UINT64_MAX & ~uint64_t{0xfff}));
}

TEST_CASE("bias_of_mapping takes the bias of mappings that begin within a page") {
  // perf inject -j tells of compiled functions so, each in a file of its own.
  const Layout layout = loaded_as({{.flags = PF_R | PF_X,
                                    .file_offset = 0x80,
                                    .vaddr = 0x80,
                                    .file_bytes = 0xf,
                                    .memory_bytes = 0xf}});
  CHECK(bias(layout, kBase + 0x7010, 0xf, 0x80) == kBase + 0x7010 - 0x80);
  CHECK_FALSE(bias(layout, kBase + 0x7010, 0xf, 0x8f));
  CHECK_FALSE(bias(layout, kBase + 0x7010, 0xf, 0));
}

TEST_CASE("bias_of_mapping prefers the executable one of segments that share a page of the file") {
  // As lld lays out: offsets follow each other, addresses are a page apart.
  const Layout layout = loaded_as({
      {.file_offset = 0, .vaddr = 0, .file_bytes = 0x5e0, .memory_bytes = 0x5e0},
      {.flags = PF_R | PF_X,
       .file_offset = 0x5e0,
       .vaddr = 0x15e0,
       .file_bytes = 0x400,
       .memory_bytes = 0x400},
      {.flags = PF_R | PF_W,
       .file_offset = 0x9e0,
       .vaddr = 0x29e0,
       .file_bytes = 0x100,
       .memory_bytes = 0x100},
  });
  CHECK(bias(layout, kBase + 0x1000, 0x1000, 0) == kBase);
}

TEST_CASE("bias_of_mapping knows where a program runs two of whose code segments share a page") {
  const std::vector<ElfSegment> segments = {
      {.flags = PF_R | PF_X,
       .file_offset = 0x1000,
       .vaddr = 0x401000,
       .file_bytes = 0x69,
       .memory_bytes = 0x69},
      {.flags = PF_R | PF_X,
       .file_offset = 0x1069,
       .vaddr = 0x402069,
       .file_bytes = 0x32,
       .memory_bytes = 0x32},
  };
  const Layout layout = loaded_as(segments, {.type = ET_EXEC});
  CHECK(bias(layout, 0x401000, 0x1000, 0x1000) == 0);
  CHECK(bias(layout, 0x402000, 0x1000, 0x1000) == 0);
}

TEST_CASE("bias_of_mapping knows that pages may be of 64 KiB except on x86") {
  const std::vector<ElfSegment> segments = {
      {.file_offset = 0, .vaddr = 0, .file_bytes = 0x12340, .memory_bytes = 0x12340},
      {.flags = PF_R | PF_X,
       .file_offset = 0x12340,
       .vaddr = 0x22340,
       .file_bytes = 0x20000,
       .memory_bytes = 0x20000},
  };
  const Layout arm = loaded_as(segments, {.machine = EM_AARCH64});
  CHECK(bias(arm, kBase + 0x20000, 0x30000, 0x10000) == kBase);
  CHECK(bias(arm, kBase + 0x22000, 0x21000, 0x12000) == kBase);
  const Layout x86 = loaded_as(segments, {.machine = EM_X86_64});
  CHECK(bias(x86, kBase + 0x10000, 0x3000, 0x10000) == kBase);
  CHECK(bias(x86, kBase + 0x22000, 0x21000, 0x12000) == kBase);
}

TEST_CASE("bias_of_mapping understands the dynamic linker's first mapping of a whole library") {
  const Layout layout = loaded_as({
      {.flags = PF_R | PF_X,
       .file_offset = 0,
       .vaddr = 0,
       .file_bytes = 0x3000,
       .memory_bytes = 0x3000},
      {.flags = PF_R | PF_W,
       .file_offset = 0x3000,
       .vaddr = 0x203000,
       .file_bytes = 0x1000,
       .memory_bytes = 0x1000},
  });
  CHECK(bias(layout, kBase, 0x204000, 0) == kBase);
}

TEST_CASE("bias_of_mapping gives a wrapping bias for a file loaded below its own addresses") {
  const Layout layout = loaded_as({{.flags = PF_R | PF_X,
                                    .file_offset = 0x1000,
                                    .vaddr = 0xffffffff81001000,
                                    .file_bytes = 0x1000,
                                    .memory_bytes = 0x1000}});
  const auto found = bias_of_mapping(layout, {0x400000}, 0x1000, 0x1000);
  REQUIRE(found);
  CHECK(to_link({0x400010}, *found).value == 0xffffffff81001010);
  CHECK_FALSE(bias(layout, 0x400800, 0x1000, 0x1000));  // no whole pages
}

TEST_CASE("architecture_name speaks as Sentry does") {
  const auto name = [](uint16_t machine, uint32_t flags = 0) {
    Layout layout;
    layout.machine = machine;
    layout.flags = flags;
    return std::string(architecture_name(layout));
  };
  CHECK(name(EM_X86_64) == "x86_64");
  CHECK(name(EM_386) == "x86");
  CHECK(name(EM_AARCH64) == "arm64");
  CHECK(name(EM_ARM) == "arm");
  CHECK(name(EM_PPC) == "ppc");
  CHECK(name(EM_PPC64) == "ppc64");
  CHECK(name(EM_MIPS) == "mips");
  CHECK(name(EM_MIPS, 0x4000) == "mips64");
  CHECK(name(EM_RISCV).empty());
}

namespace {

// As lld lays out: offsets follow each other, addresses are a page apart.
Layout with_pages_between(uint16_t machine) {
  return loaded_as({{.file_offset = 0, .vaddr = 0, .file_bytes = 0x5e0, .memory_bytes = 0x5e0},
                    {.flags = PF_R | PF_X,
                     .file_offset = 0x5e0,
                     .vaddr = 0x15e0,
                     .file_bytes = 0x2400,
                     .memory_bytes = 0x2400}},
                   {.machine = machine});
}

}  // namespace

TEST_CASE("segment_of_code takes the pages that the loader gives to an executable segment") {
  const Layout layout = with_pages_between(EM_X86_64);
  const auto is_code = [](const Layout& of, uint64_t begin, uint64_t end) {
    const Segment* const segment = segment_of_code(of, {kBase}, {kBase + begin}, end - begin);
    return segment != nullptr && segment->is_executable;
  };
  CHECK(is_code(layout, 0x1000, 0x4000));
  CHECK(is_code(layout, 0x2000, 0x3000));
  CHECK_FALSE(is_code(layout, 0x0000, 0x1000));
  CHECK_FALSE(is_code(layout, 0x0000, 0x2000));
  CHECK_FALSE(is_code(layout, 0x3000, 0x5000));
  CHECK_FALSE(is_code(layout, 0x4000, 0x5000));
  CHECK_FALSE(is_code(layout, 0x2000, UINT64_MAX));
  CHECK_FALSE(is_code(layout, 0x0000, 0x10000));
  CHECK(is_code(with_pages_between(EM_AARCH64), 0x0000, 0x10000));
}

TEST_CASE("possible_biases has one for each segment that a page of the file is of") {
  const Layout layout = with_pages_between(EM_X86_64);
  CHECK(possible_biases(layout, {kBase}, 0) == std::vector<LoadBias>{{kBase}, {kBase - 0x1000}});
  CHECK(possible_biases(layout, {kBase + 0x2000}, 0x1000) == std::vector<LoadBias>{{kBase}});
  CHECK(possible_biases(layout, {kBase}, 0x9000).empty());
  CHECK(possible_biases(layout, {kBase + 0x800}, 0).empty());
}
