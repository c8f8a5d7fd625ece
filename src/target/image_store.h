// All images of a session: one LoadedImage per file of a build id, shared by all processes.
#pragma once

#include "base/time_units.h"
#include "elf/identity.h"
#include "elf/layout.h"
#include "target/debug_cfi.h"
#include "target/debug_file.h"
#include "target/image_opener.h"
#include "target/loaded_image.h"
#include "target/mapping_facts.h"
#include "target/partly_copied.h"
#include "unwind/module_map.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace sentry_prof::target {

// Owned by the recording thread. LoadedImages live until they are forgotten; another thread may
// read those it was given for as long as it holds them.
class ImageStore {
 public:
  // Of images with and without a file. What comes after is mapped without an image.
  static constexpr size_t kMaxImages = 100'000;
  // Of images that no process maps: the programs that a build or a shell script runs over and over,
  // and their libraries. Each is an open file, and of some the debug file is open, too.
  static constexpr size_t kMaxUnmapped = 1'000;
  // Of their unwind tables, so that there is memory for those of images that are mapped.
  static constexpr uint64_t kMaxUnmappedCfi_bytes = uint64_t{64} << 20;
  // Of names and build ids for which there is no image, or another one of the same (what unpacks
  // its libraries anew into another directory each time it starts). To look for one again costs an
  // open.
  static constexpr size_t kMaxSpareKeys = 1'024;
  // Others than images are numbered from here on (recorder::AnonymousRegions). Of a new image each
  // second, those after 17 years have no room in the rule cache (unwind::RuleCache::key_of()).
  static constexpr unwind::ImageId kMaxIds = 0x8000'0000;
  static constexpr size_t kMaxProblems = 1'000;
  // Who did not answer, for which we waited for long, is left alone for a while: the same file is
  // mapped again and again (by the compilers of a build), and asked for twice when attaching.
  static constexpr uint64_t kLongWait_ns = kNsPerSecond / 10;
  static constexpr uint64_t kLeaveAlone_ns = kNsPerSecond / 2;
  // Of the paths of all of them, each of which is kept twice, thrice of one that could not be
  // opened. Paths are some 60 bytes long.
  static constexpr size_t kMaxPaths_bytes = size_t{16} << 20;

  // Without a clock debug files for which nobody answered are not asked for again.
  explicit ImageStore(ImageOpener& opener, elf::CfiBudget cfi_budget = {},
                      DebugFile::Clock now_ns = {})
      : opener_(opener),
        cfi_budget_(std::make_shared<elf::CfiBudget>(cfi_budget)),
        now_ns_(std::move(now_ns)) {}

  // The module of a new executable mapping: finds the image by build id and path, else by device,
  // inode and path, else opens it, or its process's memory of it, and takes it for a known one if
  // build id, segments and symbol tables are the same; again, as another image, if the file was
  // written to since (ByteSource's is_unchanged()). A mapping whose file cannot be read or is no
  // ELF gives a module without CFI and with image == kNoImage for anonymous memory, or an image
  // that is known by name only.
  unwind::Module module_for(const MappingFacts& mapping);

  // What memory without an image may be a copy of, if it lies beside or over a module of the
  // process: none unless all of it is where that module's image has an executable segment. Code
  // that was compiled beside a library never is. Without the rest of its last page, which the file
  // says nothing of.
  std::optional<unwind::Module> possible_code(RuntimeAddress begin, RuntimeAddress end,
                                              const unwind::Module& beside) const;
  // The same, where data of a file lies below it. Opens the file as module_for() does.
  std::optional<unwind::Module> possible_code(RuntimeAddress begin, RuntimeAddress end,
                                              const MappingFacts& data_below);

  std::shared_ptr<const LoadedImage> image(unwind::ImageId id) const;  // null if unknown

  // A chunk has ended: some of what damaged files have used up is there again (elf::CfiBudget).
  void refill_budget();
  // Closes images, so that a session of months holds no more than one of minutes: of those that are
  // not among `mapped` only the kMaxUnmapped are kept that were asked for last, and of these not
  // more than have kMaxUnmappedCfi_bytes; none if a file could not be opened since the last time
  // because too many were open. No module map may have one of the others. Gives their
  // ids, which no image will have again: a file that is mapped again later is another image.
  std::vector<unwind::ImageId> forget_unmapped(const std::unordered_set<unwind::ImageId>& mapped);

  // Whether nobody answered when its file was opened, or its CFI read (ErrorCode::Io,
  // ByteSource::was_silent()), or too many were open (LimitExceeded): module_for() its mapping
  // tries again, as another image.
  bool is_unanswered(unwind::ImageId id) const;
  size_t images_seen() const { return next_id_; }  // all that there ever were

  // Those whose debug sections or files gave a row that they themselves have not; of all that there
  // ever were.
  size_t images_with_debug_cfi() const;

  // Files that could not be opened or parsed, nor later for another process, and those without CFI
  // because it could not be read, with the reason, each once; for the summary. No more than
  // kMaxProblems.
  std::vector<std::string> problems() const;

 private:
  struct Problem {
    std::string text;
    uint64_t number = 0;  // they are told in the order in which they came up
  };
  // What is remembered for a build id and path, or for a device, inode and path.
  struct Known {
    unwind::ImageId image = unwind::kNoImage;
    uint8_t failed_attempts = 0;     // to open it; 0: settled
    uint64_t last_use = 0;           // its number among all look-ups
    size_t path_bytes = 0;           // what it has of kMaxPaths_bytes
    std::optional<Problem> problem;  // why it could not be opened
  };
  struct IdentifiedFile {
    std::shared_ptr<const ByteSource> bytes;
    elf::Layout layout;
    elf::Identity identity;
  };
  using KnownFiles = std::unordered_map<std::string, Known>;
  using ImageIds = std::unordered_set<unwind::ImageId>;
  using LastUses = std::unordered_map<unwind::ImageId, uint64_t>;

  // The build id, and where things are: strip and patchelf change the file and keep its build id.
  static std::string content_key(const elf::Identity& identity, const elf::Layout& layout);
  unwind::ImageId image_of_build_id(const std::vector<std::byte>& build_id) const;  // or kNoImage
  bool is_of_use(unwind::ImageId id) const;

  bool is_outdated(unwind::ImageId id, bool has_build_id) const;
  bool is_left_alone(unwind::ImageId id) const;
  Known look_up(const MappingFacts& mapping);
  Known try_to_open(const MappingFacts& mapping, Known previous);
  static Result<IdentifiedFile> identify(const MappingFacts& mapping,
                                         Result<std::shared_ptr<const ByteSource>> file);
  // With .dynsym, also where the loader has relocated what tells of it, and a copy of its names.
  Result<IdentifiedFile> identify_mapped(const MappingFacts& mapping);
  Known add_mapped(const MappingFacts& mapping, IdentifiedFile file);
  Known add_file(const MappingFacts& mapping, IdentifiedFile file);
  std::unique_ptr<DebugFile> debug_file_for(const MappingFacts& mapping,
                                            const elf::Identity& identity, unwind::ImageId id);
  Result<std::shared_ptr<const ByteSource>> find_debug_file(const MappingFacts& mapping);
  Known without_file(const MappingFacts& mapping, const Error& error, Known previous);
  unwind::ImageId add_known_by_name(const MappingFacts& mapping);
  std::vector<unwind::ImageId> longest_unused(const ImageIds& mapped, size_t max_unmapped) const;
  void forget_image(unwind::ImageId id);
  void forget_keys_of(KnownFiles& files, const ImageIds& gone);
  static void add_last_uses(const KnownFiles& files, LastUses& last_uses);
  void forget_spare_keys(KnownFiles& files);
  void forget_key(KnownFiles& files, KnownFiles::iterator key);
  std::string display_path(const MappingFacts& mapping);
  std::vector<std::string> problems_of(const LoadedImage& image) const;
  std::vector<Problem> problems_of_files() const;
  void note_problem(std::string text);
  void keep_problem(Problem problem);

  ImageOpener& opener_;
  std::shared_ptr<elf::CfiBudget> cfi_budget_;
  DebugFile::Clock now_ns_;
  std::shared_ptr<DebugFileRoom> debug_file_room_ = std::make_shared<DebugFileRoom>();
  size_t paths_bytes_ = 0;
  unwind::ImageId next_id_ = 0;
  uint64_t look_ups_ = 0;
  std::map<unwind::ImageId, std::shared_ptr<LoadedImage>> images_;
  size_t forgotten_with_debug_cfi_ = 0;
  KnownFiles by_build_id_and_path_;
  KnownFiles by_file_;
  std::map<std::string, unwind::ImageId> by_content_;  // those with a build id, by content_key()
  // Of an image's mappings: who mapped it first may have ended when its debug file is looked for.
  std::unordered_map<unwind::ImageId, uint32_t> newest_pid_;
  std::vector<Problem> problems_;  // that remain whatever is opened later
  uint64_t problems_seen_ = 0;
  bool is_short_of_files_ = false;
  // Of those known by name: when it was over that nobody answered; 0 if that took no time, or
  // without a clock.
  std::unordered_map<unwind::ImageId, uint64_t> unanswered_;
  uint64_t asked_at_ns_ = 0;                               // the last time
  std::unordered_set<unwind::ImageId> read_in_processes_;  // ImageOpener::open_mapped()
  std::shared_ptr<CopyBudget> copies_ = std::make_shared<CopyBudget>();  // of their names
};

}  // namespace sentry_prof::target
