#include "elf/go_function_table.h"

#include "support/catch2.h"
#include "support/go_table_builder.h"

#include <cstring>
#include <memory>

using namespace sentry_prof;
using namespace sentry_prof::elf;
using namespace sentry_prof::test;
using unwind::Row;
using unwind::RowStatus;
using unwind::RuleKind;

namespace {

constexpr unsigned kRbp = 6, kRsp = 7, kRip = 16;
constexpr uint8_t kTopFrame = 1, kSpWrite = 2, kAssembly = 4;

// 0x1000 main.work, 0x1040 runtime.goexit, 0x1060 runtime.systemstack, ...
const std::vector<GoFunction> kProgram = {
    {"main.work", 0x40, 0, {{4, 0}, {1, 8}, {0x3b, 0x48}}},
    {"runtime.goexit", 0x20, kTopFrame | kAssembly, {{0x20, 0}}},
    {"runtime.systemstack", 0x40, kSpWrite | kAssembly, {{0x40, 0}}},
    {"runtime.mcall", 0x20, kSpWrite | kAssembly, {{0x20, 0}}},
    {"runtime.sigtramp", 0x20, kTopFrame | kAssembly, {{1, 0}, {0x1f, 0x40}}},
    {"runtime.sigreturn", 0x20, kAssembly, {{0x20, 0}}},
    {"main.main", 0x20, 0, {{0x20, 0}}},
};
constexpr uint64_t kGoexit = 0x1040, kSystemstack = 0x1060, kMcall = 0x10a0, kSigtramp = 0x10c0,
                   kSigreturn = 0x10e0, kMain = 0x1100, kEnd = 0x1120;

struct Image {
  explicit Image(std::vector<std::byte> bytes)
      : file(std::make_shared<MemoryByteSource>(std::move(bytes))),
        layout(read_layout(*file).value()) {}
  explicit Image(const std::vector<GoFunction>& functions, GoTableOptions options = {})
      : Image(go_image(go_table(functions, options))) {}

  Result<std::unique_ptr<GoFunctionTable>> open(uint64_t max_bytes = 1 << 20) const {
    return GoFunctionTable::open(*file, layout, max_bytes);
  }
  ErrorCode error() const {
    const auto table = open();
    REQUIRE_FALSE(table.has_value());
    return table.error().code;
  }
  RowStatus at(uint64_t pc) {
    row = {};
    return open().value()->row_at({pc}, row);
  }

  std::shared_ptr<const MemoryByteSource> file;
  Layout layout;
  Row row;
};

std::vector<std::byte> patched(std::vector<std::byte> bytes, size_t offset, uint64_t value,
                               size_t size) {
  REQUIRE(offset + size <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, size);
  return bytes;
}

// Fields of the header.
constexpr size_t kCountOffset = 8, kNamesOffset = 32, kValuesOffset = 56, kRecordsOffset = 64;

}  // namespace

TEST_CASE("a row is how far the stack pointer has moved", "[go]") {
  for (const uint32_t magic : {0xfffffff0u, 0xfffffff1u}) {
    Image image(kProgram, {.magic = magic});
    REQUIRE(image.at(0x1003) == RowStatus::Found);
    CHECK(image.row.begin.value == 0x1000);
    CHECK(image.row.end.value == 0x1004);
    CHECK(image.row.cfa_register == kRsp);
    CHECK(image.row.cfa_offset == 8);
    CHECK(image.row.return_address_register == kRip);
    CHECK(image.row.rules[kRip].kind == RuleKind::AtCfaOffset);
    CHECK(image.row.rules[kRip].offset == -8);
    CHECK(image.row.rules[kRbp].kind == RuleKind::Unspecified);
    REQUIRE(image.at(0x103f) == RowStatus::Found);
    CHECK(image.row.begin.value == 0x1005);
    CHECK(image.row.end.value == 0x1040);
    CHECK(image.row.cfa_offset == 0x50);
    CHECK(image.row.rules[kRbp].kind == RuleKind::AtCfaOffset);
    CHECK(image.row.rules[kRbp].offset == -16);
  }
}

TEST_CASE("what no function covers has no row", "[go]") {
  Image image(kProgram);
  for (const uint64_t pc : {uint64_t{0}, uint64_t{0xfff}, kEnd, UINT64_MAX}) {
    CHECK(image.at(pc) == RowStatus::NoCfi);
  }
  Image none(std::vector<GoFunction>{});
  CHECK(none.at(0x1000) == RowStatus::NoCfi);
}

TEST_CASE("flags say whose caller is not above it", "[go]") {
  Image image(kProgram);
  CHECK(image.at(kGoexit) == RowStatus::Root);
  CHECK(image.at(kSystemstack + 0x20) == RowStatus::OtherStack);
  CHECK(image.at(kMcall + 0x10) == RowStatus::Root);
  // The handler of signals has a caller, and assembly saves the frame pointer where it likes.
  REQUIRE(image.at(kSigtramp + 0x10) == RowStatus::Found);
  CHECK(image.row.cfa_offset == 0x48);
  CHECK(image.row.rules[kRbp].kind == RuleKind::Undefined);
  CHECK(image.at(kMain) == RowStatus::Found);
}

TEST_CASE("before a function changes the stack its caller is above it", "[go]") {
  Image image({{"time.now", 0x40, kSpWrite | kAssembly, {{4, 0}, {0x3c, 24}}},
               {"runtime.systemstack", 0x40, kSpWrite | kAssembly, {{0x30, 0}}}});
  REQUIRE(image.at(0x1003) == RowStatus::Found);
  CHECK(image.row.cfa_offset == 8);
  CHECK(image.at(0x1004) == RowStatus::OtherStack);
  CHECK(image.at(0x1041) == RowStatus::OtherStack);  // no frame follows
}

TEST_CASE("a return address that was popped is in r12", "[go]") {
  Image image({{"syscall.rawVforkSyscall", 0x40, kAssembly, {{8, 0}, {2, -8}, {0x36, 0}}}});
  REQUIRE(image.at(0x1008) == RowStatus::Found);
  CHECK(image.row.cfa_offset == 0);
  CHECK(image.row.rules[kRip].kind == RuleKind::Register);
  CHECK(image.row.rules[kRip].source_register == 12);
  CHECK(image.row.rules[kRbp].kind == RuleKind::Unspecified);
}

TEST_CASE("C code that Go's linker took in has no depths, and keeps no frame pointers", "[go]") {
  auto table = go_table(kProgram);
  uint64_t index = 0;
  std::memcpy(&index, table.data() + kRecordsOffset, sizeof index);
  const size_t depths_of_first = index + kProgram.size() * 8 + 4 + 16;
  Image image(go_image(patched(table, depths_of_first, 0, 4)));
  CHECK(image.at(0x1000) == RowStatus::NoCfi);
  CHECK_FALSE(image.open().value()->has_frame_pointers({0x1000}));
  CHECK(image.open().value()->has_frame_pointers({kMain}));
}

TEST_CASE("all of Go's code keeps frame pointers but what is called before it has one", "[go]") {
  Image image({{"main.main", 0x20, 0, {{0x20, 8}}},
               {"runtime.systemstack", 0x20, kSpWrite | kAssembly, {{0x20, 0}}},
               {"runtime.morestack", 0x20, kSpWrite | kAssembly, {{0x20, 0}}}});
  const auto table = image.open().value();
  for (int i = 0; i < 2; ++i) {
    CHECK(table->has_frame_pointers({0x1000}));
    CHECK(table->has_frame_pointers({0x1020}));
    CHECK_FALSE(table->has_frame_pointers({0x1040}));
    CHECK_FALSE(table->has_frame_pointers({0x1060}));
    CHECK_FALSE(table->has_frame_pointers({0xfff}));
  }
}

TEST_CASE("functions have names", "[go]") {
  const Image image(kProgram);
  const auto table = image.open().value();
  CHECK(table->name_at({0x1000}, 100) == "main.work");
  CHECK(table->name_at({kMain}, 4) == "main");
  CHECK_FALSE(table->name_at({kMain}, 0).has_value());
  CHECK_FALSE(table->name_at({kEnd}, 100).has_value());
}

TEST_CASE("the call of rt_sigreturn leads to what the signal interrupted", "[go]") {
  std::vector<std::byte> code(0x1000);
  const uint8_t call[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  std::memcpy(code.data() + (kSigreturn - 0x1000), call, sizeof call);
  Image image(go_image(go_table(kProgram), code));
  // The return address less one is the last byte of the function before.
  for (const uint64_t pc : {kSigreturn - 1, kSigreturn, kSigreturn + 7}) {
    REQUIRE(image.at(pc) == RowStatus::Found);
    CHECK(image.row.is_signal_frame);
  }
  REQUIRE(image.at(kSigreturn - 2) == RowStatus::Found);
  CHECK_FALSE(image.row.is_signal_frame);
}

TEST_CASE("images without such a table, and tables of other versions, are told apart", "[go]") {
  CHECK(Image(ElfBuilder().build()).error() == ErrorCode::NotFound);
  CHECK(Image(go_image(go_table(kProgram), {}, {.kind = {.machine = EM_AARCH64}})).error() ==
        ErrorCode::NotFound);
  CHECK(Image(kProgram, {.magic = 0xfffffffa}).error() == ErrorCode::Unsupported);
  CHECK(Image(kProgram, {.quantum = 4}).error() == ErrorCode::Unsupported);
  CHECK(Image(kProgram, {.pointer_bytes = 4}).error() == ErrorCode::Unsupported);
  CHECK(Image(kProgram, {.text = 0}).error() == ErrorCode::Unsupported);
  CHECK(Image(kProgram, {.text = UINT64_MAX - 0x100}).error() == ErrorCode::Malformed);
}

TEST_CASE("since Go 1.26 another section says where the code begins", "[go]") {
  const auto table = go_table(kProgram, {.magic = 0xfffffff1, .text = 0});
  const auto image_of = [&](std::vector<std::byte> module) {
    return Image(go_image(table, {}, {.module = std::move(module)}));
  };
  Image image = image_of(go_module(0x1000, 0x1000, kEnd));
  REQUIRE(image.at(0x1003) == RowStatus::Found);
  CHECK(image.row.begin.value == 0x1000);
  CHECK(image.at(kGoexit) == RowStatus::Root);
  CHECK(image.open().value()->name_at({kMain}, 100) == "main.main");
  // The first function need not be the first code: C code of another linker may lie before it.
  const auto behind = go_table({{"main.main", 0x20, 0, {{0x20, 0}}}}, {.text = 0, .first = 0x100});
  Image later(go_image(behind, {}, {.module = go_module(0x1000, 0x1100, 0x1120)}));
  CHECK(later.at(0x1100) == RowStatus::Found);
  CHECK(later.at(0x1000) == RowStatus::NoCfi);

  CHECK(image_of({}).error() == ErrorCode::Unsupported);
  CHECK(image_of(std::vector<std::byte>(183)).error() == ErrorCode::Unsupported);
  CHECK(image_of(go_module(0, 0, 0)).error() == ErrorCode::Unsupported);
  CHECK(image_of(go_module(0x1000, 0x1001, kEnd)).error() == ErrorCode::Unsupported);
  CHECK(image_of(go_module(0x1000, 0x1000, kEnd + 1)).error() == ErrorCode::Unsupported);
  CHECK(image_of(go_module(UINT64_MAX, UINT64_MAX, UINT64_MAX + (kEnd - 0x1000))).error() ==
        ErrorCode::Malformed);
}

TEST_CASE("LLVM's linker leaves where the code begins to the loader", "[go]") {
  using Relocations = std::vector<std::pair<uint64_t, uint64_t>>;
  const auto table = go_table(kProgram, {.text = 0});
  constexpr uint64_t kHeaderText = 0x4018, kModuleText = 0x8000 + 160;
  Relocations many;
  for (uint64_t i = 0; i < 5000; ++i) many.emplace_back(0x100000 + 8 * i, 7);
  many.emplace_back(kHeaderText, 0x1000);
  Image older(go_image(table, {}, {.relocations = many}));
  CHECK(older.at(0x1003) == RowStatus::Found);
  // The table is somewhere in .data.rel.ro, too.
  Image elsewhere(
      go_image(table, {}, {.bytes_before = 0x40, .relocations = {{kHeaderText + 0x40, 0x1000}}}));
  CHECK(elsewhere.at(0x1003) == RowStatus::Found);
  const auto later_by = [&](Relocations relocations) {
    return Image(
        go_image(table, {}, {.module = go_module(0, 0, 0), .relocations = std::move(relocations)}));
  };
  Image later =
      later_by({{kModuleText, 0x1000}, {kModuleText + 8, kEnd}, {kModuleText + 16, 0x1000}});
  CHECK(later.at(0x1003) == RowStatus::Found);

  CHECK(later_by({{kModuleText + 8, kEnd}, {kModuleText + 16, 0x1000}}).error() ==
        ErrorCode::Unsupported);
  CHECK(later_by({{kModuleText + 16, 0x1000}}).error() == ErrorCode::Unsupported);
  CHECK(later_by({{kModuleText + 24, 0x1000}}).error() == ErrorCode::Unsupported);
  const auto older_error = [&](const GoImageOptions& options) {
    return Image(go_image(table, {}, options)).error();
  };
  CHECK(older_error({.relocations = {{kHeaderText + 1, 0x1000}}}) == ErrorCode::Unsupported);
  CHECK(older_error({.relocations = {{kHeaderText - 8, 0x1000}}}) == ErrorCode::Unsupported);
  CHECK(older_error({.relocations = {{kHeaderText, 0x1000}}, .relocation_type = R_X86_64_64}) ==
        ErrorCode::Unsupported);
}

TEST_CASE("linkers other than Go's lay the table somewhere into .data.rel.ro", "[go]") {
  const auto table = go_table(kProgram);
  // In two pieces of those that are searched, at their first, last and other places.
  for (const size_t bytes_before :
       {0u, 32u, 4096u, (256u << 10) - 32u, 256u << 10, (256u << 10) + 64u}) {
    Image image(go_image(table, {}, {.bytes_before = bytes_before}));
    CHECK(image.at(0x1003) == RowStatus::Found);
    CHECK(image.open().value()->name_at({kMain}, 100) == "main.main");
    // Nothing is read behind the section.
    const Section found = find_go_places(*image.file, image.layout)->functions;
    CHECK(found.size_bytes == table.size());
    CHECK(found.address.value == 0x4000 + bytes_before);
  }
  // go build -ldflags=-buildid= leaves no note, Go before 1.24 no build information in plugins.
  Image without_note(go_image(table, {}, {.bytes_before = 32, .mark = ".go.buildinfo"}));
  CHECK(without_note.at(0x1003) == RowStatus::Found);
  CHECK(go_search_bytes(without_note.layout) == table.size() + 32);
  CHECK(go_search_bytes(Image(go_image(table)).layout) == 0);
  // Addresses are aligned, places in the section need not be.
  Image image(go_image(table, {}, {.address = 0x4010, .bytes_before = 16}));
  CHECK(image.at(0x1003) == RowStatus::Found);
  const auto error_of = [](std::vector<std::byte> other, const GoImageOptions& options) {
    return Image(go_image(std::move(other), {}, options)).error();
  };
  CHECK(error_of(table, {.bytes_before = 16}) == ErrorCode::NotFound);
  CHECK(error_of(table, {.address = 0x4010, .bytes_before = 32}) == ErrorCode::NotFound);
  // Only programs of Go are searched, and only for such tables.
  CHECK(error_of(table, {.bytes_before = 32, .mark = ""}) == ErrorCode::NotFound);
  for (const GoTableOptions& other :
       {GoTableOptions{.magic = 0xfffffffa}, {.quantum = 4}, {.pointer_bytes = 4}}) {
    CHECK(error_of(go_table(kProgram, other), {.bytes_before = 32}) == ErrorCode::NotFound);
  }
  CHECK(error_of(patched(table, 4, 1, 2), {.bytes_before = 32}) == ErrorCode::NotFound);
}

TEST_CASE("numbers that do not fit are refused", "[go]") {
  const auto table = go_table(kProgram);
  const auto error_with = [&](size_t offset, uint64_t value) {
    return Image(go_image(patched(table, offset, value, 8))).error();
  };
  for (const size_t offset : {kNamesOffset, kValuesOffset, kRecordsOffset}) {
    CHECK(error_with(offset, table.size() + 1) == ErrorCode::Malformed);
    CHECK(error_with(offset, UINT64_MAX) == ErrorCode::Malformed);
  }
  CHECK(error_with(kCountOffset, 1000) == ErrorCode::Malformed);
  CHECK(error_with(kCountOffset, UINT64_MAX) == ErrorCode::LimitExceeded);
  CHECK(error_with(kCountOffset, UINT64_MAX / 8) == ErrorCode::LimitExceeded);
  CHECK(Image(kProgram).open(16).error().code == ErrorCode::LimitExceeded);
  CHECK(Image(go_image({table.begin(), table.begin() + 71})).error() == ErrorCode::Io);
  CHECK(Image(go_image({table.begin(), table.begin() + 80})).error() == ErrorCode::Malformed);
}

TEST_CASE("functions that are not in order are refused", "[go]") {
  const auto table = go_table(kProgram);
  uint64_t index = 0;
  std::memcpy(&index, table.data() + kRecordsOffset, sizeof index);
  CHECK(Image(go_image(patched(table, index + 8, 0x7000, 4))).error() == ErrorCode::Malformed);
}

TEST_CASE("records and depths that make no sense give no row", "[go]") {
  const auto table = go_table(kProgram);
  uint64_t index = 0, values = 0;
  std::memcpy(&index, table.data() + kRecordsOffset, sizeof index);
  std::memcpy(&values, table.data() + kValuesOffset, sizeof values);
  const auto status_with = [&](size_t offset, uint64_t value, size_t size, uint64_t pc) {
    return Image(go_image(patched(table, offset, value, size))).at(pc);
  };
  const size_t record = index + kProgram.size() * 8 + 4;
  CHECK(status_with(index + 4, 0xfffffff0, 4, 0x1000) == RowStatus::NoCfi);  // where it is
  CHECK(status_with(record, 1, 4, 0x1000) == RowStatus::NoCfi);              // of another
  CHECK(status_with(record + 16, 0xfffffff0, 4, 0x1000) == RowStatus::NoCfi);
  CHECK(status_with(values + 1, 0x7f, 1, 0x1000) == RowStatus::NoCfi);  // below the entry
  CHECK(status_with(values + 2, 0, 1, 0x1000) == RowStatus::NoCfi);     // for no code
  CHECK(status_with(values + 3, 0, 1, 0x1008) == RowStatus::NoCfi);     // ends before the pc
  CHECK(status_with(values + 1, 0xffffffffffff, 6, 0x1000) == RowStatus::NoCfi);
  // A name that is not there is none of those that are known.
  const size_t goexit = record + 40;
  CHECK(status_with(goexit + 4, 0xfffffff0, 4, kGoexit) == RowStatus::Root);
}

TEST_CASE("a long table of depths is read to its end, and no further than its limit", "[go]") {
  GoFunction function{"main.long", 0, 0, {}};
  for (uint32_t i = 0; i < 20'000; ++i) function.depths.push_back({1, i % 2 == 0 ? 0 : 8});
  function.size_bytes = 40'000;
  Image image({function});
  REQUIRE(image.at(0x1000 + 19'999) == RowStatus::Found);
  CHECK(image.row.cfa_offset == 16);
  CHECK(image.row.work > 40'000);
  CHECK(image.at(0x1000 + 20'000) == RowStatus::NoCfi);
  for (uint32_t i = 0; i < 20'000; ++i) function.depths.push_back({1, i % 2 == 0 ? 0 : 8});
  Image longer({function});
  CHECK(longer.at(0x1000 + 39'999) == RowStatus::NoCfi);
}
