// What a recording is called at Sentry, after the program that was recorded.
#pragma once

#include "base/address.h"
#include "sentry_prof/profile.h"
#include "target/image_store.h"
#include "target/process_table.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sentry_prof::recorder {

// Names the build by its main executable: release NAME@BUILDID, transaction NAME (printable UTF-8,
// at most 200 bytes), each unless the user gave one. The main executable is that of
// `main_executable` (a path); if that is empty, as of a command that has yet to exec, the first
// that is mapped. Recording thread only.
class SessionNamer {
 public:
  // What the program is called (executable_name()), by its path and the process's name. Nothing if
  // nobody answered, who may do so later.
  using NameExecutable =
      std::function<std::optional<std::string>(const std::string&, const std::string&)>;

  // An empty `name_executable`: by its path alone. The stores must outlive this object.
  SessionNamer(Session given, uint32_t main_pid, std::string main_executable,
               NameExecutable name_executable, target::ProcessTable& processes,
               const target::ImageStore& images);

  // Behind the process table's.
  void on_map(uint32_t pid, RuntimeAddress begin);
  void on_exec(uint32_t pid);
  // All chunks of a program have one release, whatever becomes of its file meanwhile: the first
  // answer stays until the main process runs another program (a container's entry point does).
  // Nor is it final before the program's executable, and what that is called, are known.
  const Session& session();
  // What it is called is forgotten before long, and what it started may be sampled later.
  void on_end(uint32_t pid);

 private:
  // After its end another process may have its pid.
  bool is_main(uint32_t pid) const { return pid == main_pid_ && !has_ended_; }
  std::optional<std::string> program_name(const target::LoadedImage* image) const;
  Session named(const target::LoadedImage* image, const std::string& name) const;
  unwind::ImageId main_image() const;

  Session given_;
  uint32_t main_pid_;
  std::string main_executable_;
  NameExecutable name_executable_;
  target::ProcessTable& processes_;
  const target::ImageStore& images_;
  unwind::ImageId first_image_ = unwind::kNoImage;  // of the main process, where no path is known
  std::optional<Session> session_;
  bool is_final_ = false;
  bool has_ended_ = false;  // the main process
};

}  // namespace sentry_prof::recorder
