// Times libunwind over the samples of a raw log: libunwind_bench LOG. Prints "name value" lines:
// first, cold, warm, samples and frames_a_sample as unwind_bench does, and
//   cold_unmasked, warm_unmasked   without the two system calls by which it takes the lock of its
//               cache for every frame: what a build with a cache of the thread's own might cost
//   at_root     walks that libunwind itself says have reached the end of the stack; not those into
//               the dynamic loader's _start, which has no unwind tables
//   same        walks that gave the very frames that ours give
// libunwind runs in process, by its remote interface, as perf script drives it. All that it may ask
// for lies in memory (registers and stack of the sample, the images' unwind sections), its caches
// hold every rule, and they are kept for as long as a process's maps do not change. .debug_frame is
// not offered to it.
#include "elf/cfi_table.h"
#include "raw_log_samples.h"
#include "recorder/register_mapping.h"
#include "timed_walks.h"
#include "unwind/walk.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>
#include <libunwind.h>

// Exported for those who bring their own find_proc_info, but in no header.
extern "C" int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t, unw_word_t, unw_dyn_info_t*,
                                                  unw_proc_info_t*, int, void*);

using namespace sentry_prof;
using namespace sentry_prof::bench;

namespace {

// The most that libunwind allows: its default of 128 misses one frame in five of a compilation.
constexpr size_t kCacheEntries = 1u << 15;

bool signals_are_left_alone = false;

// The unwind sections of an image, copied once.
class UnwindSections {
 public:
  explicit UnwindSections(const target::LoadedImage& image) {
    auto sections = elf::read_cfi_sections(image.file(), image.layout());
    if (sections) sections_ = std::move(*sections);
  }

  // What libunwind needs to know of .eh_frame_hdr; none without the one kind of search table that
  // it reads, which is what all linkers write.
  std::optional<unw_dyn_info_t> search_table(const unwind::Module& module) const {
    constexpr std::array<uint8_t, 4> kHead{1, 0x1b, 0x03, 0x3b};  // LSB 5.0 Core, section 10.6.2
    constexpr size_t kTableOffset = 12, kEntry_bytes = 8;
    const elf::CfiSection& header = sections_.eh_frame_hdr;
    if (header.bytes.size() < kTableOffset ||
        std::memcmp(header.bytes.data(), kHead.data(), kHead.size()) != 0) {
      return std::nullopt;
    }
    uint32_t entries = 0;
    std::memcpy(&entries, header.bytes.data() + 8, sizeof(entries));
    if (entries > (header.bytes.size() - kTableOffset) / kEntry_bytes) return std::nullopt;
    unw_dyn_info_t table{};
    table.start_ip = module.begin.value;
    table.end_ip = module.end.value;
    table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
    table.u.rti.segbase = to_runtime(header.address, module.bias).value;
    table.u.rti.table_data = table.u.rti.segbase + kTableOffset;
    table.u.rti.table_len = entries * kEntry_bytes / sizeof(unw_word_t);
    return table;
  }

  bool read_word(LinkAddress address, unw_word_t& word) const {
    return read_word(sections_.eh_frame, address, word) ||
           read_word(sections_.eh_frame_hdr, address, word);
  }

 private:
  // libunwind reads aligned words, whose outer bytes may lie outside of the section.
  static bool read_word(const elf::CfiSection& section, LinkAddress address, unw_word_t& word) {
    const uint64_t begin = std::max(address.value, section.address.value);
    const uint64_t end = std::min(address.value + sizeof(word),
                                  section.address.value + uint64_t{section.bytes.size()});
    if (begin >= end) return false;
    word = 0;
    std::memcpy(reinterpret_cast<std::byte*>(&word) + (begin - address.value),
                section.bytes.data() + (begin - section.address.value), end - begin);
    return true;
  }

  elf::CfiSections sections_;
};

class SectionStore {
 public:
  explicit SectionStore(const target::ImageStore& images) : images_(images) {}

  // Null where no file is mapped.
  const UnwindSections* of(unwind::ImageId id) {
    const auto known = sections_.find(id);
    if (known != sections_.end()) return known->second.get();
    const auto image = images_.image(id);
    auto sections = image == nullptr ? nullptr : std::make_unique<UnwindSections>(*image);
    return sections_.emplace(id, std::move(sections)).first->second.get();
  }

 private:
  const target::ImageStore& images_;
  std::unordered_map<unwind::ImageId, std::unique_ptr<UnwindSections>> sections_;
};

// What libunwind sees of a sample: the accessors' argument.
class SampleView {
 public:
  SampleView(const StoredSample& sample, SectionStore& store)
      : registers_(sample.registers),
        stack_(sample.stack_snapshot()),
        modules_(*sample.modules),
        store_(store) {}

  int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t* info,
                     int needs_unwind_info) {
    const unwind::Module* module = modules_.find({pc});
    sections_ = module == nullptr ? nullptr : store_.of(module->image);
    if (sections_ == nullptr) return -UNW_ENOINFO;
    bias_ = module->bias;
    auto table = sections_->search_table(*module);
    if (!table) return -UNW_ENOINFO;
    return UNW_OBJ(dwarf_search_unwind_table)(space, pc, &*table, info, needs_unwind_info, this);
  }

  int read_memory(unw_word_t address, unw_word_t& word) const {
    const bool is_read =
        stack_.read_u64({address}, word) ||
        (sections_ != nullptr && sections_->read_word(to_link({address}, bias_), word)) ||
        read_code(address, word);
    return is_read ? 0 : -UNW_EINVAL;
  }

  int read_register(unw_regnum_t number, unw_word_t& value) const {
    // libunwind's numbers are DWARF's.
    if (number < 0 || !registers_.is_known(static_cast<unsigned>(number))) return -UNW_EBADREG;
    value = registers_.get(static_cast<unsigned>(number));
    return 0;
  }

 private:
  bool read_code(unw_word_t address, unw_word_t& word) const {
    const unwind::Module* module = modules_.find({address});
    return module != nullptr && module->code != nullptr &&
           module->code->read_code(to_link({address}, module->bias),
                                   std::as_writable_bytes(std::span(&word, 1)));
  }

  const unwind::Registers& registers_;
  unwind::StackSnapshot stack_;
  const unwind::ModuleMap& modules_;
  SectionStore& store_;
  const UnwindSections* sections_ = nullptr;  // of the frame that is looked up
  LoadBias bias_;
};

int find_proc_info(unw_addr_space_t space, unw_word_t pc, unw_proc_info_t* info, int needs_info,
                   void* view) {
  return static_cast<SampleView*>(view)->find_proc_info(space, pc, info, needs_info);
}

void put_unwind_info(unw_addr_space_t, unw_proc_info_t*, void*) {}

int get_dyn_info_list_addr(unw_addr_space_t, unw_word_t*, void*) { return -UNW_ENOINFO; }

int access_mem(unw_addr_space_t, unw_word_t address, unw_word_t* word, int is_write, void* view) {
  if (is_write != 0) return -UNW_EINVAL;
  return static_cast<const SampleView*>(view)->read_memory(address, *word);
}

int access_reg(unw_addr_space_t, unw_regnum_t number, unw_word_t* value, int is_write, void* view) {
  if (is_write != 0) return -UNW_EREADONLYREG;
  return static_cast<const SampleView*>(view)->read_register(number, *value);
}

int access_fpreg(unw_addr_space_t, unw_regnum_t, unw_fpreg_t*, int, void*) { return -UNW_EINVAL; }

int resume(unw_addr_space_t, unw_cursor_t*, void*) { return -UNW_EINVAL; }

int get_proc_name(unw_addr_space_t, unw_word_t, char*, size_t, unw_word_t*, void*) {
  return -UNW_ENOINFO;
}

struct DestroySpace {
  void operator()(unw_addr_space_t space) const { unw_destroy_addr_space(space); }
};
using AddressSpace = std::unique_ptr<unw_addr_space, DestroySpace>;

AddressSpace make_address_space() {
  static unw_accessors_t accessors{find_proc_info, put_unwind_info, get_dyn_info_list_addr,
                                   access_mem,     access_reg,      access_fpreg,
                                   resume,         get_proc_name};
  AddressSpace space(unw_create_addr_space(&accessors, 0));
  if (space == nullptr || unw_set_caching_policy(space.get(), UNW_CACHE_GLOBAL) != 0) {
    throw std::runtime_error("libunwind gave no address space with a cache");
  }
  return space;
}

// libunwind 1.6.2 goes back to its default when a cache is used for the first time, and takes
// another size with the next flush: so there has to be a step before.
void enlarge_cache(unw_addr_space_t space, SampleView& view) {
  unw_cursor_t cursor;
  if (unw_init_remote(&cursor, space, &view) == 0) unw_step(&cursor);
  if (unw_set_cache_size(space, kCacheEntries, 0) != 0) {
    throw std::runtime_error("libunwind does not make its cache larger");
  }
  unw_flush_cache(space, 0, 0);
}

class LibunwindWalker {
 public:
  explicit LibunwindWalker(const target::ImageStore& images) : sections_(images) {}

  WalkResult walk(const StoredSample& sample) {
    SampleView view(sample, sections_);
    unw_cursor_t cursor;
    frames_ = 0;
    if (unw_init_remote(&cursor, space_of(*sample.modules, view), &view) != 0) return {};
    int status = 0;
    do {
      unw_get_reg(&cursor, UNW_REG_IP, &pcs_[frames_++]);
      status = unw_step(&cursor);
    } while (status > 0 && frames_ < pcs_.size());
    return {frames_, status == 0};
  }

  // Of the last walk, leaf first.
  std::span<const unw_word_t> pcs() const { return std::span(pcs_).first(frames_); }

 private:
  // What libunwind caches is looked up by the pc alone: it holds for one state of the maps.
  unw_addr_space_t space_of(const unwind::ModuleMap& modules, SampleView& view) {
    AddressSpace& space = spaces_[&modules];
    if (space == nullptr) {
      space = make_address_space();
      enlarge_cache(space.get(), view);
    }
    return space.get();
  }

  SectionStore sections_;
  std::unordered_map<const unwind::ModuleMap*, AddressSpace> spaces_;
  std::array<unw_word_t, unwind::kMaxFrames> pcs_{};
  size_t frames_ = 0;
};

bool is_same_frame(const unwind::WalkedFrame& ours, unw_word_t pc,
                   const unwind::ModuleMap& modules) {
  const unwind::Module* module = modules.find({ours.pc_is_exact ? pc : pc - 1});
  const bool has_image = module != nullptr && module->image != unwind::kNoImage;
  return ours.image == (has_image ? module->image : unwind::kNoImage) &&
         ours.pc == (has_image ? to_link({pc}, module->bias).value : pc);
}

uint64_t count_same(const std::vector<StoredSample>& samples, LibunwindWalker& walker) {
  unwind::Unwinder unwinder(recorder::native_arch());
  return std::ranges::count_if(samples, [&](const StoredSample& sample) {
    const auto ours =
        unwinder.walk(sample.registers, sample.stack_snapshot(), *sample.modules).frames;
    walker.walk(sample);
    return std::ranges::equal(ours, walker.pcs(), [&](const auto& frame, unw_word_t pc) {
      return is_same_frame(frame, pc, *sample.modules);
    });
  });
}

void print_figures(const RawLogSamples& log) {
  const std::vector<StoredSample>& samples = log.samples();
  LibunwindWalker walker(log.images());
  const auto walk_once = [&](const StoredSample& sample) { return walker.walk(sample); };
  const WalkFigures first = walk_each_once(samples, walk_once);
  const WalkFigures cold = walk_each_once(samples, walk_once);
  const WalkFigures warm = walk_each_many_times(samples, walk_once);
  signals_are_left_alone = true;
  const WalkFigures cold_unmasked = walk_each_once(samples, walk_once);
  const WalkFigures warm_unmasked = walk_each_many_times(samples, walk_once);
  signals_are_left_alone = false;
  fmt::print("first {:.1f}\ncold {:.1f}\nwarm {:.1f}\n", first.ns_a_frame(), cold.ns_a_frame(),
             warm.ns_a_frame());
  fmt::print("cold_unmasked {:.1f}\nwarm_unmasked {:.1f}\n", cold_unmasked.ns_a_frame(),
             warm_unmasked.ns_a_frame());
  fmt::print("samples {}\nframes_a_sample {:.1f}\nat_root {}\nsame {}\n", cold.walks,
             cold.frames_a_sample(), cold.complete, count_same(samples, walker));
}

}  // namespace

// In the place of libc's for libunwind, which masks all signals around each look-up in its cache.
extern "C" int sigprocmask(int how, const sigset_t* set, sigset_t* previous) noexcept {
  if (signals_are_left_alone) return 0;
  return pthread_sigmask(how, set, previous);
}

int main(int argc, char** argv) try {
  if (argc != 2) throw std::runtime_error("usage: libunwind_bench LOG");
  print_figures(RawLogSamples(argv[1]));
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "libunwind_bench: {}\n", error.what());
  return 1;
}
