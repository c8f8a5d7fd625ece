#include "elf/go_function_table.h"

#include "base/byte_reader.h"
#include "base/checked.h"
#include "elf/go_places.h"
#include "elf/signal_return.h"
#include "unwind/code_source.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace sentry_prof::elf {
namespace {

using unwind::Row;
using unwind::RowStatus;
using unwind::RuleKind;

constexpr size_t kHeader_bytes = 72;  // pcHeader with pointers of eight bytes

// Go 1.24's own compiler has 16,280.
constexpr uint64_t kMaxFunctions = 1u << 22;
// Of one function's table of stack depths. The longest of Go 1.24's own compiler has 4,070.
constexpr uint64_t kMaxPcValues_bytes = 1u << 16;
// The deepest is that of reflection's runtime.call1073741824, whose arguments take 1 GiB.
constexpr int64_t kMaxDepth_bytes = int64_t{1} << 31;
// syscall.rawVforkSyscall pops its return address into r12 while the child shares its stack.
constexpr int64_t kMinDepth_bytes = -8;

enum FunctionFlag : uint8_t {
  kTopFrame = 1,  // the outermost of its stack
  kSpWrite = 2,   // writes the stack pointer in a way that the table does not tell
  kAssembly = 4,
};

constexpr uint16_t kRbp = 6, kRsp = 7, kR12 = 12, kRip = 16;  // psABI, figure 3.36

// Numbers of seven bits a byte, read piece by piece.
class Varints {
 public:
  Varints(const ByteSource& file, uint64_t offset, uint64_t end)
      : file_(file), offset_(offset), end_(end) {}

  // None at the end, where the file cannot be read, or behind 32 bits.
  std::optional<uint32_t> next() {
    uint32_t value = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
      if (position_ == filled_ && !refill()) return std::nullopt;
      const auto byte = std::to_integer<uint32_t>(piece_[position_++]);
      ++taken_;
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }
  uint32_t taken_bytes() const { return taken_; }

 private:
  bool refill() {
    position_ = 0;
    filled_ = static_cast<size_t>(std::min<uint64_t>(piece_.size(), end_ - offset_));
    if (filled_ == 0 || !file_.read_at(offset_, std::span(piece_).first(filled_))) {
      filled_ = 0;
      return false;
    }
    offset_ += filled_;
    return true;
  }

  const ByteSource& file_;
  uint64_t offset_;
  uint64_t end_;
  std::array<std::byte, 256> piece_{};
  size_t position_ = 0;
  size_t filled_ = 0;
  uint32_t taken_ = 0;
};

int64_t from_zigzag(uint32_t value) {
  const auto half = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? ~half : half;
}

// Compiled functions that have a frame save the frame pointer at its top. (Before Go 1.21 the stack
// pointer is lowered first: for two instructions of a leaf that is not so.) Assembly need not.
void set_frame_pointer_rule(Row& row, int64_t depth_bytes, bool is_assembly) {
  if (depth_bytes <= 0) return;
  row.rules[kRbp] = is_assembly
                        ? unwind::RegisterRule{.kind = RuleKind::Undefined}
                        : unwind::RegisterRule{.kind = RuleKind::AtCfaOffset, .offset = -16};
}

}  // namespace

// What is needed of a _func.
struct GoFunctionTable::Record {
  uint32_t name = 0;       // in the names
  uint32_t pc_values = 0;  // of stack depths, in the tables of values
  uint8_t flags = 0;

  bool is_assembly() const { return (flags & kAssembly) != 0; }
};

Result<std::unique_ptr<GoFunctionTable>> GoFunctionTable::open(const ByteSource& file,
                                                               const Layout& layout,
                                                               uint64_t max_bytes) {
  const auto places = find_go_places(file, layout);
  if (!places) return fail(ErrorCode::NotFound, "no table of Go's functions");
  std::unique_ptr<GoFunctionTable> table(new GoFunctionTable(file, layout, places->functions));
  if (auto ok = table->read_header(); !ok) return tl::unexpected(std::move(ok.error()));
  if (auto ok = table->read_functions(max_bytes); !ok) return tl::unexpected(std::move(ok.error()));
  if (auto ok = table->take_text(places->text); !ok) return tl::unexpected(std::move(ok.error()));
  if (auto ok = table->check_functions(); !ok) return tl::unexpected(std::move(ok.error()));
  return table;
}

Result<void> GoFunctionTable::read_header() {
  std::array<std::byte, kHeader_bytes> bytes{};
  if (section_.size_bytes < bytes.size() || !file_.read_at(section_.file_offset, bytes)) {
    return fail(ErrorCode::Io, "the table of Go's functions cannot be read");
  }
  if (!is_go_table(bytes)) {
    return fail(ErrorCode::Unsupported, "a table of Go's functions of another version");
  }
  ByteReader in(bytes);
  has_start_line_ = in.u32() == kGo120Magic;
  in.skip(4);
  function_count_ = in.u64();
  in.skip(16);  // files, and where the code begins: GoPlaces::text
  names_ = in.u64();
  in.skip(16);  // compilation units, names of files
  pc_values_ = in.u64();
  records_ = in.u64();
  if (std::max({names_, pc_values_, records_}) > section_.size_bytes) {
    return fail(ErrorCode::Malformed, "the table of Go's functions has parts outside of itself");
  }
  return {};
}

Result<void> GoFunctionTable::read_functions(uint64_t max_bytes) {
  const uint64_t count = function_count_;
  if (count > kMaxFunctions || (count + 1) * kFunction_bytes > max_bytes) {
    return fail(ErrorCode::LimitExceeded,
                "the table of Go's functions is larger than what is left for it");
  }
  // The last entry is a begin without a record.
  const uint64_t size_bytes = count * sizeof(Function) + sizeof(uint32_t);
  if (size_bytes > section_.size_bytes - records_) {
    return fail(ErrorCode::Malformed, "the table of Go's functions ends before its functions");
  }
  functions_.resize(static_cast<size_t>(count) + 1);
  const auto bytes = std::as_writable_bytes(std::span(functions_));
  if (!file_.read_at(section_.file_offset + records_,
                     bytes.first(static_cast<size_t>(size_bytes)))) {
    return fail(ErrorCode::Io, "the table of Go's functions cannot be read");
  }
  keeps_.resize(functions_.size());
  return {};
}

Result<void> GoFunctionTable::take_text(const std::optional<GoText>& text) {
  if (!text) return fail(ErrorCode::Unsupported, "a table of Go's functions without places");
  // Go's runtime does not start if this does not hold (moduledataverify1).
  const bool is_of_these = text->min_pc - text->begin == functions_.front().begin &&
                           text->max_pc - text->begin == functions_.back().begin;
  if (text->max_pc != 0 && !is_of_these) {
    return fail(ErrorCode::Unsupported, "a table of Go's functions that are elsewhere");
  }
  text_ = text->begin;
  return {};
}

Result<void> GoFunctionTable::check_functions() const {
  const auto begins_before = [](const Function& a, const Function& b) { return a.begin < b.begin; };
  uint64_t end = 0;
  if (!std::is_sorted(functions_.begin(), functions_.end(), begins_before) ||
      !checked_add<uint64_t>(text_, functions_.back().begin, end)) {
    return fail(ErrorCode::Malformed, "the functions in the table of Go's are not in order");
  }
  return {};
}

std::optional<GoFunctionTable::Place> GoFunctionTable::find(LinkAddress pc) const {
  const uint64_t offset = pc.value - text_;
  if (pc.value < text_ || offset >= functions_.back().begin) return std::nullopt;
  const auto next = std::upper_bound(
      functions_.begin(), functions_.end(), offset,
      [](uint64_t value, const Function& function) { return value < function.begin; });
  if (next == functions_.begin()) return std::nullopt;
  const Function& function = *std::prev(next);
  const auto index = static_cast<size_t>(next - functions_.begin()) - 1;
  return Place{index, text_ + function.begin, text_ + next->begin, function.record};
}

std::optional<GoFunctionTable::Record> GoFunctionTable::read_record(const Place& place) const {
  const size_t start_line_bytes = has_start_line_ ? 4 : 0;
  std::array<std::byte, 42> room{};
  const std::span bytes = std::span(room).first(38 + start_line_bytes);
  uint64_t offset = 0;
  if (!checked_add<uint64_t>(records_, place.record, offset) ||
      !range_fits<uint64_t>(offset, bytes.size(), section_.size_bytes) ||
      !file_.read_at(section_.file_offset + offset, bytes)) {
    return std::nullopt;
  }
  ByteReader in(bytes);
  const uint32_t begin = in.u32();
  if (text_ + begin != place.begin) return std::nullopt;
  Record record;
  record.name = in.u32();
  in.skip(8);  // args, deferreturn
  record.pc_values = in.u32();
  in.skip(16 + start_line_bytes + 1);  // pcfile, pcln, npcdata, cuOffset, startLine, funcID
  record.flags = in.u8();
  return record;
}

std::optional<std::string> GoFunctionTable::read_name(const Record& record,
                                                      size_t max_bytes) const {
  uint64_t offset = 0;
  if (!checked_add<uint64_t>(names_, record.name, offset) || offset >= section_.size_bytes) {
    return std::nullopt;
  }
  const uint64_t room_bytes = std::min<uint64_t>(max_bytes, section_.size_bytes - offset);
  std::string name(static_cast<size_t>(room_bytes), '\0');
  if (!file_.read_at(section_.file_offset + offset, std::as_writable_bytes(std::span(name)))) {
    return std::nullopt;
  }
  name.resize(std::min(name.find('\0'), name.size()));
  return name.empty() ? std::nullopt : std::optional(std::move(name));
}

bool GoFunctionTable::is_named(const Record& record, std::string_view name) const {
  return read_name(record, name.size() + 1) == name;
}

std::optional<std::string> GoFunctionTable::name_at(LinkAddress pc, size_t max_bytes) const {
  const std::optional<Place> place = find(pc);
  const std::optional<Record> record = place ? read_record(*place) : std::nullopt;
  return record ? read_name(*record, max_bytes) : std::nullopt;
}

// What the flags say of a function without looking at the stack. Go's own unwinder (traceback.go)
// ends at the same functions, or goes over to the goroutine's stack, which no sample has.
std::optional<RowStatus> GoFunctionTable::status_by_flags(const Record& record, Row& row) const {
  if ((record.flags & (kTopFrame | kSpWrite)) == 0) return std::nullopt;
  row.work += unwind::kReadCodeWork;
  // The handler of signals is the outermost of its stack, too, but returns to what it interrupted.
  if ((record.flags & kTopFrame) != 0 && !is_named(record, "runtime.sigtramp")) {
    return RowStatus::Root;
  }
  if ((record.flags & kSpWrite) == 0) return std::nullopt;
  // Leaves its goroutine, which others may go on with, and runs the scheduler.
  return is_named(record, "runtime.mcall") ? RowStatus::Root : RowStatus::OtherStack;
}

std::optional<GoFunctionTable::StackDepth> GoFunctionTable::stack_depth(const Record& record,
                                                                        const Place& place,
                                                                        uint64_t pc,
                                                                        uint32_t& work) const {
  uint64_t offset = 0;
  if (!checked_add<uint64_t>(pc_values_, record.pc_values, offset)) return std::nullopt;
  if (offset > section_.size_bytes) return std::nullopt;
  const uint64_t room_bytes = std::min(section_.size_bytes - offset, kMaxPcValues_bytes);
  const uint64_t begin = section_.file_offset + offset;
  Varints values(file_, begin, begin + room_bytes);
  StackDepth depth{place.begin, place.begin, -1};
  while (depth.end <= pc) {
    const auto change = values.next();
    const auto code_bytes = values.next();
    work += 2;
    const bool is_end = change == 0u && depth.end != place.begin;
    if (!change || !code_bytes || is_end || *code_bytes == 0) return std::nullopt;
    depth.bytes += from_zigzag(*change);
    depth.begin = depth.end;
    depth.end += *code_bytes;
  }
  work += values.taken_bytes();
  const bool is_plausible = depth.bytes >= kMinDepth_bytes && depth.bytes <= kMaxDepth_bytes;
  return is_plausible ? std::optional(depth) : std::nullopt;
}

// Before a function has made its frame, it has not changed the stack either.
bool GoFunctionTable::is_before_frame(const Record& record, const Place& place,
                                      const StackDepth& depth, uint32_t& work) const {
  return depth.begin == place.begin && depth.bytes == 0 &&
         stack_depth(record, place, depth.end, work).has_value();
}

RowStatus GoFunctionTable::row_at(LinkAddress pc, Row& row) const {
  const std::optional<Place> place = find(pc);
  if (!place) return RowStatus::NoCfi;
  row.work += 2 * unwind::kReadCodeWork;
  const std::optional<Record> record = read_record(*place);
  // C code that Go's linker took in is among the functions, without a table of depths.
  if (!record || record->pc_values == 0) return RowStatus::NoCfi;
  // Handlers return to a function's first byte: less one, that is the last of the one before.
  const bool may_return_from_signal = record->is_assembly() || pc.value + 1 == place->end;
  if (may_return_from_signal && signal_return_row(file_, layout_, pc, row)) {
    return RowStatus::Found;
  }
  const auto status = status_by_flags(*record, row);
  uint32_t work = row.work;
  const auto depth = stack_depth(*record, *place, pc.value, work);
  const bool is_entry =
      status == RowStatus::OtherStack && depth && is_before_frame(*record, *place, *depth, work);
  row.work = work;
  if (status && !is_entry) return *status;
  if (!depth) return RowStatus::NoCfi;
  row = {};
  row.work = work;
  row.begin = {depth->begin};
  row.end = {std::min(depth->end, place->end)};
  row.cfa_kind = unwind::CfaKind::RegisterOffset;
  row.cfa_register = kRsp;
  row.cfa_offset = depth->bytes + 8;
  row.return_address_register = kRip;
  row.rules[kRip] = {.kind = RuleKind::AtCfaOffset, .offset = -8};
  if (depth->bytes < 0) row.rules[kRip] = {.kind = RuleKind::Register, .source_register = kR12};
  set_frame_pointer_rule(row, depth->bytes, record->is_assembly());
  return RowStatus::Found;
}

bool GoFunctionTable::has_frame_pointers(LinkAddress pc) const {
  const std::optional<Place> place = find(pc);
  if (!place) return false;
  Keeps& keeps = keeps_[place->index];
  if (keeps == Keeps::Unknown) keeps = read_keeps(*place);
  return keeps == Keeps::Yes;
}

GoFunctionTable::Keeps GoFunctionTable::read_keeps(const Place& place) const {
  const std::optional<Record> record = read_record(place);
  if (!record || record->pc_values == 0) return Keeps::No;
  const bool may_be_morestack = (record->flags & kSpWrite) != 0;
  return may_be_morestack && is_named(*record, "runtime.morestack") ? Keeps::No : Keeps::Yes;
}

}  // namespace sentry_prof::elf
