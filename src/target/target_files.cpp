#include "target/target_files.h"

#include "os/file.h"
#include "os/paths.h"
#include "target/image_files.h"
#include "target/mapping_kind.h"
#include "target/recent_pieces.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace sentry_prof::target {

namespace {

using Helpers = std::shared_ptr<FileHelpers>;
using Pieces = std::shared_ptr<RecentPieces>;

tl::unexpected<Error> no_answer() {
  return fail(ErrorCode::Io,
              "its file system does not answer (FUSE, NFS), or the machine is overloaded");
}

// One that a helper has open for us.
class FileOfHelper {
 public:
  FileOfHelper(Helpers helpers, FileHelpers::Place place)
      : helpers_(std::move(helpers)), place_(place) {}
  FileOfHelper(const FileOfHelper&) = delete;
  FileOfHelper& operator=(const FileOfHelper&) = delete;
  ~FileOfHelper() { helpers_->close(place_); }

  std::optional<FileReply> ask(FileRequestKind kind, uint64_t offset, size_t size_bytes) const {
    FileRequest request;
    request.kind = kind;
    request.offset = offset;
    request.size_bytes = static_cast<uint32_t>(std::min(size_bytes, kMaxFilePiece_bytes));
    return helpers_->ask(place_, std::move(request));
  }

 private:
  Helpers helpers_;
  FileHelpers::Place place_;
};

// Small reads take, and keep, whole pieces: on a busy machine it is the request that takes long.
class BytesOfHelper final : public ByteSource {
 public:
  // `begin`: the bytes that came with the answer to its opening, or none.
  BytesOfHelper(std::shared_ptr<const FileOfHelper> file, uint64_t size_bytes, Pieces pieces,
                std::vector<std::byte> begin)
      : file_(std::move(file)),
        size_bytes_(size_bytes),
        pieces_(std::move(pieces)),
        number_(pieces_->add_file()) {
    if (!begin.empty()) pieces_->keep({number_, 0}, std::move(begin));
  }

  uint64_t size_bytes() const override { return size_bytes_; }

  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size_bytes_ || out.size() > size_bytes_ - offset) return false;
    const bool is_small = out.size() < RecentPieces::kPiece_bytes;
    const size_t most_bytes = is_small ? RecentPieces::kPiece_bytes : kMaxFilePiece_bytes;
    while (!out.empty()) {
      const auto part = out.first(std::min<size_t>(most_bytes - offset % most_bytes, out.size()));
      if (is_small ? !read_of_piece(offset, part) : !read(offset, part)) return false;
      out = out.subspan(part.size());
      offset += part.size();
    }
    return true;
  }
  bool was_silent() const override { return was_silent_; }
  bool is_unchanged() const override {
    if (size_bytes_ > 0) ask_for(0, 1);
    return !was_changed_;
  }
  bool was_changed() const override { return was_changed_; }

 private:
  // `out` lies in one piece.
  bool read_of_piece(uint64_t offset, std::span<std::byte> out) const {
    const RecentPieces::Place place{number_, offset / RecentPieces::kPiece_bytes};
    const uint64_t begin = place.index * RecentPieces::kPiece_bytes;
    if (pieces_->copy(place, offset - begin, out)) return true;
    const uint64_t piece_bytes =
        std::min<uint64_t>(RecentPieces::kPiece_bytes, size_bytes_ - begin);
    auto bytes = ask_for(begin, piece_bytes);
    if (bytes.empty()) return false;
    std::ranges::copy(std::span(bytes).subspan(offset - begin, out.size()), out.begin());
    pieces_->keep(place, std::move(bytes));
    return true;
  }

  bool read(uint64_t offset, std::span<std::byte> out) const {
    const auto bytes = ask_for(offset, out.size());
    std::ranges::copy(bytes, out.begin());
    return !bytes.empty();
  }

  // Up to a piece; nothing if it could not be read.
  std::vector<std::byte> ask_for(uint64_t offset, size_t size_bytes) const {
    auto reply = file_->ask(FileRequestKind::Read, offset, size_bytes);
    if (!reply) {
      was_silent_ = true;
      return {};
    }
    if (!reply->is_yes && reply->error.code == ErrorCode::Gone) was_changed_ = true;
    const bool is_whole = reply->is_yes && reply->bytes.size() == size_bytes;
    return is_whole ? std::move(reply->bytes) : std::vector<std::byte>();
  }

  std::shared_ptr<const FileOfHelper> file_;
  uint64_t size_bytes_;
  Pieces pieces_;
  uint64_t number_;
  mutable std::atomic<bool> was_silent_ = false;
  mutable std::atomic<bool> was_changed_ = false;
};

// One of both.
struct OpenedFile {
  os::Fd passed;
  std::shared_ptr<const FileOfHelper> of_helper;
  uint64_t size_bytes = 0;
  std::vector<std::byte> begin;  // of the helper's file, as far as it came along
};

// Nothing if nobody answered.
std::optional<bool> is_yes(const Helpers& helpers, FileRequest request) {
  const auto replied = helpers->ask_any(std::move(request));
  return replied ? std::optional(replied->reply.is_yes) : std::nullopt;
}

Result<OpenedFile> open_file(const Helpers& helpers, FileRequest request) {
  auto replied = helpers->ask_any(std::move(request));
  if (!replied) return no_answer();
  FileReply& reply = replied->reply;
  if (!reply.is_yes) return tl::unexpected(std::move(reply.error));
  OpenedFile opened{.passed = std::move(replied->passed), .size_bytes = reply.size_bytes};
  if (!reply.is_passed) {
    opened.of_helper = std::make_shared<FileOfHelper>(helpers, replied->place);
    opened.begin = std::move(reply.bytes);
  } else if (!opened.passed.is_open() || leaves_too_few_descriptors(opened.passed.get())) {
    return too_many_files();
  }
  return opened;
}

Result<std::shared_ptr<const ByteSource>> open_bytes(const Helpers& helpers, Pieces pieces,
                                                     FileRequest request) {
  auto file = open_file(helpers, std::move(request));
  if (!file) return tl::unexpected(std::move(file.error()));
  if (file->of_helper) {
    return std::make_shared<BytesOfHelper>(std::move(file->of_helper), file->size_bytes,
                                           std::move(pieces), std::move(file->begin));
  }
  auto bytes =
      os::FileByteSource::adopt(std::move(file->passed), os::FileByteSource::Changes::Refused);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  return std::shared_ptr<const ByteSource>(std::move(*bytes));
}

class HelpedOpener final : public ImageOpener {
 public:
  HelpedOpener(Helpers helpers, Pieces pieces)
      : helpers_(std::move(helpers)), pieces_(std::move(pieces)) {}

  Result<std::shared_ptr<const ByteSource>> open(const MappingFacts& mapping) override {
    // This process's own is everybody's, and no file.
    const bool is_vdso = kind_of_mapping(mapping.path) == MappingKind::Vdso;
    return is_vdso ? copy_own_vdso(mapping.size_bytes)
                   : open_bytes(helpers_, pieces_, {FileRequestKind::Open, mapping});
  }
  Result<std::shared_ptr<const ByteSource>> open_by_path(const MappingFacts& mapping) override {
    return open_bytes(helpers_, pieces_, {FileRequestKind::OpenByPath, mapping});
  }
  Result<std::shared_ptr<const ByteSource>> open_mapped(const MappingFacts& mapping) override {
    return open_bytes(helpers_, pieces_, {FileRequestKind::OpenMapped, mapping});
  }
  bool name_is_literal(const MappingFacts& mapping) override {
    return is_yes(helpers_, {FileRequestKind::NameIsLiteral, mapping}).value_or(false);
  }

 private:
  Helpers helpers_;
  Pieces pieces_;
};

}  // namespace

Result<std::shared_ptr<TargetFiles>> TargetFiles::start(FileServer::MayPass may_pass) {
  const auto server = std::make_shared<FileServer>(may_pass);
  auto helpers = FileHelpers::start([server](Bytes question) { return server->answer(question); });
  if (!helpers) return tl::unexpected(std::move(helpers.error()));
  return std::shared_ptr<TargetFiles>(new TargetFiles(std::move(*helpers)));
}

std::unique_ptr<ImageOpener> TargetFiles::make_opener() {
  return std::make_unique<HelpedOpener>(helpers_, pieces_);
}

Result<JitMap> TargetFiles::find_jit_map(uint32_t pid, uint64_t program_begin_ns) {
  FileRequest request{.kind = FileRequestKind::OpenJitMap, .mapping = {.pid = pid}};
  request.program_begin_ns = program_begin_ns;
  auto file = open_file(helpers_, std::move(request));
  if (!file && file.error().code == ErrorCode::Io) {
    return fail(ErrorCode::Io, fmt::format("the /tmp/perf-PID.map of process {} is not used: {}",
                                           pid, file.error().message));
  }
  if (!file) return tl::unexpected(std::move(file.error()));
  if (!file->of_helper) return jit_map_of(std::move(file->passed));
  return [of_helper = file->of_helper, pieces = pieces_]() -> std::shared_ptr<const ByteSource> {
    const auto reply = of_helper->ask(FileRequestKind::Size, 0, 0);
    const bool is_known = reply && reply->is_yes;
    if (!is_known) return nullptr;
    return std::make_shared<BytesOfHelper>(of_helper, reply->size_bytes, pieces,
                                           std::vector<std::byte>());
  };
}

// The helpers' working directory is that of the start.
std::optional<bool> TargetFiles::is_same_file(const std::string& path, const std::string& other) {
  FileRequest request{.kind = FileRequestKind::IsSameFile, .mapping = {.path = path}};
  request.other_path = other;
  return is_yes(helpers_, std::move(request));
}

}  // namespace sentry_prof::target
