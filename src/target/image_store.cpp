#include "target/image_store.h"

#include "base/hex.h"
#include "elf/dynamic_symbols.h"
#include "target/mapping_kind.h"

#include <algorithm>
#include <functional>

#include <fmt/core.h>

namespace sentry_prof::target {

namespace {

// A file that cannot be opened may be by the next process that maps it (its user may, its root
// directory has it). One that cannot this often will not be.
constexpr uint8_t kMaxOpenAttempts = 8;

std::string build_id_key(const MappingFacts& mapping) {
  return to_hex(mapping.build_id) + ':' + mapping.path;
}

// Without an inode nothing but the process tells two files of one path apart. The vdso is the
// kernel's, the same for all.
std::string file_key(const MappingFacts& mapping) {
  const bool is_vdso = kind_of_mapping(mapping.path) == MappingKind::Vdso;
  const uint32_t pid = mapping.inode == 0 && !is_vdso ? mapping.pid : 0;
  return fmt::format("{}:{}:{}:{}:{}", mapping.device_major, mapping.device_minor, mapping.inode,
                     pid, mapping.path);
}

std::string problem_of(const std::string& path, const std::string& reason) {
  return fmt::format("{}: {}", path, reason);
}

// No file of that name, none that may be opened, or another one: what is mapped may be read. Not
// where the file is none of ours (it is no ELF), is one too many, or nobody answers for it, who
// would not bring its pages either.
bool is_missing(ErrorCode code) {
  return code == ErrorCode::NotFound || code == ErrorCode::PermissionDenied ||
         code == ErrorCode::Gone;
}

// Who did not answer may do so at any time, and there is room for a file once others are closed.
bool is_worth_asking_again(ErrorCode code) {
  return code == ErrorCode::Io || code == ErrorCode::LimitExceeded;
}

RuntimeAddress end_of(const MappingFacts& mapping) {
  const uint64_t end = mapping.begin.value + mapping.size_bytes;
  return {end < mapping.begin.value ? UINT64_MAX : end};
}

// Where GDB's manual, "Debugging Information in Separate Files", and all distributions have it.
MappingFacts debug_file_of(const MappingFacts& image, const elf::Identity& identity) {
  MappingFacts facts;
  facts.pid = image.pid;
  facts.build_id = identity.build_id;
  facts.path = fmt::format("/usr/lib/debug/.build-id/{}/{}.debug", identity.code_id.substr(0, 2),
                           identity.code_id.substr(2));
  return facts;
}

// What the kernel alone tells. No debug id: by that Sentry would look for names, at link addresses
// which are file offsets here.
elf::Identity identity_of(const std::vector<std::byte>& build_id) {
  elf::Identity identity;
  identity.build_id = build_id;
  identity.code_id = to_hex(build_id);
  return identity;
}

// The kernel and perf cut build ids to BUILD_ID_SIZE_MAX (include/linux/buildid.h).
bool is_same_build_id(const std::vector<std::byte>& of_mapping,
                      const std::vector<std::byte>& of_file) {
  constexpr size_t kMaxOfKernel_bytes = 20;
  if (of_mapping == of_file) return true;
  return of_mapping.size() == kMaxOfKernel_bytes && of_file.size() > kMaxOfKernel_bytes &&
         std::equal(of_mapping.begin(), of_mapping.end(), of_file.begin());
}

}  // namespace

unwind::Module ImageStore::module_for(const MappingFacts& mapping) {
  unwind::Module module{mapping.begin, end_of(mapping), {}, unwind::kNoImage, nullptr};
  if (kind_of_mapping(mapping.path) == MappingKind::Anonymous) return module;
  const Known known = look_up(mapping);
  if (known.image == unwind::kNoImage) return module;

  const LoadedImage& image = *images_.at(known.image);
  if (image.is_known_by_name_only()) {
    module.image = known.image;
    module.bias = {mapping.begin.value - mapping.file_offset};
    return module;
  }
  const auto bias =
      elf::bias_of_mapping(image.layout(), mapping.begin, mapping.size_bytes, mapping.file_offset);
  if (!bias) {
    note_problem(
        problem_of(mapping.path, "mapped in a way that its program headers do not describe"));
    return module;
  }
  newest_pid_[known.image] = mapping.pid;
  module.image = known.image;
  module.bias = *bias;
  module.cfi = &image;
  module.code = &image;
  return module;
}

std::optional<unwind::Module> ImageStore::possible_code(RuntimeAddress begin, RuntimeAddress end,
                                                        const unwind::Module& beside) const {
  const auto found = images_.find(beside.image);
  if (found == images_.end() || begin >= end) return std::nullopt;
  const LoadedImage& image = *found->second;
  const elf::Segment* const segment =
      elf::segment_of_code(image.layout(), beside.bias, begin, end.value - begin.value);
  if (segment == nullptr) return std::nullopt;
  const RuntimeAddress first = to_runtime(segment->vaddr, beside.bias);
  const RuntimeAddress last{first.value + segment->file_bytes};
  return unwind::Module{
      std::max(begin, first), std::min(end, last), beside.bias, beside.image, &image, &image};
}

std::optional<unwind::Module> ImageStore::possible_code(RuntimeAddress begin, RuntimeAddress end,
                                                        const MappingFacts& data_below) {
  if (kind_of_mapping(data_below.path) != MappingKind::File) return std::nullopt;
  const auto found = images_.find(look_up(data_below).image);
  if (found == images_.end()) return std::nullopt;
  for (const LoadBias bias :
       elf::possible_biases(found->second->layout(), data_below.begin, data_below.file_offset)) {
    const unwind::Module beside{data_below.begin, begin, bias, found->first, nullptr};
    if (auto possible = possible_code(begin, end, beside)) return possible;
  }
  return std::nullopt;
}

bool ImageStore::is_unanswered(unwind::ImageId id) const {
  const auto found = images_.find(id);
  if (found == images_.end()) return false;
  return unanswered_.contains(id) || found->second->has_lost_cfi();
}

bool ImageStore::is_left_alone(unwind::ImageId id) const {
  const auto found = unanswered_.find(id);
  return found != unanswered_.end() && found->second != 0 &&
         now_ns_() - found->second < kLeaveAlone_ns;
}

// Its file was written to in place: what can still be known of it is read by now. Of what the
// kernel gives a build id the next mapping is of the same program, whatever the file was made into.
bool ImageStore::is_outdated(unwind::ImageId id, bool has_build_id) const {
  const auto found = images_.find(id);
  if (found == images_.end() || found->second->is_known_by_name_only()) return false;
  const ByteSource& file = found->second->file();
  return file.was_changed() || (!has_build_id && !file.is_unchanged());
}

ImageStore::Known ImageStore::look_up(const MappingFacts& mapping) {
  const bool has_build_id = !mapping.build_id.empty();
  KnownFiles& known_files = has_build_id ? by_build_id_and_path_ : by_file_;
  const std::string key = has_build_id ? build_id_key(mapping) : file_key(mapping);
  const auto found = known_files.find(key);
  const bool is_known = found != known_files.end();
  const bool is_outdated = is_known && this->is_outdated(found->second.image, has_build_id);
  const bool is_settled = is_known && !is_outdated && found->second.failed_attempts == 0 &&
                          !is_unanswered(found->second.image);
  if (is_settled || (is_known && is_left_alone(found->second.image))) {
    found->second.last_use = ++look_ups_;
    return found->second;
  }
  const bool have_room = images_.size() < kMaxImages && known_files.size() < kMaxImages &&
                         next_id_ < kMaxIds &&
                         mapping.path.size() <= kMaxPaths_bytes - paths_bytes_;
  if (!have_room) {
    note_problem(
        fmt::format("more than {} images, or {} MiB of their paths: further ones are left out",
                    kMaxImages, kMaxPaths_bytes >> 20));
    return is_known ? found->second : Known();
  }
  if (!is_known) paths_bytes_ += mapping.path.size();
  Known previous = is_known ? found->second : Known{.path_bytes = mapping.path.size()};
  if (is_outdated && !has_build_id) previous.image = unwind::kNoImage;
  Known result = try_to_open(mapping, previous);
  result.last_use = ++look_ups_;
  result.path_bytes = previous.path_bytes;
  known_files[key] = result;
  return result;
}

ImageStore::Known ImageStore::try_to_open(const MappingFacts& mapping, Known previous) {
  asked_at_ns_ = now_ns_ ? now_ns_() : 0;
  auto file = identify(mapping, opener_.open(mapping));
  // By the time that its record is read, another file may be mapped in the same place (dlclose,
  // then dlopen). The build id tells, and proves the one that is found by name.
  if (!file && file.error().code == ErrorCode::Gone) {
    file = identify(mapping, opener_.open_by_path(mapping));
  }
  if (file) return add_file(mapping, std::move(*file));
  // Most likely the same program under another name, until this one's file can be opened.
  const unwind::ImageId other = image_of_build_id(mapping.build_id);
  if (other != unwind::kNoImage) return {.image = other, .failed_attempts = 1};
  if (is_missing(file.error().code)) {
    auto mapped = identify_mapped(mapping);
    if (mapped) return add_mapped(mapping, std::move(*mapped));
    // The process may still have it: that by name there is none is not the last word.
    if (is_worth_asking_again(mapped.error().code)) file = std::move(mapped);
  }
  Known known = without_file(mapping, file.error(), previous);
  const bool is_no_elf_file =
      file.error().code == ErrorCode::Malformed || file.error().code == ErrorCode::Unsupported;
  if (is_no_elf_file) known.failed_attempts = 0;
  return known;
}

// Gone if the file is not the one that was mapped.
Result<ImageStore::IdentifiedFile> ImageStore::identify(
    const MappingFacts& mapping, Result<std::shared_ptr<const ByteSource>> file) {
  if (!file) return tl::unexpected(std::move(file.error()));
  auto layout = elf::read_layout(**file);
  elf::Identity identity = layout ? elf::read_identity(**file, *layout) : elf::Identity();
  if ((*file)->was_silent()) return fail(ErrorCode::Io, "its file system does not answer");
  // The kernel finds build ids in ELF files only.
  const bool is_other_file = layout ? !is_same_build_id(mapping.build_id, identity.build_id)
                                    : layout.error().code == ErrorCode::Malformed;
  if (!mapping.build_id.empty() && is_other_file) {
    return fail(ErrorCode::Gone, "the file was replaced since it was mapped");
  }
  if (!layout) return tl::unexpected(std::move(layout.error()));
  if (layout->segments.empty()) return fail(ErrorCode::Unsupported, "it has no loadable segments");
  return IdentifiedFile{std::move(*file), std::move(*layout), std::move(identity)};
}

Result<ImageStore::IdentifiedFile> ImageStore::identify_mapped(const MappingFacts& mapping) {
  auto file = identify(mapping, opener_.open_mapped(mapping));
  if (!file) return file;
  elf::Layout& layout = file->layout;
  if (!layout.dynsym && layout.dynamic) {
    const auto bias =
        elf::bias_of_mapping(layout, mapping.begin, mapping.size_bytes, mapping.file_offset);
    if (bias) {
      layout.dynsym = elf::find_dynamic_symbols(*file->bytes, layout, *layout.dynamic, *bias);
    }
  }
  if (!layout.dynsym) return file;
  // Names are looked up at the end of a chunk, when the process may be gone.
  auto copied = std::make_shared<PartlyCopied>(std::move(file->bytes), copies_);
  copied->copy(layout.dynsym->symbols.file_offset, layout.dynsym->symbols.size_bytes);
  copied->copy(layout.dynsym->strings.file_offset, layout.dynsym->strings.size_bytes);
  file->bytes = std::move(copied);
  return file;
}

ImageStore::Known ImageStore::add_mapped(const MappingFacts& mapping, IdentifiedFile file) {
  // A file that could be opened has the names of all its functions.
  const unwind::ImageId same = image_of_build_id(file.identity.build_id);
  if (same != unwind::kNoImage) return {.image = same};
  const Known known = add_file(mapping, std::move(file));
  read_in_processes_.insert(known.image);
  return known;
}

ImageStore::Known ImageStore::add_file(const MappingFacts& mapping, IdentifiedFile file) {
  const bool has_build_id = !file.identity.build_id.empty();
  const std::string content = has_build_id ? content_key(file.identity, file.layout) : "";
  if (has_build_id) {
    const auto same = by_content_.find(content);
    if (same != by_content_.end() && is_of_use(same->second)) return {.image = same->second};
  }
  const auto bias =
      elf::bias_of_mapping(file.layout, mapping.begin, mapping.size_bytes, mapping.file_offset);
  const RuntimeAddress first_seen =
      bias ? to_runtime(file.layout.first_vaddr(), *bias) : mapping.begin;
  const unwind::ImageId id = next_id_++;
  auto debug_file = debug_file_for(mapping, file.identity, id);
  images_.emplace(id,
                  std::make_shared<LoadedImage>(id, display_path(mapping), std::move(file.bytes),
                                                std::move(file.layout), std::move(file.identity),
                                                first_seen, cfi_budget_, std::move(debug_file)));
  if (has_build_id) by_content_[content] = id;
  return {.image = id};
}

// Null without a build id, by which it is found.
std::unique_ptr<DebugFile> ImageStore::debug_file_for(const MappingFacts& mapping,
                                                      const elf::Identity& identity,
                                                      unwind::ImageId id) {
  if (identity.build_id.size() <= 1 || kind_of_mapping(mapping.path) != MappingKind::File) {
    return nullptr;
  }
  DebugFile::Find find =
      [this, id, debug_file = debug_file_of(mapping, identity),
       asked_pid =
           std::optional<uint32_t>()]() mutable -> Result<std::shared_ptr<const ByteSource>> {
    const auto newest = newest_pid_.find(id);
    if (newest != newest_pid_.end()) debug_file.pid = newest->second;
    if (asked_pid == debug_file.pid) return fail(ErrorCode::Gone, "its process has ended");
    auto file = this->find_debug_file(debug_file);
    const bool is_answered = file || file.error().code != ErrorCode::Io;
    if (is_answered) asked_pid = debug_file.pid;
    return file;
  };
  return std::make_unique<DebugFile>(std::move(find), debug_file_room_, now_ns_);
}

std::string ImageStore::content_key(const elf::Identity& identity, const elf::Layout& layout) {
  std::string places;
  for (const elf::Segment& segment : layout.segments) {
    places += fmt::format(":{:x},{:x},{:x}", segment.vaddr.value, segment.file_offset,
                          segment.file_bytes);
  }
  const auto add_table = [&](const std::optional<elf::SymbolSection>& table) {
    if (!table) return;
    places += fmt::format("/{:x},{:x}", table->symbols.file_offset, table->symbols.size_bytes);
  };
  add_table(layout.symtab);
  add_table(layout.dynsym);
  return fmt::format("{}:{:x}", identity.code_id, std::hash<std::string>{}(places));
}

bool ImageStore::is_of_use(unwind::ImageId id) const {
  return !is_unanswered(id) && !is_outdated(id, true);
}

unwind::ImageId ImageStore::image_of_build_id(const std::vector<std::byte>& build_id) const {
  if (build_id.empty()) return unwind::kNoImage;
  const std::string prefix = to_hex(build_id) + ':';
  const auto found = by_content_.lower_bound(prefix);
  const bool is_there = found != by_content_.end() && found->first.starts_with(prefix);
  return is_there && is_of_use(found->second) ? found->second : unwind::kNoImage;
}

// Found as the image is, by name, in the target's own root directory: a container's debug files are
// in the container.
Result<std::shared_ptr<const ByteSource>> ImageStore::find_debug_file(const MappingFacts& mapping) {
  auto opened = opener_.open_by_path(mapping);
  if (!opened) return opened;
  auto file = identify(mapping, std::move(opened));
  if (file) return std::move(file->bytes);
  // That it is another build's has nothing to do with the process.
  if (file.error().code == ErrorCode::Gone) file.error().code = ErrorCode::Malformed;
  return tl::unexpected(std::move(file.error()));
}

ImageStore::Known ImageStore::without_file(const MappingFacts& mapping, const Error& error,
                                           Known previous) {
  // That a process has ended, or that it had another file, says nothing of the next one.
  const bool is_unanswered = is_worth_asking_again(error.code);
  is_short_of_files_ = is_short_of_files_ || error.code == ErrorCode::LimitExceeded;
  const bool is_of_this_process = error.code == ErrorCode::Gone;
  const auto attempts = is_unanswered || is_of_this_process
                            ? uint8_t{1}
                            : static_cast<uint8_t>(previous.failed_attempts + 1);
  Known known{.image = previous.image,
              .failed_attempts = attempts >= kMaxOpenAttempts ? uint8_t{0} : attempts};
  // JIT code in a memory file is no image.
  if (kind_of_mapping(mapping.path) != MappingKind::File) return known;
  known.problem = Problem{problem_of(mapping.path, error.message),
                          previous.problem ? previous.problem->number : ++problems_seen_};
  if (known.image == unwind::kNoImage) known.image = add_known_by_name(mapping);
  if (is_unanswered) {
    const uint64_t now_ns = now_ns_ ? now_ns_() : 0;
    unanswered_[known.image] = now_ns - asked_at_ns_ >= kLongWait_ns ? now_ns : 0;
  }
  return known;
}

unwind::ImageId ImageStore::add_known_by_name(const MappingFacts& mapping) {
  const unwind::ImageId id = next_id_++;
  images_.emplace(id, LoadedImage::known_by_name(id, display_path(mapping),
                                                 identity_of(mapping.build_id), mapping));
  return id;
}

std::string ImageStore::display_path(const MappingFacts& mapping) {
  const bool has_suffix = mapping.path.ends_with(kDeletedSuffix);
  if (!has_suffix || opener_.name_is_literal(mapping)) return mapping.path;
  return mapping.path.substr(0, mapping.path.size() - kDeletedSuffix.size());
}

void ImageStore::note_problem(std::string text) {
  keep_problem({std::move(text), ++problems_seen_});
}

void ImageStore::keep_problem(Problem problem) {
  const bool is_known =
      std::ranges::find(problems_, problem.text, &Problem::text) != problems_.end();
  if (!is_known && problems_.size() < kMaxProblems) problems_.push_back(std::move(problem));
}

std::vector<ImageStore::Problem> ImageStore::problems_of_files() const {
  std::vector<Problem> problems = problems_;
  for (const KnownFiles* files : {&by_build_id_and_path_, &by_file_}) {
    for (const auto& [key, known] : *files) {
      if (known.problem) problems.push_back(*known.problem);
    }
  }
  std::ranges::sort(problems, {}, &Problem::number);
  return problems;
}

std::vector<std::string> ImageStore::problems() const {
  std::vector<std::string> all;
  std::unordered_set<std::string> told;
  const auto tell = [&](std::string text) {
    if (all.size() < kMaxProblems && told.insert(text).second) all.push_back(std::move(text));
  };
  for (Problem& problem : problems_of_files()) tell(std::move(problem.text));
  for (const auto& [id, image] : images_) {
    for (std::string& text : problems_of(*image)) tell(std::move(text));
  }
  return all;
}

std::vector<std::string> ImageStore::problems_of(const LoadedImage& image) const {
  std::vector<std::string> problems;
  if (!image.cfi_error().empty()) {
    problems.push_back(fmt::format(
        "{}: {}: {}", image.path(),
        image.has_cfi() ? "part of the unwind information is left out" : "no unwind information",
        image.cfi_error()));
  }
  if (!image.is_known_by_name_only() && image.file().was_changed()) {
    problems.push_back(fmt::format(
        "{}: {}: function names and unwind information that had not been read before are missing",
        image.path(),
        read_in_processes_.contains(image.id())
            ? "could be read in its process only, which has it mapped no more"
            : "was overwritten while it was recorded"));
  }
  if (!image.debug_cfi().problem().empty()) {
    problems.push_back(fmt::format("{}: no unwind information of its debug data: {}", image.path(),
                                   image.debug_cfi().problem()));
  }
  return problems;
}

size_t ImageStore::images_with_debug_cfi() const {
  const auto open = std::ranges::count_if(
      images_, [](const auto& entry) { return entry.second->debug_cfi().was_of_use(); });
  return forgotten_with_debug_cfi_ + static_cast<size_t>(open);
}

std::shared_ptr<const LoadedImage> ImageStore::image(unwind::ImageId id) const {
  const auto found = images_.find(id);
  return found == images_.end() ? nullptr : found->second;
}

}  // namespace sentry_prof::target
