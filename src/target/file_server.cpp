#include "target/file_server.h"

#include "os/file.h"
#include "os/paths.h"
#include "target/proc.h"
#include "target/recent_pieces.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace sentry_prof::target {

namespace {

// Not in <linux/magic.h> everywhere: fs/bcachefs, fs/exfat, fs/jfs of the Linux sources; OpenZFS.
constexpr uint32_t kBcachefsMagic = 0xca451a4e;
constexpr uint32_t kExfatMagic = 0x2011bab0;
constexpr uint32_t kJfsMagic = 0x3153464a;
constexpr uint32_t kZfsMagic = 0x2fc12fc1;

// Overlays are not: what lies below one may be any other (images of containers that are fetched
// while they run). Block devices of a network's (nbd, iSCSI) are told by nothing here.
constexpr std::array<uint32_t, 17> kOwnFileSystems = {BTRFS_SUPER_MAGIC,
                                                      EROFS_SUPER_MAGIC_V1,
                                                      EXT4_SUPER_MAGIC,
                                                      F2FS_SUPER_MAGIC,
                                                      HUGETLBFS_MAGIC,
                                                      ISOFS_SUPER_MAGIC,
                                                      MSDOS_SUPER_MAGIC,
                                                      RAMFS_MAGIC,
                                                      REISERFS_SUPER_MAGIC,
                                                      SQUASHFS_MAGIC,
                                                      TMPFS_MAGIC,
                                                      UDF_SUPER_MAGIC,
                                                      XFS_SUPER_MAGIC,
                                                      kBcachefsMagic,
                                                      kExfatMagic,
                                                      kJfsMagic,
                                                      kZfsMagic};

Result<std::shared_ptr<const ByteSource>> as_bytes(Result<os::Fd> opened) {
  if (!opened) return tl::unexpected(std::move(opened.error()));
  auto file = os::FileByteSource::adopt(std::move(*opened));
  if (!file) return tl::unexpected(std::move(file.error()));
  return std::shared_ptr<const ByteSource>(std::move(*file));
}

// Null of what is no file: the vdso, what is read in a process's memory.
const os::FileByteSource* as_file(const ByteSource& bytes) {
  return dynamic_cast<const os::FileByteSource*>(&bytes);
}

FileReply refused(Error error) {
  FileReply reply;
  reply.error = std::move(error);
  return reply;
}

FileReply yes_or_no(bool is_yes) {
  FileReply reply;
  reply.is_yes = is_yes;
  return reply;
}

}  // namespace

bool is_read_without_asking(int fd) {
  struct statfs facts = {};
  if (::fstatfs(fd, &facts) != 0) return false;
  return std::ranges::find(kOwnFileSystems, static_cast<uint32_t>(facts.f_type)) !=
         kOwnFileSystems.end();
}

FileServer::FileServer(MayPass may_pass) : may_pass_(may_pass), opener_(make_proc_opener()) {}

os::HelperProcesses::Answer FileServer::answer(Bytes question) {
  os::HelperProcesses::Answer answer;
  const auto request = from_message<FileRequest>(question);
  answer.bytes = to_message(request ? reply_to(*request, answer.fd)
                                    : refused({ErrorCode::Malformed, "not a request for a file"}));
  return answer;
}

FileReply FileServer::reply_to(const FileRequest& request, os::Fd& passed) {
  switch (request.kind) {
    case FileRequestKind::Open:
      return opened(request.file, opener_->open(request.mapping), passed);
    case FileRequestKind::OpenByPath:
      return opened(request.file, opener_->open_by_path(request.mapping), passed);
    case FileRequestKind::OpenMapped:
      return opened(request.file, opener_->open_mapped(request.mapping), passed);
    case FileRequestKind::NameIsLiteral:
      return yes_or_no(opener_->name_is_literal(request.mapping));
    case FileRequestKind::OpenJitMap:
      return opened(request.file,
                    as_bytes(jit_maps_.open(request.mapping.pid, request.program_begin_ns)),
                    passed);
    case FileRequestKind::IsSameFile:
      return yes_or_no(os::is_same_file(request.mapping.path, request.other_path));
    case FileRequestKind::Size:
      return size_of(request.file);
    case FileRequestKind::Read:
      return read(request);
    case FileRequestKind::Close:
      for (const uint64_t number : request.closed_files) sources_.erase(number);
      return yes_or_no(true);
  }
  return refused({ErrorCode::Malformed, "not a request for a file"});
}

FileReply FileServer::opened(uint64_t number, Result<Source> source, os::Fd& passed) {
  if (!source) return refused(std::move(source.error()));
  const os::FileByteSource* const file = as_file(**source);
  FileReply reply = yes_or_no(true);
  reply.size_bytes = (*source)->size_bytes();
  reply.is_passed = file != nullptr && may_pass_(file->fd());
  if (reply.is_passed) {
    passed = os::Fd(::fcntl(file->fd(), F_DUPFD_CLOEXEC, 0));
  } else {
    reply.bytes.resize(std::min<uint64_t>(reply.size_bytes, RecentPieces::kPiece_bytes));
    if (!(*source)->read_at(0, reply.bytes)) reply.bytes.clear();
    sources_.insert_or_assign(number, std::move(*source));
  }
  return reply;
}

FileReply FileServer::read(const FileRequest& request) const {
  FileReply reply;
  const ByteSource* const source = find(request.file);
  if (source == nullptr) return reply;
  reply.bytes.resize(std::min<uint64_t>(request.size_bytes, kMaxFilePiece_bytes));
  reply.is_yes = source->read_at(request.offset, reply.bytes);
  if (reply.is_yes) return reply;
  reply.bytes.clear();
  if (source->was_changed()) reply.error.code = ErrorCode::Gone;
  return reply;
}

// As it is now: JIT maps grow.
FileReply FileServer::size_of(uint64_t number) const {
  const ByteSource* const source = find(number);
  const os::FileByteSource* const file = source == nullptr ? nullptr : as_file(*source);
  struct stat status = {};
  FileReply reply = yes_or_no(file != nullptr && ::fstat(file->fd(), &status) == 0);
  reply.size_bytes = static_cast<uint64_t>(std::max<off_t>(status.st_size, 0));
  return reply;
}

const ByteSource* FileServer::find(uint64_t number) const {
  const auto found = sources_.find(number);
  return found == sources_.end() ? nullptr : found->second.get();
}

}  // namespace sentry_prof::target
