// A folder of tests/snapshots: one thread as scripts/make-snapshot stored it, and what the walk
// finds.
#pragma once

#include "elf/cfi_table.h"
#include "support/fake_cfi.h"
#include "unwind/walk.h"

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sentry_prof::test {

// Loads itself from a folder with these files ('#' begins a comment, numbers are hexadecimal with
// 0x or decimal):
//   registers.txt  number value             DWARF numbers, of x86-64 unless a line says
//                  arch aarch64
//   stack.txt      address: word word ...   upward without gaps
//   maps.txt       begin end bias file      executable mappings; '-' for no file
//   code.txt       file address: byte ...   link addresses; where the walk looks at instructions
//                                           (need not be there)
//   frames.txt     file pc origin           leaf first; pc as WalkedFrame has it, "exact" where so
//                  end CAUSE
// Throws std::runtime_error with the file's name if one is missing or wrong.
class Snapshot {
 public:
  explicit Snapshot(const std::filesystem::path& folder);

  // One line a frame, then "end CAUSE": the form of frames.txt without its comments.
  std::vector<std::string> walk() const;
  const std::vector<std::string>& expected() const { return expected_; }

  const unwind::Registers& registers() const { return registers_; }
  const unwind::ModuleMap& modules() const { return modules_; }
  unwind::StackSnapshot stack() const {
    return {RuntimeAddress{stack_begin_}, std::as_bytes(std::span(stack_words_))};
  }

 private:
  void load_registers();
  void load_stack();
  void load_maps();
  void load_code();
  void load_expected();
  unwind::ImageId image_of(const std::string& file);

  std::filesystem::path folder_;
  unwind::Arch arch_ = unwind::Arch::X86_64;
  unwind::Registers registers_;
  uint64_t stack_begin_ = 0;
  std::vector<uint64_t> stack_words_;
  std::vector<std::string> files_;  // by image id
  std::vector<std::unique_ptr<unwind::CfiSource>> images_;
  std::vector<std::unique_ptr<FakeCode>> code_;
  unwind::ModuleMap modules_;
  std::vector<std::string> expected_;
};

}  // namespace sentry_prof::test
