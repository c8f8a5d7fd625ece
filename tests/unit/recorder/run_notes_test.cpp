#include "recorder/run_notes.h"

#include "os/privileges.h"
#include "recorder/summary.h"
#include "support/catch2.h"

#include <unistd.h>

using namespace sentry_prof;
using namespace sentry_prof::recorder;

namespace {

// One second of CPU time at 100 Hz, all of it sampled, on two CPUs.
RunFigures well_sampled(size_t threads) {
  RunFigures figures;
  figures.setup.event_name = "cpu-clock";
  figures.setup.cpus = 2;
  figures.setup.has_switches = true;
  figures.requested_hz = 100;
  figures.duration_s = 1;
  figures.threads = threads;
  figures.sampler.on_cpu_ns = 1'000'000'000;
  figures.sampler.sample_records = figures.sample.samples = 100;
  return figures;
}

std::string only_note_of(const RunFigures& figures) {
  const auto notes = notes_of(figures);
  REQUIRE(notes.size() == 1);
  return notes.front();
}

bool says(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Stacks that end in code that could not be read are told of, with what is needed") {
  RunFigures figures = well_sampled(1);
  figures.sample.samples = 100;
  figures.sample.walk_ends[static_cast<size_t>(unwind::WalkEnd::NoUnwindInfo)] = 6;
  figures.code_pages_not_read = 1;
  CHECK(notes_of(figures).empty());  // in files' code
  figures.sample.samples_ending_outside_files = 6;
  const bool may_ptrace = os::has_capability(os::kCapSysPtrace);
  CHECK(says(only_note_of(figures), may_ptrace ? "gone by then" : "the right to ptrace"));
  figures.memory_reads_given_up = 1;
  CHECK(says(only_note_of(figures), "overloaded"));
  figures.memory_reads_given_up = 0;
  figures.sample.samples = 1000;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Where many stacks are cut for want of a BPF program a note tells why there is none") {
  RunFigures figures = well_sampled(1);
  figures.sample.walk_ends[static_cast<size_t>(unwind::WalkEnd::StackTruncated)] = 11;
  CHECK(notes_of(figures).empty());  // there is one, or nobody asked for it
  figures.setup.stack_bytes = sampling::kMaxStack_bytes;
  figures.setup.no_outer_stacks = "that takes root, or CAP_BPF and CAP_PERFMON";
  CHECK(says(only_note_of(figures), "11 % of the stacks are larger"));
  CHECK(says(only_note_of(figures), "CAP_BPF"));
  figures.setup.stack_bytes = 2048;
  CHECK(says(only_note_of(figures), "and cut. Raise --stack-bytes, which is 2048"));
  figures.sample.walk_ends[static_cast<size_t>(unwind::WalkEnd::StackTruncated)] = 10;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Where many stacks end early a note tells, with what helps") {
  RunFigures figures = well_sampled(1);
  figures.sample.samples = 100;
  const auto ends = [&](unwind::WalkEnd end, uint64_t count) {
    figures.sample.walk_ends[static_cast<size_t>(end)] = count;
  };
  ends(unwind::WalkEnd::Root, 90);
  ends(unwind::WalkEnd::NoUnwindInfo, 10);
  CHECK(notes_of(figures).empty());
  ends(unwind::WalkEnd::NoUnwindInfo, 11);
  CHECK(says(only_note_of(figures), "11 % of the stacks end early"));
  CHECK(says(only_note_of(figures), "-fno-asynchronous-unwind-tables"));
  figures.sample.samples_with_jit_frames = 80;
  CHECK(says(only_note_of(figures), "java -XX:+PreserveFramePointer"));
  ends(unwind::WalkEnd::BadMemory, 12);
  CHECK(says(only_note_of(figures), "-v tells why"));
  figures.is_converted = true;
  CHECK(says(only_note_of(figures), "23 % of the stacks end early"));
  figures.sample.samples = 19;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Python that could name its functions is told how") {
  RunFigures figures = well_sampled(1);
  figures.sample.samples = 100;
  figures.looks_for_jit_maps = true;
  const auto python = [&](const char* code_file, uint64_t samples) {
    figures.hottest = {{"_PyEval_EvalFrameDefault", code_file, samples}};
  };
  for (const char* file : {"/usr/bin/python3.12", "/usr/lib/libpython3.13.so.1.0"}) {
    python(file, 6);
    CHECK(says(only_note_of(figures), "-X perf"));
  }
  python("/usr/bin/python3.12", 5);
  CHECK(notes_of(figures).empty());
  python("/usr/lib/libpython3.11.so.1.0", 50);
  CHECK(says(only_note_of(figures), "takes Python 3.12 or newer"));
  for (const char* file : {"/usr/bin/python3", "/opt/python3.", "/bin/x"}) {
    python(file, 50);
    CHECK(notes_of(figures).empty());
  }
  python("/usr/bin/python3.13", 50);
  figures.jit.frames_named = 1;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Much code that was compiled while the program ran is told of if nobody named it") {
  RunFigures figures = well_sampled(1);
  figures.sample.samples = 100;
  figures.looks_for_jit_maps = true;
  figures.jit.frames = 3;
  figures.sample.samples_with_jit_frames = 5;
  CHECK(notes_of(figures).empty());
  figures.sample.samples_with_jit_frames = 6;
  CHECK(says(only_note_of(figures), "/tmp/perf-PID.map"));
  figures.jit.frames_named = 1;
  CHECK(says(only_note_of(figures), "/tmp/perf-PID.map"));
  figures.looks_for_jit_maps = false;
  CHECK(notes_of(figures).empty());
  figures.looks_for_jit_maps = true;
  figures.jit.frames_named = 2;
  CHECK(notes_of(figures).empty());
  figures.jit.bad_map_lines = 7;
  CHECK(says(only_note_of(figures), "has 7 lines that are not"));
  figures.jit.bad_map_lines = 0;
  figures.jit.maps_cut = 1;
  CHECK(says(only_note_of(figures), "too large to be read whole"));
}

TEST_CASE("Stacks that end in files which could not be read are not the compiler's fault") {
  RunFigures figures = well_sampled(1);
  figures.sample.samples = 100;
  figures.sample.walk_ends[static_cast<size_t>(unwind::WalkEnd::NoUnwindInfo)] = 40;
  CHECK(says(only_note_of(figures), "compilers write"));
  figures.sample.samples_ending_in_unread_files = 30;
  CHECK(says(only_note_of(figures), "40 % of the stacks end early"));
  CHECK(says(only_note_of(figures), "mapped files that could not be read"));
  figures.code_pages_not_read = 1;  // of the files' code
  CHECK(says(only_note_of(figures), "mapped files that could not be read"));
  figures.sample.samples_ending_outside_files = 10;
  CHECK(notes_of(figures).size() == 2);
}

TEST_CASE("Where no thread has two samples, nothing is written, and a note says why") {
  RunFigures figures = well_sampled(1);
  figures.chunks_too_small = 1;
  CHECK(says(only_note_of(figures), "no thread has two samples"));
  CHECK(says(only_note_of(figures), "Raise --frequency, or make longer chunks"));
  figures.is_converted = true;
  CHECK(says(only_note_of(figures), "no thread has two samples"));
  CHECK(says(only_note_of(figures), "perf record -F"));
  // What perf did not sample, its own notes explain.
  figures.chunks_too_small = 0;
  figures.sampler.sample_records = 0;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("At the highest frequency no higher one is asked for") {
  RunFigures figures = well_sampled(50'000);
  figures.requested_hz = 10'000;
  figures.sampler.sample_records = 12;
  CHECK(says(only_note_of(figures), "no higher --frequency than 10000 Hz: record longer"));
  RunFigures single = well_sampled(1);
  single.requested_hz = 10'000;
  single.setup.event_name = "cycles";
  single.chunks_too_small = 1;
  CHECK(says(only_note_of(single), "no higher --frequency than 10000 Hz: make longer chunks"));
}

TEST_CASE("Symbol tables that were too large to be read beside the others are told of") {
  RunFigures figures = well_sampled(1);
  figures.symbol_tables_cut = 2;
  CHECK(says(only_note_of(figures), "2 symbol tables were too large"));
  figures.is_converted = true;
  CHECK(says(only_note_of(figures), "2 symbol tables were too large"));
}

TEST_CASE("Names that stayed mangled are told of as such") {
  RunFigures figures = well_sampled(1);
  figures.names_left_mangled = 1;
  CHECK(says(only_note_of(figures), "1 name of functions was left as the linker has it"));
}

TEST_CASE("Samples that Sentry drops, since their threads have no other, are told of") {
  RunFigures figures = well_sampled(1);
  figures.samples_written = 100;
  figures.samples_of_short_threads = 5;
  CHECK(notes_of(figures).empty());
  figures.samples_of_short_threads = 6;
  CHECK(says(only_note_of(figures), "6 of the 100 samples are the only one of their thread"));
  CHECK(says(only_note_of(figures), "Raise --frequency"));
  figures.setup.event_name = "cycles";  // which promises no number of samples
  figures.requested_hz = 10'000;
  CHECK(says(only_note_of(figures), "no higher --frequency than 10000 Hz"));
  figures.is_converted = true;
  CHECK(says(only_note_of(figures), "higher frequency (perf record -F)"));
}

TEST_CASE("A run that took nearly all samples needs no note") {
  RunFigures figures = well_sampled(500);
  CHECK(notes_of(figures).empty());
  figures.sampler.sample_records = 81;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Short threads that were not seen are told, with the share that was") {
  RunFigures figures = well_sampled(500);
  figures.sampler.sample_records = 12;
  const std::string note = only_note_of(figures);
  CHECK(says(note, "only 12 % of the 1.00 s of CPU time"));
  CHECK(says(note, "after 10 ms on a CPU"));
  CHECK(says(note, "Raise --frequency, or record longer"));
}

TEST_CASE("Of a few milliseconds no share is told, however many samples they should have had") {
  RunFigures figures = well_sampled(500);
  figures.requested_hz = 10'000;
  figures.sampler.on_cpu_ns = 10'000'000;
  figures.sampler.sample_records = 60;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Few threads do not explain many missing samples") {
  RunFigures figures = well_sampled(1);
  figures.sampler.sample_records = 60;
  CHECK(says(only_note_of(figures), "the kernel's timer came late"));
}

TEST_CASE("Too few samples are no riddle where something else is known to have taken them") {
  RunFigures lost = well_sampled(500);
  lost.sampler.sample_records = 50;
  lost.sample.loss(Loss::RingFull) = 50;
  CHECK(notes_of(lost).empty());
  RunFigures throttled = well_sampled(500);
  throttled.sampler.sample_records = 50;
  throttled.sampler.throttled = 1;
  CHECK(notes_of(throttled).empty());
  RunFigures user_only = well_sampled(500);
  user_only.sampler.sample_records = 50;
  user_only.setup.kernel_excluded = true;
  CHECK(says(only_note_of(user_only), "system calls"));
  RunFigures cycles = well_sampled(500);
  cycles.sampler.sample_records = 50;
  cycles.setup.event_name = "cycles";
  CHECK(notes_of(cycles).empty());
}

TEST_CASE("Of a short run a few missing samples are not told") {
  RunFigures figures = well_sampled(10);
  figures.sampler.on_cpu_ns = 150'000'000;
  figures.sampler.sample_records = 5;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Too little CPU time is the reason only where little was used") {
  RunFigures figures = well_sampled(1);
  figures.sampler.sample_records = 0;
  figures.sampler.on_cpu_ns = 1'000'000;
  CHECK(says(only_note_of(figures), "ms of CPU time in"));
  figures.threads = 500;
  figures.sampler.on_cpu_ns = 300'000'000;
  CHECK(says(only_note_of(figures), "no sample was taken in 0.30 s of CPU time. A thread gets"));
  figures.setup.kernel_excluded = true;
  CHECK(says(notes_of(figures).front(), "never in its own code"));
  CHECK(says(notes_of(figures).back(), "time in system calls is missing"));
}

TEST_CASE("CPU time of a program that takes itself from profilers is told of") {
  RunFigures figures = well_sampled(1);
  figures.command_cpu_ns = 1'200'000'000;
  CHECK(notes_of(figures).empty());
  figures.command_cpu_ns = 1'400'000'000;
  CHECK(says(only_note_of(figures), "of 1.40 s of CPU time that the command used only 1.00 s"));
  figures.sampler.on_cpu_ns = 0;
  figures.sampler.sample_records = 0;
  const auto notes = notes_of(figures);
  REQUIRE(notes.size() == 2);
  CHECK(notes[0] == "nothing was written");
  CHECK(says(notes[1], "setuid"));
}

TEST_CASE("Single samples of threads are told to be the reason if nothing else was written") {
  RunFigures figures = well_sampled(1);
  figures.chunks_too_small = 2;
  CHECK(says(only_note_of(figures), "nothing was written: no thread has two samples in one chunk"));
  figures.sample.loss(Loss::ChunkNotWritten) = 90;
  CHECK(notes_of(figures).empty());
  figures.sample.loss(Loss::ChunkNotWritten) = 0;
  figures.chunks_written = 1;
  CHECK(notes_of(figures).empty());
}

TEST_CASE("Lost records that are no samples are a note and no loss of samples") {
  RunFigures figures = well_sampled(1);
  figures.sampler.lost_records = 7;
  figures.samples_written = 100;
  CHECK(figures.losses_total() == 0);
  CHECK(figures.broken_law().empty());
  CHECK(says(only_note_of(figures), "7 records of names, mappings or context switches"));
}

TEST_CASE("The hottest functions have one pair of brackets, and those of 0.0 % are left out") {
  RunFigures figures = well_sampled(1);
  figures.samples_written = 10'000;
  figures.hottest = {
      {"clock_gettime", "[vdso]", 9'990}, {"hot", "/bin/x", 6}, {"cold", "/bin/x", 4}};
  const std::string text = summary_text(figures, {}, false);
  CHECK(says(text, " 99.9 %  clock_gettime  [vdso]\n"));
  CHECK(says(text, "  0.1 %  hot  [x]\n"));
  CHECK_FALSE(says(text, "cold"));
  figures.hottest.resize(1);
  figures.hottest[0].samples = 4;
  CHECK_FALSE(says(summary_text(figures, {}, false), "hottest"));
}

TEST_CASE("CPUs that came online too late are told in the printed summary") {
  RunFigures figures = well_sampled(1);
  CHECK_FALSE(says(summary_text(figures, {}, false), "online"));
  figures.sampler.cpus_not_sampled = 1;
  CHECK(says(summary_text(figures, {}, false), "note      1 CPU came online"));
  figures.sampler.cpus_not_sampled = 3;
  CHECK(says(summary_text(figures, {}, false), "note      3 CPUs came online"));
}

TEST_CASE("A run without samples says which of the causes it was") {
  RunFigures figures;
  figures.setup.has_switches = true;
  figures.requested_hz = 100;
  figures.duration_s = 2;
  CHECK(says(only_note_of(figures), "ms of CPU time in"));
  CHECK(says(only_note_of(figures), "other programs have the CPUs"));
  CHECK(says(only_note_of(figures), "frozen (a paused container)"));
  const bool sees_what_becomes_root = ::geteuid() == 0 || os::has_capability(os::kCapSysAdmin);
  CHECK(says(only_note_of(figures), "setuid") != sees_what_becomes_root);
  figures.duration_s = 0.005;
  CHECK(says(only_note_of(figures), "in 5 ms there was hardly time for a sample"));
  figures.target_is_stopped = true;
  CHECK(says(only_note_of(figures), "stopped"));
}

TEST_CASE("A target that used nearly as much CPU time as a sample takes gets the advice for it") {
  RunFigures figures;
  figures.setup.has_switches = true;
  figures.requested_hz = 1;
  figures.duration_s = 3.002;
  figures.sampler.on_cpu_ns = 682'000'000;
  CHECK(says(only_note_of(figures), "682.0 ms of CPU time in 3.0 s"));
  CHECK(says(only_note_of(figures), "Raise --frequency, or record longer"));
  CHECK_FALSE(says(only_note_of(figures), "It waits"));
  figures.sampler.on_cpu_ns = 20'000'000;
  CHECK(says(only_note_of(figures), "It waits"));
}

TEST_CASE("A file none of whose samples could be taken says that nothing was written") {
  RunFigures figures;
  figures.is_converted = true;
  figures.sampler.sample_records = 62;
  figures.sample.loss(Loss::UnmappedPc) = 62;
  CHECK(says(only_note_of(figures), "nothing was written: none of its 62 samples"));
}
