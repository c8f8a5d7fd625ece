#include "recorder/session_namer.h"

#include "base/path.h"
#include "base/utf8.h"
#include "recorder/executable_name.h"

#include <utility>

namespace sentry_prof::recorder {
namespace {

// As much of a build id as people compare.
constexpr size_t kReleaseBuildIdDigits = 12;
// Of events' transactions Sentry keeps as much.
constexpr size_t kMaxTransactionName_bytes = 200;

// Files and processes may have any names.
std::string shown_name(const std::string& name) {
  if (name.empty()) return "unknown";
  return shortened_utf8(printable_utf8(name), kMaxTransactionName_bytes);
}

}  // namespace

SessionNamer::SessionNamer(Session given, uint32_t main_pid, std::string main_executable,
                           NameExecutable name_executable, target::ProcessTable& processes,
                           const target::ImageStore& images)
    : given_(std::move(given)),
      main_pid_(main_pid),
      main_executable_(std::move(main_executable)),
      name_executable_(std::move(name_executable)),
      processes_(processes),
      images_(images) {}

// After exec the kernel maps the main executable first, then its interpreter.
void SessionNamer::on_map(uint32_t pid, RuntimeAddress begin) {
  if (!is_main(pid) || first_image_ != unwind::kNoImage || !main_executable_.empty()) return;
  const unwind::Module* module = processes_.process(pid).modules.find(begin);
  if (module != nullptr) first_image_ = module->image;
}

void SessionNamer::on_exec(uint32_t pid) {
  if (!is_main(pid)) return;
  first_image_ = unwind::kNoImage;
  main_executable_.clear();
  is_final_ = false;
}

void SessionNamer::on_end(uint32_t pid) {
  if (!is_main(pid)) return;
  session();
  is_final_ = has_ended_ = true;
}

const Session& SessionNamer::session() {
  if (is_final_) return *session_;
  const unwind::ImageId id = main_image();
  const auto image = images_.image(id);
  const auto name = program_name(image.get());
  session_ = named(image.get(), name ? *name : std::string(base_name(image->path())));
  is_final_ = id != unwind::kNoImage && name;
  return *session_;
}

// Nothing if nobody answered. By the process alone if `image` is null.
std::optional<std::string> SessionNamer::program_name(const target::LoadedImage* image) const {
  const std::string& comm = processes_.process(main_pid_).name;
  if (image == nullptr) return comm;
  if (!name_executable_) return std::string(base_name(image->path()));
  return name_executable_(image->path(), comm);
}

Session SessionNamer::named(const target::LoadedImage* image, const std::string& name) const {
  Session session = given_;
  if (session.transaction_name.empty()) session.transaction_name = shown_name(name);
  if (session.release.empty()) {
    session.release = release_part(name.empty() ? session.transaction_name : name);
    if (image != nullptr && !image->identity().code_id.empty()) {
      session.release += '@';
      session.release += image->identity().code_id.substr(0, kReleaseBuildIdDigits);
    }
  }
  return session;
}

unwind::ImageId SessionNamer::main_image() const {
  if (main_executable_.empty()) return first_image_;
  unwind::ImageId found = unwind::kNoImage;
  for (const unwind::Module& module : processes_.process(main_pid_).modules.modules()) {
    const auto image = images_.image(module.image);
    if (image && image->path() == main_executable_) found = module.image;
  }
  return found;
}

}  // namespace sentry_prof::recorder
