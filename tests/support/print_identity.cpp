// print_identity PATH...: one line `path<TAB>code_id<TAB>debug_id<TAB>arch` for each ELF file; for
// others a message on stderr. For scripts/compare-debug-ids.
#include "base/hex.h"
#include "elf/identity.h"

#include <cstdio>
#include <fstream>
#include <string>

namespace {

using namespace sentry_prof;

class StreamByteSource final : public ByteSource {
 public:
  explicit StreamByteSource(const char* path) : stream_(path, std::ios::binary | std::ios::ate) {
    const auto end = stream_.tellg();
    if (end > 0) size_bytes_ = static_cast<uint64_t>(end);
  }
  uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_bytes_ || out.size() > size_bytes_ - offset) return false;
    stream_.seekg(static_cast<std::streamoff>(offset));
    stream_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    return stream_.good();
  }

 private:
  mutable std::ifstream stream_;
  uint64_t size_bytes_ = 0;
};

std::string hyphenated(const Uuid& id) {
  std::string text = to_hex(std::as_bytes(std::span(id.bytes)));
  for (size_t at : {20, 16, 12, 8}) text.insert(at, 1, '-');
  return text;
}

bool print_identity(const char* path) {
  const StreamByteSource file(path);
  const auto layout = elf::read_layout(file);
  if (!layout) {
    std::fprintf(stderr, "%s: %s\n", path, layout.error().message.c_str());
    return false;
  }
  const elf::Identity identity = elf::read_identity(file, *layout);
  const std::string arch(elf::architecture_name(*layout));
  std::printf("%s\t%s\t%s\t%s\n", path, identity.code_id.c_str(),
              hyphenated(identity.debug_id).c_str(), arch.c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool all_readable = true;
  for (int i = 1; i < argc; ++i) all_readable &= print_identity(argv[i]);
  return all_readable ? 0 : 1;
}
