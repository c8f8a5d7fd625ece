#include "support/snapshot.h"

#include "base/byte_source.h"
#include "elf/layout.h"
#include "elf/signal_return.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

namespace sentry_prof::test {
namespace {

using Words = std::vector<std::string>;

// The words of every line that has any, comments taken off.
std::vector<Words> read_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::vector<Words> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    Words found{std::istream_iterator<std::string>(words), {}};
    if (!found.empty()) lines.push_back(std::move(found));
  }
  return lines;
}

uint64_t number(const std::string& word) { return std::stoull(word, nullptr, 0); }

MemoryByteSource read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Bytes bytes = std::as_bytes(std::span(text));
  return MemoryByteSource({bytes.begin(), bytes.end()});
}

template <typename T>
T value_of(Result<T> result, const std::filesystem::path& path) {
  if (!result) throw std::runtime_error(path.string() + ": " + result.error().message);
  return std::move(*result);
}

// Rows as target::LoadedImage has them.
class StoredImage final : public unwind::CfiSource {
 public:
  explicit StoredImage(const std::filesystem::path& path)
      : file_(read_file(path)),
        layout_(value_of(elf::read_layout(file_), path)),
        table_(value_of(elf::read_cfi_sections(file_, layout_), path)) {}

  unwind::RowStatus row_at(LinkAddress pc, unwind::Row& row) const override {
    const unwind::RowStatus status = table_.row_at(pc, row);
    if (status != unwind::RowStatus::NoCfi) return status;
    return elf::signal_return_row(file_, layout_, pc, row) ? unwind::RowStatus::Found : status;
  }

 private:
  MemoryByteSource file_;
  elf::Layout layout_;
  elf::CfiTable table_;
};

}  // namespace

Snapshot::Snapshot(const std::filesystem::path& folder) : folder_(folder) {
  load_registers();
  load_stack();
  load_maps();
  load_code();
  load_expected();
}

void Snapshot::load_registers() {
  for (const Words& line : read_lines(folder_ / "registers.txt")) {
    if (line.at(0) == "arch") {
      arch_ = line.at(1) == "aarch64" ? unwind::Arch::Aarch64 : unwind::Arch::X86_64;
      continue;
    }
    const uint64_t reg = number(line.at(0));
    if (reg >= unwind::kRegisterCount) throw std::runtime_error("register out of range");
    registers_.set(static_cast<unsigned>(reg), number(line.at(1)));
  }
}

void Snapshot::load_stack() {
  for (const Words& line : read_lines(folder_ / "stack.txt")) {
    const uint64_t address = number(line.at(0));
    if (stack_words_.empty()) stack_begin_ = address;
    if (address != stack_begin_ + stack_words_.size() * 8) {
      throw std::runtime_error("stack.txt has a gap at " + line.at(0));
    }
    for (size_t i = 1; i < line.size(); ++i) stack_words_.push_back(number(line[i]));
  }
}

void Snapshot::load_maps() {
  for (const Words& line : read_lines(folder_ / "maps.txt")) {
    unwind::Module module{
        .begin = {number(line.at(0))}, .end = {number(line.at(1))}, .bias = {number(line.at(2))}};
    if (line.at(3) != "-") {
      module.image = image_of(line[3]);
      module.cfi = images_[module.image].get();
      module.code = code_[module.image].get();
    }
    modules_.insert(module);
  }
}

unwind::ImageId Snapshot::image_of(const std::string& file) {
  const auto known = std::find(files_.begin(), files_.end(), file);
  if (known != files_.end()) return static_cast<unwind::ImageId>(known - files_.begin());
  images_.push_back(std::make_unique<StoredImage>(folder_ / file));
  code_.push_back(std::make_unique<FakeCode>());
  files_.push_back(file);
  return static_cast<unwind::ImageId>(files_.size() - 1);
}

void Snapshot::load_code() {
  if (!std::filesystem::exists(folder_ / "code.txt")) return;
  for (const Words& line : read_lines(folder_ / "code.txt")) {
    FakeCode& code = *code_.at(image_of(line.at(0)));
    for (size_t i = 2; i < line.size(); ++i) {
      code.put(number(line[1]) + i - 2, {std::stoi(line[i], nullptr, 16)});
    }
  }
}

void Snapshot::load_expected() {
  for (const Words& line : read_lines(folder_ / "frames.txt")) {
    expected_.push_back(fmt::format("{}", fmt::join(line, " ")));
  }
}

std::vector<std::string> Snapshot::walk() const {
  unwind::Unwinder unwinder(arch_);
  const unwind::Walk walk = unwinder.walk(registers_, stack(), modules_);
  std::vector<std::string> lines;
  for (const unwind::WalkedFrame& frame : walk.frames) {
    const std::string file = frame.image == unwind::kNoImage ? "-" : files_[frame.image];
    lines.push_back(fmt::format("{} {:#x} {}{}", file, frame.pc, name_of(frame.origin),
                                frame.pc_is_exact ? " exact" : ""));
  }
  lines.push_back(fmt::format("end {}", name_of(walk.end)));
  return lines;
}

}  // namespace sentry_prof::test
