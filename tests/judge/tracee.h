// A command under PTRACE_SINGLESTEP, and its memory.
#pragma once

#include "instruction.h"
#include "shadow_stack.h"
#include "unwind/code_source.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

namespace sentry_prof::judge {

enum class StopKind : uint8_t { Stepped, Signal, Exec, Ended };

struct Stop {
  StopKind kind = StopKind::Ended;
  int number = 0;  // of the signal; the wait status of Ended
};

// The kernel does not let us trace at all.
struct NotPermitted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Only the main thread is stepped; threads and processes that it starts run free. Throws
// std::runtime_error where a call fails that does not in general.
class Tracee {
 public:
  // Begins at the first instruction after exec. Pins itself and the command to one CPU: a change of
  // CPU at every instruction would take several times as long. Throws NotPermitted.
  explicit Tracee(const std::vector<std::string>& command);
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;
  ~Tracee();

  pid_t pid() const { return pid_; }
  // Runs one instruction, delivering a signal first unless it is 0.
  Stop step(int signal);
  const user_regs_struct& registers() const { return registers_; }
  void kill();

  // How many bytes could be read.
  size_t read(uint64_t address, std::span<std::byte> into) const;
  uint64_t read_word(uint64_t address) const;
  // The mapping that holds the address, as wide as the stack may grow; empty if there is none.
  StackRegion mapping_of(uint64_t address) const;

 private:
  void start(const std::vector<std::string>& command);
  Stop wait();

  pid_t pid_ = -1;
  bool has_ended_ = false;
  user_regs_struct registers_{};
};

// Code that no file holds, for the walks.
class MemoryCode final : public unwind::CodeSource {
 public:
  explicit MemoryCode(const Tracee& tracee) : tracee_(tracee) {}
  [[nodiscard]] bool read_code(LinkAddress begin, std::span<std::byte> out) const override {
    return tracee_.read(begin.value, out) == out.size();
  }

 private:
  const Tracee& tracee_;
};

// What stands at an address of the code, read once until the maps change.
class CodeCache {
 public:
  explicit CodeCache(const Tracee& tracee) : tracee_(tracee) {}
  Instruction at(uint64_t pc);
  void clear();

 private:
  static constexpr uint64_t kPage_bytes = 4096;
  using Page = std::array<Instruction, kPage_bytes>;

  const Tracee& tracee_;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  uint64_t last_number_ = UINT64_MAX;
  Page* last_ = nullptr;
};

}  // namespace sentry_prof::judge
