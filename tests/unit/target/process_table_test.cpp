#include "target/process_table.h"

#include "support/catch2.h"
#include "unit/target/fake_opener.h"

using namespace sentry_prof;
using namespace sentry_prof::test;
using target::MappingFacts;
using target::ProcessSnapshot;
using target::ProcessTable;

namespace {

constexpr uint64_t kLater_ns = 1'000;  // than all snapshots

struct Table {
  FakeOpener opener;
  target::ImageStore images{opener};
  ProcessTable processes{images};
};

MappingFacts anonymous(uint32_t pid, uint64_t begin) {
  MappingFacts mapping;
  mapping.pid = pid;
  mapping.begin = {begin};
  mapping.size_bytes = 0x1000;
  return mapping;
}

ProcessSnapshot snapshot_of(uint32_t pid, uint64_t time_ns) {
  ProcessSnapshot snapshot;
  snapshot.pid = pid;
  snapshot.name = "server";
  snapshot.threads = {{pid, "server"}, {pid + 1, "worker"}};
  snapshot.mappings = {anonymous(pid, 0x1000)};
  snapshot.taken_at_ns = time_ns;
  return snapshot;
}

bool is_mapped(Table& table, uint32_t pid, uint64_t address) {
  return table.processes.process(pid).modules.find({address}) != nullptr;
}

}  // namespace

TEST_CASE("A snapshot gives names, threads and mappings") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  CHECK(table.processes.process(100).name == "server");
  CHECK(table.processes.thread(100, 101).name == "worker");
  CHECK(table.processes.thread(100, 101).generation == 0);
  CHECK(is_mapped(table, 100, 0x1800));
  CHECK(table.processes.process_count() == 1);
  CHECK(table.processes.thread_count() == 2);
}

TEST_CASE("Records older than a snapshot do not undo it") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_map(49, anonymous(100, 0x9000));
  CHECK_FALSE(is_mapped(table, 100, 0x9000));
  table.processes.on_comm(100, 100, "before", true, 49);
  table.processes.on_fork(100, 100, 1, 1, 49);
  CHECK(is_mapped(table, 100, 0x1000));
  CHECK(table.processes.process(100).name == "server");
  CHECK(table.processes.process_count() == 1);

  table.processes.on_map(50, anonymous(100, 0xa000));
  CHECK(is_mapped(table, 100, 0xa000));
  table.processes.on_map(10, anonymous(200, 0x9000));  // of a process without a snapshot
  CHECK(is_mapped(table, 200, 0x9000));
}

TEST_CASE("A thread found by the snapshot keeps its name when its fork record comes") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_fork(100, 101, 100, 100, 51);
  CHECK(table.processes.thread(100, 101).name == "worker");
  CHECK(table.processes.thread(100, 101).generation == 0);
}

TEST_CASE("exec clears the address space and ends the other threads") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_comm(100, 100, "ls", true, 60);
  CHECK(table.processes.process(100).name == "ls");
  CHECK(table.processes.process(100).modules.modules().empty());
  CHECK_FALSE(table.processes.process(100).has_exited);
  // Its tid is free for another thread now.
  table.processes.on_fork(100, 101, 100, 100, 70);
  CHECK(table.processes.thread(100, 101).generation == 1);
  CHECK(table.processes.thread(100, 101).name == "ls");
}

TEST_CASE("exec by another than the main thread goes on under the main thread's id") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_exit(100, 100);
  CHECK_FALSE(table.processes.process(100).has_exited);
  table.processes.on_comm(100, 100, "ls", true, kLater_ns);
  CHECK_FALSE(table.processes.process(100).has_exited);
  CHECK(table.processes.thread(100, 100).name == "ls");
  table.processes.on_exit(100, 100);
  CHECK(table.processes.process(100).has_exited);
}

TEST_CASE(
    "A name set without exec changes only the thread, and the process if it is its main one") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_comm(100, 101, "pool-1", false, 60);
  CHECK(table.processes.thread(100, 101).name == "pool-1");
  CHECK(table.processes.process(100).name == "server");
  table.processes.on_comm(100, 100, "renamed", false, 60);
  CHECK(table.processes.process(100).name == "renamed");
  CHECK(is_mapped(table, 100, 0x1000));
}

TEST_CASE("HotSpot is in a process that has mapped its library, and in those that it forks") {
  Table table;
  const auto has_hotspot = [&](uint32_t pid) {
    return table.processes.process(pid).modules.has_hotspot();
  };
  MappingFacts library = anonymous(100, 0x8000);
  library.path = "/usr/lib/jvm/java-17/lib/server/not-libjvm.so";
  table.processes.on_map(kLater_ns, library);
  CHECK_FALSE(has_hotspot(100));
  library.path = GENERATE(as<std::string>(), "/usr/lib/jvm/java-17/lib/server/libjvm.so",
                          "/usr/lib/jvm/java-17/lib/server/libjvm.so (deleted)");
  table.processes.on_map(kLater_ns, library);
  CHECK(has_hotspot(100));
  table.processes.on_fork(200, 200, 100, 100, kLater_ns);
  CHECK(has_hotspot(200));
  table.processes.on_comm(200, 200, "next", true, kLater_ns);
  CHECK_FALSE(has_hotspot(200));
  CHECK(has_hotspot(100));
}

TEST_CASE("fork copies the address space, and the copies are apart") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_fork(200, 200, 100, 101, 60);
  CHECK(table.processes.process(200).name == "worker");  // forked by that thread
  CHECK(table.processes.thread(200, 200).name == "worker");
  CHECK(is_mapped(table, 200, 0x1000));
  table.processes.on_map(70, anonymous(200, 0x5000));
  CHECK(is_mapped(table, 200, 0x5000));
  CHECK_FALSE(is_mapped(table, 100, 0x5000));
  table.processes.on_comm(200, 200, "ls", true, 80);
  CHECK(is_mapped(table, 100, 0x1000));
}

TEST_CASE("A new thread has the name of the one that created it") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_fork(100, 102, 100, 101, kLater_ns);
  CHECK(table.processes.thread(100, 102).name == "worker");
  CHECK(table.processes.thread_count() == 3);
}

TEST_CASE("A process has ended when its last thread has, and its state stays for late samples") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_exit(100, 100);
  CHECK_FALSE(table.processes.process(100).has_exited);
  table.processes.on_exit(100, 101);
  CHECK(table.processes.process(100).has_exited);
  CHECK(is_mapped(table, 100, 0x1000));
  CHECK(table.processes.thread(100, 101).name == "worker");
  CHECK(table.processes.thread(100, 101).generation == 0);
}

TEST_CASE("A tid that is used again is another thread") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  SECTION("after its end, in the same process") {
    table.processes.on_exit(100, 101);
    table.processes.on_fork(100, 101, 100, 100, kLater_ns);
    CHECK(table.processes.thread(100, 101).generation == 1);
    CHECK(table.processes.thread(100, 101).name == "server");
  }
  SECTION("as a new process") {
    table.processes.on_exit(100, 101);
    table.processes.on_fork(101, 101, 1, 1, kLater_ns);
    CHECK(table.processes.thread(101, 101).generation == 1);
    CHECK(table.processes.thread(101, 101).pid == 101);
  }
  SECTION("in another process, its end unseen") {
    CHECK(table.processes.thread(300, 101).generation == 1);
    CHECK(table.processes.thread(300, 101).name.empty());
    table.processes.on_exit(100, 100);
    CHECK(table.processes.process(100).has_exited);
  }
}

TEST_CASE("A pid that is used again is another process") {
  Table table;
  table.processes.on_snapshot(snapshot_of(100, 50));
  table.processes.on_exit(100, 100);
  table.processes.on_exit(100, 101);
  table.processes.on_fork(100, 100, 1, 1, 60);
  CHECK_FALSE(table.processes.process(100).has_exited);
  CHECK(table.processes.process(100).modules.modules().empty());
  CHECK(table.processes.thread(100, 100).generation == 1);
  table.processes.on_map(10, anonymous(100, 0x9000));  // no snapshot of this one
  CHECK(is_mapped(table, 100, 0x9000));
}

TEST_CASE("Processes and threads that nobody announced are there when asked for") {
  Table table;
  CHECK(table.processes.process(7).pid == 7);
  CHECK(table.processes.thread(8, 9).pid == 8);
  CHECK(table.processes.thread(8, 9).tid == 9);
  table.processes.on_exit(10, 11);
  CHECK(table.processes.process(10).has_exited);
  CHECK(table.processes.thread(10, 12).pid == 10);  // it had more threads than were known
  CHECK_FALSE(table.processes.process(10).has_exited);
}

TEST_CASE("The parent of a new process need not be known, and does not count") {
  Table table;
  table.processes.on_fork(200, 200, 100, 101, kLater_ns);
  CHECK(table.processes.process_count() == 1);
  CHECK(table.processes.process(200).modules.modules().empty());
}

TEST_CASE("A hundred thousand children leave no more than a bounded state") {
  Table table;
  table.processes.on_snapshot(snapshot_of(1, 1));
  for (uint32_t pid = 1000; pid < 101'000; ++pid) {
    table.processes.on_fork(pid, pid, 1, 1, kLater_ns);
    table.processes.on_comm(pid, pid, "child", true, kLater_ns);
    table.processes.on_map(10, anonymous(pid, 0x1000));
    table.processes.on_exit(pid, pid);
  }
  CHECK(table.processes.process_count() == 100'001);
  CHECK(table.processes.thread_count() == 100'002);
  CHECK(table.processes.kept_process_count() <= ProcessTable::kMaxExitedProcesses + 1);
  CHECK(table.processes.kept_thread_count() <= ProcessTable::kMaxExitedThreads + 2);
  CHECK(is_mapped(table, 100'999, 0x1000));
  CHECK(is_mapped(table, 1, 0x1000));
}

TEST_CASE("Ended processes with many mappings are forgotten sooner") {
  Table table;
  const uint32_t mappings = 2'000;
  const uint32_t children = 200;
  for (uint32_t i = 0; i < mappings; ++i) {
    table.processes.on_map(1, anonymous(1, uint64_t{i} * 0x2000));
  }
  for (uint32_t pid = 1000; pid < 1000 + children; ++pid) {
    table.processes.on_fork(pid, pid, 1, 1, kLater_ns);
    table.processes.on_exit(pid, pid);
  }
  CHECK(table.processes.kept_process_count() <= ProcessTable::kMaxExitedModules / mappings + 1);
  CHECK(is_mapped(table, 1000 + children - 1, 0));
}

TEST_CASE("A tid that comes back after its state was dropped is not taken for the old thread") {
  Table table;
  table.processes.on_fork(1, 50, 1, 1, kLater_ns);
  CHECK(table.processes.thread(1, 50).generation == 0);
  table.processes.on_exit(1, 50);
  for (uint32_t tid = 1000; tid < 1000 + 2 * ProcessTable::kMaxExitedThreads; ++tid) {
    table.processes.on_fork(1, tid, 1, 1, kLater_ns);
    table.processes.on_exit(1, tid);
  }
  table.processes.on_fork(1, 50, 1, 1, kLater_ns);
  CHECK(table.processes.thread(1, 50).generation > 0);
}

TEST_CASE("Mappings that pile up because no record tells of munmap are bounded") {
  Table table;
  table.opener.files["/lib/a.so"] = make_library(build_id_of(1));
  auto library = code_of("/lib/a.so", 0x7000'0000'0000);
  library.pid = 1;
  table.processes.on_map(1, library);
  for (uint64_t i = 0; i < 2 * ProcessTable::kMaxModules; ++i) {
    table.processes.on_map(1, anonymous(1, i * 0x2000));
  }
  CHECK(table.processes.process(1).modules.modules().size() <= ProcessTable::kMaxModules);
  CHECK(is_mapped(table, 1, 0x7000'0000'0000));
}

TEST_CASE("Mappings of all processes together are bounded, those of images kept the longest") {
  Table table;
  table.opener.files["/lib/a.so"] = make_library(build_id_of(1));
  auto library = code_of("/lib/a.so", 0x7000'0000'0000);
  library.pid = 1;
  table.processes.on_map(1, library);
  constexpr uint64_t kMappings = 2'000;
  for (uint64_t i = 0; i < kMappings; ++i) table.processes.on_map(1, anonymous(1, i * 0x2000));
  // None of them ends, or tells of its end.
  for (uint32_t pid = 1000; pid < 1600; ++pid) table.processes.on_fork(pid, pid, 1, 1, kLater_ns);
  CHECK(table.processes.kept_module_count() <= ProcessTable::kMaxKeptModules);
  CHECK(table.processes.forgotten_count() > 0);
  CHECK(is_mapped(table, 1000, 0));
  CHECK_FALSE(is_mapped(table, 1599, 0));
  CHECK(is_mapped(table, 1599, 0x7000'0000'0000));
}

TEST_CASE("A child of a parent with thousands of mappings gets those that have an image") {
  Table table;
  table.opener.files["/lib/a.so"] = make_library(build_id_of(1));
  auto library = code_of("/lib/a.so", 0x7000'0000'0000);
  library.pid = 1;
  table.processes.on_map(1, library);
  for (uint64_t i = 0; i < ProcessTable::kMaxForkedModules; ++i) {
    table.processes.on_map(1, anonymous(1, i * 0x2000));
  }
  table.processes.on_fork(2, 2, 1, 1, kLater_ns);
  CHECK(table.processes.process(2).modules.modules().size() == 1);
  CHECK(is_mapped(table, 2, 0x7000'0000'0000));
  CHECK(table.processes.forgotten_count() == 0);
}

TEST_CASE("Processes and threads whose ends are never told are bounded") {
  Table table;
  constexpr uint32_t kMany = ProcessTable::kMaxThreads + 1000;
  for (uint32_t pid = 1; pid <= kMany; ++pid)
    table.processes.on_comm(pid, pid, "child", false, kLater_ns);
  CHECK(table.processes.kept_process_count() <= ProcessTable::kMaxProcesses);
  CHECK(table.processes.kept_thread_count() <= ProcessTable::kMaxThreads);
  CHECK(table.processes.process_count() == kMany);
  CHECK(table.processes.forgotten_count() > 0);
  CHECK(table.processes.process(kMany - 50'000).name == "child");
  CHECK(table.processes.process(1).name.empty());
}

TEST_CASE("A process that is heard of is not forgotten, however old, nor who looks at it") {
  Table table;
  table.processes.on_comm(1, 1, "server", false, kLater_ns);
  table.processes.on_map(1, anonymous(1, 0x1000));
  bool is_whole = true;
  for (uint32_t pid = 2; pid <= ProcessTable::kMaxProcesses + 1000; ++pid) {
    const unwind::ModuleMap& modules = table.processes.process(1).modules;
    table.processes.on_comm(pid, pid, "child", false, kLater_ns);
    is_whole = is_whole && modules.modules().size() == 1;
  }
  CHECK(is_whole);
  CHECK(table.processes.forgotten_count() > 0);
  CHECK(table.processes.process(1).name == "server");
}

TEST_CASE("What an ended process mapped is in use until its end is long past") {
  Table table;
  table.opener.files["/lib/a.so"] = make_library(build_id_of(1));
  MappingFacts mapping = code_of("/lib/a.so", 0x1000'0000);
  for (const uint32_t pid : {100U, 200U}) {
    mapping.pid = pid;
    table.processes.on_comm(pid, pid, "program", false, kLater_ns);
    table.processes.on_map(1, mapping);
  }
  const auto image = table.processes.process(100).modules.modules().front().image;
  table.processes.drop_long_ended();
  CHECK(table.processes.mapped_images() == std::unordered_set<unwind::ImageId>{image});
  table.processes.on_exit(100, 100);
  table.processes.drop_long_ended();
  CHECK(table.processes.kept_process_count() == 2);
  table.processes.drop_long_ended();
  CHECK(table.processes.kept_process_count() == 1);
  CHECK(table.processes.mapped_images().contains(image));
  table.processes.on_exit(200, 200);
  table.processes.drop_long_ended();
  table.processes.drop_long_ended();
  CHECK(table.processes.mapped_images().empty());
  CHECK(table.processes.kept_module_count() == 0);
}

TEST_CASE("Processes of which no end was told are those that go on") {
  Table table;
  for (const uint32_t pid : {300U, 100U, 200U})
    table.processes.on_comm(pid, pid, "program", false, kLater_ns);
  table.processes.on_exit(200, 200);
  CHECK(table.processes.living_processes() == std::vector<uint32_t>{100, 300});
}

TEST_CASE("A pid that is used again at once is not dropped with the process that had it before") {
  Table table;
  table.processes.on_comm(100, 100, "first", false, kLater_ns);
  table.processes.on_exit(100, 100);
  table.processes.drop_long_ended();
  table.processes.on_fork(100, 100, 1, 1, kLater_ns);
  table.processes.on_comm(100, 100, "second", false, kLater_ns);
  table.processes.drop_long_ended();
  CHECK(table.processes.process(100).name == "second");
}
