// What a process does that opens the target's files for us (the Linux half).
#pragma once

#include "base/byte_reader.h"
#include "os/fd.h"
#include "os/helper_processes.h"
#include "target/file_requests.h"
#include "target/image_opener.h"
#include "target/jit_map.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace sentry_prof::target {

// Whether reading the file waits for nobody but this machine: it lies on a file system of the
// kernel's own. False for those that a server is asked for (FUSE, NFS), and where that is not
// known. Asks the file system itself, and so may wait for ever.
bool is_read_without_asking(int fd);

// Opens files as make_proc_opener() and JitMapFinder do. Passes on those that are read without
// asking, and reads the others itself, and what is read in a process's memory.
class FileServer {
 public:
  using MayPass = bool (*)(int fd);
  explicit FileServer(MayPass may_pass = is_read_without_asking);

  // Of a FileRequest: a FileReply.
  os::HelperProcesses::Answer answer(Bytes question);

 private:
  using Source = std::shared_ptr<const ByteSource>;

  FileReply reply_to(const FileRequest& request, os::Fd& passed);
  FileReply opened(uint64_t number, Result<Source> source, os::Fd& passed);
  FileReply read(const FileRequest& request) const;
  FileReply size_of(uint64_t number) const;
  const ByteSource* find(uint64_t number) const;  // null: not open

  MayPass may_pass_;
  std::unique_ptr<ImageOpener> opener_;
  JitMapFinder jit_maps_;
  std::unordered_map<uint64_t, Source> sources_;  // by the asker's numbers
};

}  // namespace sentry_prof::target
