// Copies the sections with call frame information out of a file, or leaves them there.
#include "base/checked.h"
#include "elf/cfi_search_table.h"
#include "elf/cfi_table.h"
#include "elf/frame_section.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::elf {

namespace {

// Five times the .eh_frame of a browser or of LLVM.
constexpr uint64_t kMaxSection_bytes = uint64_t{64} << 20;

// What the file holds of the segment at and behind `address`.
std::optional<Section> rest_of_segment(const Layout& layout, uint64_t address) {
  const Segment* segment = layout.segment_with({address}, 1, Layout::Which::Any);
  if (segment == nullptr) return std::nullopt;
  const uint64_t offset = segment->offset_of({address});
  return Section{.address = {address},
                 .file_offset = offset,
                 .size_bytes = segment->file_offset + segment->file_bytes - offset};
}

class SectionReader {
 public:
  // `shared` is the file where sections may be left in it, else null.
  SectionReader(const ByteSource& file, std::shared_ptr<const ByteSource> shared,
                const Layout& layout, uint64_t max_bytes)
      : file_(file), shared_(std::move(shared)), layout_(layout), bytes_left_(max_bytes) {
    result_.is_64_bit = layout.is_64_bit;
    result_.order = layout.order;
    result_.entry = layout.entry;
    if (layout.text) result_.text = layout.text->address;
  }

  Result<CfiSections> run_for_debug_frame(const Expansion& expansion) {
    result_.entry = {};
    auto copied = put(result_.debug_frame, layout_.debug_frame || !layout_.packed_debug_frame
                                               ? copy_if_there(layout_.debug_frame, ".debug_frame")
                                               : unpack(*layout_.packed_debug_frame, expansion));
    if (!copied) return tl::unexpected(std::move(copied.error()));
    return std::move(result_);
  }

  Result<CfiSections> run() {
    auto table = put(result_.eh_frame_hdr, copy_if_there(layout_.eh_frame_hdr, ".eh_frame_hdr"));
    auto frames = put(result_.eh_frame,
                      layout_.eh_frame ? leave_or_copy(*layout_.eh_frame) : find_eh_frame());
    if (!frames) return tl::unexpected(std::move(frames.error()));
    auto debug = put(result_.debug_frame, copy_if_there(layout_.debug_frame, ".debug_frame"));
    const Result<void>& failed = table ? debug : table;
    if (failed) return std::move(result_);
    if (result_.eh_frame.empty()) return tl::unexpected(failed.error());
    result_.problem = failed.error().message;
    return std::move(result_);
  }

 private:
  Result<void> put(CfiSection& place, Result<CfiSection> section) {
    if (!section) return tl::unexpected(std::move(section.error()));
    bytes_left_ -= section->bytes_in_memory().size();
    place = std::move(*section);
    return {};
  }

  uint64_t size_limit() const { return std::min(kMaxSection_bytes, bytes_left_); }

  Result<void> check(const Section& section, const char* name) const {
    if (section.size_bytes > size_limit()) {
      return fail(ErrorCode::LimitExceeded,
                  fmt::format("{} is larger than {} bytes, which are all that is left for it", name,
                              size_limit()));
    }
    if (!range_fits(section.file_offset, section.size_bytes, file_.size_bytes())) {
      return fail(ErrorCode::Malformed, std::string(name) + " reaches past the end of the file");
    }
    return {};
  }

  Result<CfiSection> leave_or_copy(const Section& section) const {
    constexpr const char* kName = ".eh_frame";
    const bool may_be_left =
        shared_ != nullptr && check(section, kName) &&
        shared_->will_be_read_in_pieces(section.file_offset, section.size_bytes);
    if (!may_be_left) return copy(section, kName);
    CfiSection result;
    result.address = section.address;
    result.in_file =
        std::make_shared<SectionInFile>(shared_, section.file_offset, section.size_bytes);
    return result;
  }

  Result<CfiSection> copy(const Section& section, const char* name) const {
    if (auto ok = check(section, name); !ok) return tl::unexpected(std::move(ok.error()));
    CfiSection result;
    result.address = section.address;
    result.bytes.resize(static_cast<size_t>(section.size_bytes));
    if (!file_.read_at(section.file_offset, result.bytes)) {
      return fail(ErrorCode::Io, std::string(name) + " cannot be read from the file");
    }
    return result;
  }

  Result<CfiSection> copy_if_there(const std::optional<Section>& section, const char* name) const {
    return section ? copy(*section, name) : CfiSection{};
  }

  Result<CfiSection> unpack(const PackedSection& packed, const Expansion& expansion) const {
    auto bytes = unpack_section(file_, layout_, packed, expansion);
    if (!bytes) return tl::unexpected(std::move(bytes.error()));
    return CfiSection{packed.section.address, std::move(*bytes), nullptr};
  }

  // For files without section headers: .eh_frame_hdr says where .eh_frame begins, and nothing says
  // where it ends. Of 2,000 real files a tenth of what follows in its segment is something else.
  Result<CfiSection> find_eh_frame() const {
    const auto address = eh_frame_address(frame_section(result_, result_.eh_frame_hdr));
    std::optional<Section> rest = address ? rest_of_segment(layout_, *address) : std::nullopt;
    if (!rest) return CfiSection{};
    rest->size_bytes = std::min(rest->size_bytes, size_limit());
    Result<CfiSection> section = leave_or_copy(*rest);
    if (section) section->end_is_known = false;
    return section;
  }

  const ByteSource& file_;
  std::shared_ptr<const ByteSource> shared_;
  const Layout& layout_;
  uint64_t bytes_left_;
  CfiSections result_;
};

}  // namespace

Result<CfiSections> read_cfi_sections(const ByteSource& file, const Layout& layout,
                                      uint64_t max_bytes) {
  return SectionReader(file, nullptr, layout, max_bytes).run();
}

Result<CfiSections> open_cfi_sections(const std::shared_ptr<const ByteSource>& file,
                                      const Layout& layout, uint64_t max_bytes) {
  return SectionReader(*file, file, layout, max_bytes).run();
}

Result<CfiSections> read_debug_frame(const ByteSource& file, const Layout& layout,
                                     const Expansion& expansion) {
  return SectionReader(file, nullptr, layout, expansion.max_bytes).run_for_debug_frame(expansion);
}

}  // namespace sentry_prof::elf
