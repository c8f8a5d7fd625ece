// What frames of files are called: by symbols, and where these end by unwind tables.
#include "recorder/image_catalog.h"
#include "support/catch2.h"
#include "support/elf_builder.h"
#include "unit/elf/cfi_builder.h"
#include "unit/target/fake_opener.h"

using namespace sentry_prof;
using namespace sentry_prof::test;

namespace {

// .text is [0x1000, 0x2000): "assembly" without size, and behind it two functions whose symbols
// were stripped.
std::vector<std::byte> stripped_program() {
  elf_test::FrameBuilder frames;
  frames.cie();
  frames.fde(0x1100, 0x80);
  frames.fde(0x1180, 0x80);
  SymbolTableBuilder table;
  table.add({"assembly", 0x1000, 0, STT_NOTYPE, STB_GLOBAL, 1});
  ElfBuilder elf;
  elf.section({.name = ".text", .address = 0x1000, .contents = std::vector<std::byte>(0x1000)});
  elf.section(
      {.name = ".eh_frame", .address = 0x2000, .contents = frames.sections().eh_frame.bytes});
  elf.section(
      {.name = ".dynsym", .type = SHT_DYNSYM, .contents = table.symbols(), .link = ".dynstr"});
  elf.section({.name = ".dynstr", .type = SHT_STRTAB, .contents = table.strings()});
  elf.segment({.flags = PF_R | PF_X, .of_section = ".text"});
  return elf.build();
}

recorder::ChunkImages::File loaded(const std::vector<std::byte>& bytes) {
  auto file = std::make_shared<MemoryByteSource>(bytes);
  const elf::Layout layout = elf::read_layout(*file).value();
  auto budget = std::make_shared<elf::CfiBudget>(elf::CfiBudget{.bytes_left = 1 << 20});
  auto image = std::make_shared<target::LoadedImage>(0, "/bin/stripped", std::move(file), layout,
                                                     elf::Identity{}, RuntimeAddress{}, budget);
  unwind::Row row;
  image->row_at({0x1100}, row);  // a walk has needed its tables
  auto starts = image->function_starts();
  return {std::move(image), std::move(starts), nullptr};
}

std::vector<profile::FrameKey> exact_frames(std::initializer_list<uint64_t> pcs) {
  std::vector<profile::FrameKey> frames;
  for (const uint64_t pc : pcs) {
    profile::FrameKey frame;
    frame.image = 0;
    frame.pc = pc;
    frame.is_exact = true;
    frames.push_back(frame);
  }
  return frames;
}

}  // namespace

TEST_CASE("Stripped functions behind a label are named by where they begin, not by the label") {
  recorder::ChunkImages images;
  images.files.emplace(0, loaded(stripped_program()));
  recorder::SymbolFrameNames frame_names(std::move(images));
  const auto names = frame_names.names_of(exact_frames({0x1000, 0x10ff, 0x1100, 0x11ff}));
  CHECK(names[0].text == "assembly");
  CHECK(names[1].text == "assembly");
  CHECK(names[2].text.empty());
  CHECK(names[2].function_start == 0x1100);
  CHECK(names[3].text.empty());
  CHECK(names[3].function_start == 0x1180);
}

TEST_CASE("Stripped functions have the names of the debug file") {
  SymbolTableBuilder table;
  table.add({"stripped", 0x1100, 0x80, STT_FUNC, STB_LOCAL, 1});
  ElfBuilder elf;
  elf.section(
      {.name = ".symtab", .type = SHT_SYMTAB, .contents = table.symbols(), .link = ".strtab"});
  elf.section({.name = ".strtab", .type = SHT_STRTAB, .contents = table.strings()});
  recorder::ChunkImages images;
  recorder::ChunkImages::File file = loaded(stripped_program());
  file.debug_file = std::make_shared<MemoryByteSource>(elf.build());
  images.files.emplace(0, std::move(file));
  recorder::SymbolFrameNames frame_names(std::move(images));
  const auto names = frame_names.names_of(exact_frames({0x1000, 0x1104, 0x11ff}));
  CHECK(names[0].text == "assembly");
  CHECK(names[1].text == "stripped");
  CHECK(names[2].text.empty());
}

TEST_CASE("A chunk's images come with the debug files that they have") {
  FakeOpener opener;
  opener.files["/lib/a.so"] = make_library(build_id_of(1));
  opener.files["/usr/lib/debug/.build-id/01/11111111111111111111111111111111111111.debug"] =
      make_library(build_id_of(1));
  target::ImageStore images(opener);
  const uint32_t id = images.module_for(code_of("/lib/a.so", 0x1000'0000)).image;
  unwind::Row row;
  images.image(id)->row_at({0x3010}, row);
  profile::RawChunk chunk;
  chunk.frames = exact_frames({0x3010});
  chunk.frames[0].image = id;
  const recorder::AnonymousRegions regions({});
  const auto of_chunk = recorder::images_of_chunk(chunk, images, regions);
  CHECK(of_chunk.files.at(id).debug_file != nullptr);
}
