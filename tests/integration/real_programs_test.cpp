// Programs that nobody here wrote.
#include "prerequisites.h"
#include "recording.h"
#include "support/catch2.h"
#include "text_file.h"

#include <algorithm>
#include <cctype>
#include <random>

using namespace sentry_prof::testing;

namespace {

constexpr const char* kCxxSource = R"cpp(
#include <functional>
#include <map>
#include <regex>
#include <string>
  std::map<std::string, std::function<int(int)>> table;
  int count(const std::string& text) {
    static const std::regex words("([a-z]+)=([0-9]+)");
    int sum = 0;
    for (std::sregex_iterator it(text.begin(), text.end(), words), end; it != end; ++it) {
      sum += table.at((*it)[1])(std::stoi((*it)[2]));
    }
    return sum;
  }
)cpp";

// Bytes that xz cannot compress quickly.
void write_random_bytes(const std::string& path, size_t size_bytes) {
  std::mt19937_64 generator(1);
  std::string bytes(size_bytes, '\0');
  for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
    const uint64_t word = generator() & 0x0f0f3f3f0f0f3f3fU;
    for (size_t byte = 0; byte < 8; ++byte) bytes[i + byte] = static_cast<char>(word >> (8 * byte));
  }
  write_text(path, bytes);
}

// The thread with the most samples.
std::string busiest_thread(const LoadedProfile& profile) {
  std::string busiest;
  for (const std::string& id : profile.thread_ids()) {
    if (profile.busy_samples(id).size() > profile.busy_samples(busiest).size() || busiest.empty()) {
      busiest = id;
    }
  }
  return busiest;
}

}  // namespace

TEST_CASE("clang++ compiling: deep stacks without frame pointers are whole", "[compiler]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("clang++"));
  const TemporaryDirectory directory;
  const std::string source = directory.file("source.cpp");
  write_text(source, kCxxSource);
  const Recording recording = record_well(
      directory, {.command = {"clang++", "-O1", "-c", source, "-o", directory.file("source.o")}});

  CHECK(recording.summary().number("samples") > 300);
  CHECK(recording.summary().share_complete() >= 0.95);
  const LoadedProfile& profile = recording.profile();
  const std::string main_thread = busiest_thread(profile);
  const auto is_of_clang = [&](const LoadedFrame& frame) {
    const std::string_view file = profile.code_file(frame);
    return file.find("libLLVM") != std::string_view::npos ||
           file.find("libclang-cpp") != std::string_view::npos;
  };
  const auto is_named_function_of_clang = [&](const LoadedFrame& frame) {
    return is_of_clang(frame) && (frame.function.find("clang::") != std::string::npos ||
                                  frame.function.find("llvm::") != std::string::npos);
  };
  CHECK(profile.share_with_frame(is_of_clang, main_thread) > 0.8);
  CHECK(profile.share_with_frame(is_named_function_of_clang, main_thread) > 0.8);
  CHECK(profile.share_containing("clang::ParseAST(clang::Sema&, bool, bool)", main_thread) > 0.5);
  // The C library starts main(); what comes below it is the program's entry point.
  const auto root_is_entry = [&](const LoadedSample& sample) {
    return profile.root(sample) == "_start";
  };
  CHECK(profile.share_of_samples(root_is_entry, main_thread) > 0.9);
  const auto is_deep = [](const LoadedSample& sample) { return sample.stack.size() >= 15; };
  CHECK(profile.share_of_samples(is_deep, main_thread) > 0.5);
}

TEST_CASE("python3 computing: the interpreter's loop is in every stack", "[python]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("/usr/bin/python3"));
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory, {.command = {"/usr/bin/python3", "-S", "-c",
                              "n = 0\nfor i in range(9000000): n += i * i % 7\nprint(n)"}});
  CHECK(recording.summary().share_complete() >= 0.95);
  const LoadedProfile& profile = recording.profile();
  CHECK(profile.share_containing("_PyEval_EvalFrameDefault") > 0.8);
  CHECK(profile.share_containing("Py_BytesMain") > 0.9);
}

TEST_CASE("python3 -X perf: the script's own functions are in the stacks", "[python-perf]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("/usr/bin/python3"));
  const TemporaryDirectory directory;
  const std::string script =
      "import os, sys, time\n"
      "if not hasattr(sys, 'activate_stack_trampoline'): sys.exit(9)\n"
      "def leaf(n):\n  s = 0\n  for i in range(n): s += i * i\n  return s\n"
      "def caller(n): return leaf(n) + leaf(n // 2)\n"
      "end = time.process_time() + 1\n"
      "while time.process_time() < end: caller(3000)\n"
      "os.unlink(f'/tmp/perf-{os.getpid()}.map')\n";
  const std::vector<std::string> python = {"/usr/bin/python3", "-S", "-X", "perf", "-c", script};
  if (run_command({.arguments = python}).status() == 9)
    return note_optional_skip("python3 of 3.12 or later");
  const Recording recording = record_well(directory, {.command = python});
  CHECK(recording.summary().share_complete() >= 0.98);
  CHECK(recording.profile().share_containing("py::leaf:<string>") > 0.8);
  CHECK(recording.profile().share_containing("py::caller:<string>") > 0.8);
  CHECK(recording.profile().share_containing("Py_BytesMain") > 0.9);
}

TEST_CASE("node: code that was compiled just now is walked by its frame pointers", "[jit]") {
  SKIP_IF(missing_perf());
  if (const auto missing = missing_program("node")) return note_optional_skip(*missing);
  const TemporaryDirectory directory;
  const std::string script =
      "function leaf(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; "
      "}\n"
      "function down(n) { return n === 0 ? leaf(300) : down(n - 1) + leaf(300); }\n"
      "const begin = process.cpuUsage(); let sum = 0;\n"
      "while (process.cpuUsage(begin).user < 1e6) for (let i = 0; i < 100; i++) sum += down(10);\n"
      "process.on('exit', () => require('fs').unlinkSync(`/tmp/perf-${process.pid}.map`));";
  const Recording recording =
      record_well(directory, {.command = {"node", "--perf-basic-prof", "--no-logfile-per-isolate",
                                          "--logfile=" + directory.file("v8.log"), "-e", script}});
  CHECK(recording.summary().share_complete() >= 0.99);
  CHECK(recording.summary().number("frames_by_origin/frame_pointer") >
        5 * recording.summary().number("samples"));
  const auto is_our_script = [](const LoadedFrame& frame) {
    return frame.function.find("[eval]") != std::string::npos;
  };
  CHECK(recording.profile().share_with_frame(is_our_script) > 0.5);
}

TEST_CASE("java: compiled code, which keeps no frame pointers, and the interpreter", "[java]") {
  SKIP_IF(missing_perf());
  for (const char* const program : {"java", "javac"}) {
    if (const auto missing = missing_program(program)) return note_optional_skip(*missing);
  }
  const TemporaryDirectory directory;
  // Of three classes that have two interfaces in turns, so that tables of them are searched, in
  // stubs.
  write_text(directory.file("Deep.java"), R"(public class Deep {
  interface A { int a(int x); }
  interface B { int b(int x); }
  static class P implements A, B { public int a(int x) { return x * 31; } public int b(int x) { return x ^ 7; } }
  static class Q implements B, A { public int a(int x) { return x * 17; } public int b(int x) { return x + 9; } }
  static class R implements A { public int a(int x) { return x - 5; } }
  static final Object[] all = { new P(), new Q(), new R() };
  static int leaf(int n) {
    int s = 0;
    for (int i = 0; i < n; i++) {
      Object o = all[i % 3];
      s += ((A) o).a(i);
      if (o instanceof B) s ^= ((B) o).b(s);
    }
    return s;
  }
  static int down(int n) { return n == 0 ? leaf(3000) : down(n - 1) + leaf(n); }
  public static void main(String[] arguments) {
    int sum = 0;
    java.lang.management.ThreadMXBean threads = java.lang.management.ManagementFactory.getThreadMXBean();
    while (threads.getCurrentThreadCpuTime() < 3_000_000_000L)
      for (int i = 0; i < 100; i++) sum += down(30);
    System.out.println(sum);
  }
})");
  REQUIRE(run_command({.arguments = {"javac", "-d", directory.path(), directory.file("Deep.java")}})
              .status() == 0);
  const std::string compilers = GENERATE("-XX:+TieredCompilation", "-XX:TieredStopAtLevel=1");
  const Recording recording = record_well(
      directory, {.command = {"java", "-XX:-Inline", compilers, "-cp", directory.path(), "Deep"}});
  // While the virtual machine starts, its first thread has a frame larger than the kernel's copy,
  // of which a recorder that lags behind on a busy machine finds nothing any more.
  CHECK(recording.summary().number("samples_complete") >=
        0.97 * (recording.summary().number("samples") -
                recording.summary().number("walk_ends/stack_truncated")));
  CHECK(recording.summary().number("frames_by_origin/code") >
        10 * recording.summary().number("samples"));
  // None of them is skipped.
  const LoadedProfile& profile = recording.profile();
  const auto levels = [&](const LoadedSample& sample) {
    return std::ranges::count_if(sample.stack, [&](size_t frame) {
      return profile.code_file(profile.frames[frame]).empty();
    });
  };
  const auto is_deep = [&](const LoadedSample& sample) { return levels(sample) >= 31; };
  CHECK(profile.share_of_samples(is_deep) > 0.7);
}

TEST_CASE("luajit: traces, which run in the frame of the interpreter", "[luajit]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("luajit"));
  const TemporaryDirectory directory;
  const char* const script =
      "local function cost(n) local s = 0 for i = 1, n do s = (s * 31 + i) % 1000003 end return s "
      "end "
      "local stop = os.clock() + 1.5 "
      "while os.clock() < stop do "
      "  local t = {} for i = 1, 100 do t[i] = i * 7919 % 1009 end "
      "  table.sort(t, function(a, b) return cost(30) > 0 and a < b end) "
      "  string.gsub(('ab'):rep(20), 'a', function() cost(300) end) "
      "  cost(3000) "
      "end";
  const Recording recording = record_well(directory, {.command = {"luajit", "-e", script}});
  CHECK(recording.summary().share_complete() >= 0.97);
  CHECK(2 * recording.summary().number("frames_by_origin/code") >
        recording.summary().number("samples"));
  CHECK(recording.profile().share_containing("lua_pcall") > 0.95);
}

TEST_CASE("xz -T2: two busy worker threads of liblzma", "[xz]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("xz"));
  const TemporaryDirectory directory;
  write_random_bytes(directory.file("input"), 6 << 20);
  const Recording recording = record_well(
      directory,
      {.command = {"xz", "-T2", "--block-size=1MiB", "-k", "-6", directory.file("input")}});
  CHECK(recording.summary().share_complete() >= 0.95);
  const LoadedProfile& profile = recording.profile();
  const auto is_liblzma = [&](const LoadedFrame& frame) {
    return profile.code_file(frame).find("liblzma") != std::string_view::npos;
  };
  size_t busy_workers = 0;
  for (const std::string& id : profile.thread_ids()) {
    const double share = static_cast<double>(profile.busy_samples(id).size()) /
                         static_cast<double>(profile.busy_samples().size());
    if (share < 0.25) continue;
    ++busy_workers;
    CHECK(profile.share_with_frame(is_liblzma, id) > 0.9);
    const auto starts_in_xz_thread = [&](const LoadedSample& sample) {
      return profile.root(sample) != "_start";  // clone3 or what this libc calls it
    };
    CHECK(profile.share_of_samples(starts_in_xz_thread, id) > 0.9);
  }
  CHECK(busy_workers == 2);
}

TEST_CASE("redis-server: attach and detach while it serves, and no request fails", "[redis]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("redis-server"));
  SKIP_IF(missing_program("redis-benchmark"));
  const TemporaryDirectory directory;
  const std::string socket = directory.file("redis.sock");
  BackgroundProcess server({.arguments = {"redis-server", "--port", "0", "--unixsocket", socket,
                                          "--save", "", "--appendonly", "no"},
                            .directory = directory.path()});
  const auto serves = [&] {
    return run_command({.arguments = {"redis-cli", "-s", socket, "ping"}}).standard_output ==
           "PONG\n";
  };
  REQUIRE(wait_until(serves));
  BackgroundProcess clients({.arguments = {"redis-benchmark", "-s", socket, "-t", "set,get", "-n",
                                           "1000000000", "-c", "8", "-q"}});
  for (int round = 0; round < 2; ++round) {
    const TemporaryDirectory output;
    const Recording recording =
        record_well(output, {.options = {"-d", "1"}, .pids = {server.pid()}});
    const LoadedProfile& profile = recording.profile();
    const std::string main_thread = std::to_string(server.pid());
    CHECK(recording.summary().share_complete() >= 0.95);
    CHECK(profile.busy_samples(main_thread).size() > 10);
    CHECK(profile.share_with_frame(
              [&](const LoadedFrame& frame) {
                return profile.code_file(frame).find("redis") != std::string_view::npos;
              },
              main_thread) > 0.9);
    CHECK(server.is_running());
    CHECK(clients.is_running());  // it ends with status 1 at the first request that fails
  }
  CHECK(clients.standard_error().find("Error") == std::string::npos);
  CHECK(serves());
}

TEST_CASE("dd: time in system calls belongs to the user stack that called", "[syscalls]") {
  SKIP_IF(missing_perf());
  SKIP_IF(missing_program("dd"));
  const TemporaryDirectory directory;
  const Recording recording = record_well(
      directory,
      {.command = {"dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=12000", "status=none"}});
  if (recording.summary().flag("kernel_excluded")) {
    note_skip("the kernel does not let us sample in kernel mode");
    return;
  }
  // 97 % is what it must reach (bench/RESULTS.md); short runs on busy machines get some room.
  CHECK(recording.summary().share_of_expected_samples() >= 0.9);
  CHECK(recording.summary().share_complete() >= 0.95);
  const LoadedProfile& profile = recording.profile();
  const auto is_call = [](const LoadedFrame& frame) {
    return frame.function == "read" || frame.function == "__read" || frame.function == "write" ||
           frame.function == "__write";
  };
  CHECK(profile.share_with_frame(is_call) > 0.9);
}
