// Every instruction of some libraries is decoded as objdump reads it: its size and its effect. A
// program of its own, so that a run without objdump is reported as skipped.
#include "disassembly.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace sentry_prof::testing {
namespace {

constexpr int kSkipped = 77;  // Meson's
constexpr uint64_t kFewInstructions = 100'000;
constexpr uint64_t kShownDifferences = 20;

struct Library {
  std::string_view name;
  // libcrypto's assembly keeps its tables between its functions, and objdump reads them as code.
  // Nothing tells them from it, so they are compared, too. With binutils 2.40 all are read alike,
  // but newer ones know APX, which such bytes look like now and then and the decoder knows nothing
  // of; and a few instructions of the kernel write to registers without its telling so.
  bool has_data_in_code = false;
};

constexpr Library kLibraries[] = {
    {"libc.so.6"}, {"libcrypto.so.3", true}, {"libstdc++.so.6"}, {"libgmp.so.10"}};
constexpr std::string_view kFolders[] = {"/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"};
// Of another C library and of another compiler's options.
constexpr std::string_view kFiles[] = {"/usr/lib/x86_64-linux-musl/libc.so", "/usr/bin/python3"};

struct Comparison {
  uint64_t instructions = 0;
  uint64_t with_effect = 0;
  uint64_t unknown = 0;  // to the decoder
  uint64_t wrong = 0;    // another size or effect
};

std::string described(const std::optional<unwind::X86Instruction>& instruction) {
  if (!instruction) return "nothing";
  return std::to_string(instruction->size_bytes) + " bytes, effect " +
         std::to_string(static_cast<int>(instruction->effect)) + " of " +
         std::to_string(instruction->operand) + ", registers " +
         std::to_string(instruction->writes) + " from " + std::to_string(instruction->source);
}

void print_difference(const DisassembledInstruction& instruction) {
  std::printf("  %llx:", static_cast<unsigned long long>(instruction.address));
  for (const std::byte byte : instruction.bytes) {
    std::printf(" %02x", std::to_integer<unsigned>(byte));
  }
  std::printf(" %s: %s, not %s\n", instruction.text.c_str(),
              described(unwind::decode_x86(instruction.bytes)).c_str(),
              described(instruction_as_disassembled(instruction)).c_str());
}

void compare(const DisassembledInstruction& instruction, Comparison& result) {
  const unwind::X86Instruction expected = instruction_as_disassembled(instruction);
  ++result.instructions;
  if (expected.effect != unwind::X86Effect::None) ++result.with_effect;
  const auto decoded = unwind::decode_x86(instruction.bytes);
  if (decoded == expected) return;
  ++(decoded ? result.wrong : result.unknown);
  if (result.unknown + result.wrong <= kShownDifferences) print_difference(instruction);
}

// False if there are more differences than there may be.
bool compare_file(const std::string& file, bool has_data_in_code, Comparison& total) {
  Comparison result;
  const bool is_read = disassemble(
      file, [&](const DisassembledInstruction& instruction) { compare(instruction, result); });
  std::printf("%s: %llu instructions, %llu with an effect, %llu unknown, %llu wrong\n",
              file.c_str(), static_cast<unsigned long long>(result.instructions),
              static_cast<unsigned long long>(result.with_effect),
              static_cast<unsigned long long>(result.unknown),
              static_cast<unsigned long long>(result.wrong));
  total.instructions += result.instructions;
  total.with_effect += result.with_effect;
  if (!has_data_in_code) return is_read && result.unknown == 0 && result.wrong == 0;
  return is_read && result.unknown <= result.instructions / 1'000 &&
         result.wrong <= result.instructions / 100'000;
}

std::string path_of(std::string_view name) {
  for (const std::string_view folder : kFolders) {
    const auto path = std::filesystem::path(folder) / name;
    if (std::filesystem::exists(path)) return path.string();
  }
  return {};
}

int run() {
  Comparison total;
  bool is_right = true;
  for (const Library& library : kLibraries) {
    const std::string path = path_of(library.name);
    if (!path.empty()) is_right &= compare_file(path, library.has_data_in_code, total);
  }
  for (const std::string_view file : kFiles) {
    if (std::filesystem::exists(file)) is_right &= compare_file(std::string(file), false, total);
  }
  const bool is_enough =
      total.instructions >= kFewInstructions && total.with_effect > total.instructions / 20;
  if (!is_enough) std::puts("too few instructions were compared");
  return is_right && is_enough ? 0 : 1;
}

}  // namespace
}  // namespace sentry_prof::testing

int main() {
  using namespace sentry_prof::testing;
  if (std::system("command -v objdump >/dev/null") != 0) {
    std::puts("SKIPPED: objdump (binutils) is not installed");
    return kSkipped;
  }
  return run();
}
