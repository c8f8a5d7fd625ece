// Walks the samples of a perf.data file and prints the frames, for scripts/compare-perf:
//   perf_frames FILE [CACHE]
// A line a sample: S TID TIME_NS END, and one a frame, leaf first: PC OFFSET EXACT PATH, the first
// two in hex. OFFSET is PC in the file, "-" where no file is known; EXACT is 0 for return
// addresses.
#include "formats/perf_data.h"
#include "os/file.h"
#include "recorder/mapping_of_event.h"
#include "recorder/register_mapping.h"
#include "target/local_opener.h"
#include "target/process_table.h"
#include "unwind/walk.h"

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>

#include <fmt/format.h>

using namespace sentry_prof;

namespace {

class Printer final : public sampling::EventSink {
 public:
  Printer(target::LocalFiles files, uint64_t register_mask)
      : opener_(target::make_local_opener(std::move(files))),
        dwarf_numbers_(recorder::dwarf_numbers_of(register_mask)) {}

  void on_event(const sampling::Event& event) override {
    std::visit([&](const auto& body) { on_body(event.time_ns, body); }, event.body);
  }

  void print_problems() const {
    for (const std::string& problem : images_.problems()) fmt::print(stderr, "{}\n", problem);
  }

 private:
  void on_body(uint64_t time_ns, const sampling::SampleEvent& sample) {
    if (!sample.registers.is_present || sample.registers.is_32_bit) return;
    const unwind::ModuleMap& modules = processes_.process(sample.pid).modules;
    const auto registers = recorder::to_registers(sample.registers, dwarf_numbers_);
    const unsigned sp = unwind::arch_registers(recorder::native_arch()).stack_pointer;
    using Behind = unwind::StackSnapshot::Behind;
    const Behind behind = sample.stack_is_cut ? Behind::More : Behind::Nothing;
    const unwind::Walk walk = unwinder_.walk(registers, {{registers.get(sp)}, sample.stack, behind},
                                             modules, &memories_.of(sample.pid, sample.tid));
    fmt::print("S {} {} {}\n", sample.tid, time_ns, unwind::name_of(walk.end));
    for (const unwind::WalkedFrame& frame : walk.frames) print_frame(frame, modules);
  }

  void print_frame(const unwind::WalkedFrame& frame, const unwind::ModuleMap& modules) const {
    const auto image = images_.image(frame.image);
    std::string offset = "-";
    if (image) {
      if (const auto place = offset_of(*image, frame.pc)) offset = fmt::format("{:x}", *place);
    }
    fmt::print("{:x} {} {} {}\n", runtime_pc(frame, modules), offset, frame.pc_is_exact ? 1 : 0,
               image ? image->path() : "-");
  }

  static uint64_t runtime_pc(const unwind::WalkedFrame& frame, const unwind::ModuleMap& modules) {
    if (frame.image == unwind::kNoImage) return frame.pc;
    for (const unwind::Module& module : modules.modules()) {
      if (module.image == frame.image) return to_runtime({frame.pc}, module.bias).value;
    }
    return 0;
  }

  static std::optional<uint64_t> offset_of(const target::LoadedImage& image, uint64_t link_pc) {
    if (image.is_known_by_name_only()) return link_pc;
    for (const elf::Segment& segment : image.layout().segments) {
      if (link_pc - segment.vaddr.value < segment.memory_bytes) {
        return link_pc - segment.vaddr.value + segment.file_offset;
      }
    }
    return std::nullopt;
  }

  void on_body(uint64_t time_ns, const sampling::MapEvent& map) {
    if (!map.is_data) processes_.on_map(time_ns, recorder::mapping_facts_of(map));
  }
  void on_body(uint64_t time_ns, const sampling::CommEvent& comm) {
    processes_.on_comm(comm.pid, comm.tid, comm.name, comm.is_exec, time_ns);
  }
  void on_body(uint64_t time_ns, const sampling::ForkEvent& fork) {
    if (fork.is_synthesized && fork.pid != fork.parent_pid) return;
    processes_.on_fork(fork.pid, fork.tid, fork.parent_pid, fork.parent_tid, time_ns);
  }
  void on_body(uint64_t, const sampling::ExitEvent& exit) {
    processes_.on_exit(exit.pid, exit.tid);
  }
  void on_body(uint64_t, const auto&) {}

  std::unique_ptr<target::ImageOpener> opener_;
  target::ImageStore images_{*opener_};
  target::ProcessTable processes_{images_};
  unwind::Unwinder unwinder_{recorder::native_arch()};
  unwind::WalkMemories memories_;
  std::vector<uint8_t> dwarf_numbers_;
};

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3) throw std::runtime_error("usage: perf_frames FILE [CACHE]");
  const auto file = value_of(os::FileByteSource::open(argv[1]));
  const auto data = value_of(formats::PerfData::open(*file));
  const auto& survey = data.survey();
  // The file's last change is the end of the recording.
  const uint64_t begin_ns = file->modified_unix_ns() - (survey.last_time_ns - survey.first_time_ns);
  Printer printer({begin_ns, argc == 3 ? argv[2] : ""}, data.sampled_event().attr.sample_regs_user);
  const auto figures = value_of(data.play(printer));
  printer.print_problems();
  fmt::print("END {} samples, {} lost\n", figures.stats.sample_records, figures.stats.lost_samples);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "perf_frames: {}\n", error.what());
  return 1;
}
