#include "elf_identity.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <unistd.h>

namespace sentry_prof::testing {

namespace {

using Bytes = std::vector<unsigned char>;

std::string hex(const Bytes& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// The first three fields of a UUID are numbers, and a little-endian file has them the other way
// round.
std::string debug_id_of(Bytes id) {
  id.resize(16);
  std::reverse(id.begin(), id.begin() + 4);
  std::reverse(id.begin() + 4, id.begin() + 6);
  std::reverse(id.begin() + 6, id.begin() + 8);
  std::string text = hex(id);
  for (const size_t position : {20u, 16u, 12u, 8u}) text.insert(position, 1, '-');
  return text;
}

std::optional<Bytes> build_id_of(Elf_Data* notes) {
  GElf_Nhdr header;
  size_t name = 0;
  size_t content = 0;
  size_t next = 0;
  for (size_t offset = 0; (next = gelf_getnote(notes, offset, &header, &name, &content)) > 0;
       offset = next) {
    if (header.n_type != NT_GNU_BUILD_ID) continue;
    const auto* bytes = static_cast<const unsigned char*>(notes->d_buf);
    return Bytes(bytes + content, bytes + content + header.n_descsz);
  }
  return std::nullopt;
}

Elf_Data* section_data(Elf* elf, const std::string& name) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return nullptr;
  Elf_Scn* section = nullptr;
  while ((section = elf_nextscn(elf, section)) != nullptr) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr) continue;
    const char* found = elf_strptr(elf, names, header.sh_name);
    if (found != nullptr && name == found) return elf_getdata(section, nullptr);
  }
  return nullptr;
}

Bytes folded_code(Elf* elf) {
  const Elf_Data* text = section_data(elf, ".text");
  if (text == nullptr || text->d_buf == nullptr) throw std::runtime_error("no .text");
  const auto* bytes = static_cast<const unsigned char*>(text->d_buf);
  Bytes folded(16, 0);
  for (size_t i = 0; i < std::min<size_t>(text->d_size, 4096); ++i) folded[i % 16] ^= bytes[i];
  return folded;
}

}  // namespace

ElfIdentity identity_by_the_documented_rule(const std::string& path) {
  elf_version(EV_CURRENT);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::unique_ptr<Elf, int (*)(Elf*)> elf(elf_begin(fd, ELF_C_READ, nullptr), elf_end);
  if (fd < 0 || elf == nullptr) throw std::runtime_error("cannot read " + path);
  std::optional<Bytes> build_id;
  if (Elf_Data* notes = section_data(elf.get(), ".note.gnu.build-id"))
    build_id = build_id_of(notes);
  ElfIdentity identity;
  if (build_id) identity.code_id = hex(*build_id);
  identity.debug_id = debug_id_of(build_id ? *build_id : folded_code(elf.get()));
  ::close(fd);
  return identity;
}

}  // namespace sentry_prof::testing
