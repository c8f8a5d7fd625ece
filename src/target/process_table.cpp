#include "target/process_table.h"

#include "target/mapping_kind.h"

#include <algorithm>
#include <vector>

namespace sentry_prof::target {

namespace {
constexpr uint32_t kNoThread = UINT32_MAX;

unwind::ModuleMap images_only(const unwind::ModuleMap& modules) {
  unwind::ModuleMap result;
  for (const unwind::Module& module : modules.modules()) {
    if (module.image != unwind::kNoImage) result.insert(module);
  }
  if (modules.has_hotspot()) result.set_has_hotspot();
  return result;
}

// HotSpot's library, whichever Java it came with. An upgrade may have replaced its file.
bool is_hotspot(std::string_view path) {
  if (path.ends_with(kDeletedSuffix)) path.remove_suffix(kDeletedSuffix.size());
  return path.ends_with("/libjvm.so");
}

unwind::Module nothing_at(const unwind::Module& place) {
  return {place.begin, place.end, {}, unwind::kNoImage, nullptr};
}

// The first use that is not of the oldest eighth of the entries.
template <typename Entries>
uint64_t oldest_eighth_ends_at(const Entries& entries) {
  std::vector<uint64_t> uses;
  uses.reserve(entries.size());
  for (const auto& [id, entry] : entries) uses.push_back(entry.last_use);
  const auto eighth = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 8);
  std::ranges::nth_element(uses, eighth);
  return *eighth;
}

}  // namespace

ProcessTable::ProcessEntry& ProcessTable::process_entry(uint32_t pid) {
  if (processes_.size() >= kMaxProcesses && !processes_.contains(pid)) forget_unused_processes();
  const auto [found, is_new] = processes_.try_emplace(pid);
  found->second.last_use = ++uses_;
  if (is_new) {
    found->second.process.pid = pid;
    ++processes_seen_;
  }
  return found->second;
}

ProcessTable::ThreadEntry& ProcessTable::thread_entry(uint32_t pid, uint32_t tid) {
  const auto found = threads_.find(tid);
  if (found == threads_.end() || found->second.state.pid != pid) return new_life(pid, tid);
  found->second.last_use = ++uses_;
  return found->second;
}

// An eighth of them, so that they are looked through seldom.
void ProcessTable::forget_unused_processes() {
  const uint64_t first_kept = oldest_eighth_ends_at(processes_);
  for (auto it = processes_.begin(); it != processes_.end();) {
    const auto current = it++;
    if (current->second.last_use >= first_kept) continue;
    set_modules(current->second.process, {});
    processes_.erase(current);
    ++forgotten_;
  }
}

void ProcessTable::forget_unused_threads() {
  const uint64_t first_kept = oldest_eighth_ends_at(threads_);
  for (auto it = threads_.begin(); it != threads_.end();) {
    const auto current = it++;
    const ThreadEntry& entry = current->second;
    if (entry.last_use >= first_kept) continue;
    const auto owner = processes_.find(entry.state.pid);
    if (owner != processes_.end()) owner->second.living_tids.erase(current->first);
    first_generation_ = std::max(first_generation_, entry.state.generation + 1);
    threads_.erase(current);
    ++forgotten_;
  }
}

// A thread that was not known, or has a tid that another one had before.
ProcessTable::ThreadEntry& ProcessTable::new_life(uint32_t pid, uint32_t tid) {
  if (threads_.size() >= kMaxThreads && !threads_.contains(tid)) forget_unused_threads();
  const auto [found, is_new] = threads_.try_emplace(tid);
  ThreadEntry& entry = found->second;
  if (!is_new) {
    const auto previous = processes_.find(entry.state.pid);
    if (previous != processes_.end()) previous->second.living_tids.erase(tid);
  }
  const uint32_t generation = is_new ? first_generation_ : entry.state.generation + 1;
  entry = {};
  entry.state = {pid, tid, generation, {}};
  entry.last_use = ++uses_;
  ++threads_seen_;
  ProcessEntry& owner = process_entry(pid);
  owner.living_tids.insert(tid);
  // Its threads are not all known when records were lost: it had not ended after all.
  owner.exit_serial = 0;
  owner.process.has_exited = false;
  return entry;
}

ProcessTable::ThreadEntry& ProcessTable::living_thread(uint32_t pid, uint32_t tid) {
  ThreadEntry& entry = thread_entry(pid, tid);
  return entry.exit_serial == 0 ? entry : new_life(pid, tid);
}

// A process that was not known, or has a pid that another one had before.
void ProcessTable::begin_process(ProcessEntry& entry) {
  if (entry.process.has_exited) ++processes_seen_;
  const uint32_t pid = entry.process.pid;
  set_modules(entry.process, {});
  entry.process = {};
  entry.process.pid = pid;
  entry.snapshot_time_ns = 0;
  entry.exit_serial = 0;
}

void ProcessTable::on_snapshot(const ProcessSnapshot& snapshot) {
  ProcessEntry& entry = process_entry(snapshot.pid);
  begin_process(entry);
  entry.process.name = snapshot.name;
  entry.process.modules_known_at_ns = snapshot.taken_at_ns;
  entry.snapshot_time_ns = snapshot.taken_at_ns;
  for (const auto& [tid, name] : snapshot.threads) {
    living_thread(snapshot.pid, tid).state.name = name;
  }
  // What lies on both sides of memory without a file says what that may be.
  for (const bool is_anonymous : {false, true}) {
    for (const MappingFacts& mapping : snapshot.mappings) {
      const bool is_of_turn =
          (kind_of_mapping(mapping.path) == MappingKind::Anonymous) == is_anonymous;
      if (is_of_turn) insert(entry.process, mapping);
    }
  }
  for (const MappingFacts& data : snapshot.data_below_code) note_code_above(entry.process, data);
}

void ProcessTable::on_map(uint64_t time_ns, const MappingFacts& mapping) {
  ProcessEntry& entry = process_entry(mapping.pid);
  if (time_ns < entry.snapshot_time_ns) return;
  insert(entry.process, mapping);
}

void ProcessTable::insert(Process& process, const MappingFacts& mapping) {
  const size_t before = process.modules.modules().size();
  const unwind::Module module = images_.module_for(mapping);
  if (is_hotspot(mapping.path)) process.modules.set_has_hotspot();
  if (!is_device_path(mapping.path)) note_possible_code(process, module);
  process.modules.insert(module);
  kept_modules_ += process.modules.modules().size() - before;
  if (process.modules.modules().size() <= kMaxModules && kept_modules_ <= kMaxKeptModules) return;
  ++forgotten_;
  set_modules(process, images_only(process.modules));
  const bool are_still_many = process.modules.modules().size() > kMaxModules / 2;
  if (are_still_many || kept_modules_ > kMaxKeptModules) set_modules(process, {});
}

// Before `module` takes the place of what was there: copies are made over the code, in several
// steps of which each has a record.
void ProcessTable::note_possible_code(Process& process, const unwind::Module& module) {
  unwind::ModuleMap& known = process.possible_code;
  const bool is_nothing = module.image == unwind::kNoImage;
  const auto possible = is_nothing ? possible_code(process, module) : std::nullopt;
  const auto is_replaced = [&](const unwind::Module& code) {
    return code.begin < module.end && module.begin < code.end;
  };
  if (std::ranges::any_of(known.modules(), is_replaced)) known.insert(nothing_at(module));
  if (possible) known.insert(*possible);
  keep_possible_code_bounded(known);
}

void ProcessTable::keep_possible_code_bounded(unwind::ModuleMap& known) {
  if (known.modules().size() <= kMaxPossibleCode) return;
  ++forgotten_;
  known.clear();
}

std::optional<unwind::Module> ProcessTable::possible_code(const Process& process,
                                                          const unwind::Module& module) const {
  for (const unwind::ModuleMap* map : {&process.possible_code, &process.modules}) {
    const auto& others = map->modules();
    auto beside = std::ranges::lower_bound(others, module.begin, {}, &unwind::Module::end);
    for (; beside != others.end() && beside->begin <= module.end; ++beside) {
      if (auto possible = images_.possible_code(module.begin, module.end, *beside)) return possible;
    }
  }
  return std::nullopt;
}

// No module is left of a library all of whose code was replaced.
void ProcessTable::note_code_above(Process& process, const MappingFacts& data) {
  const unwind::Module* const module = process.modules.find({data.begin.value + data.size_bytes});
  if (module == nullptr || module->image != unwind::kNoImage) return;
  const auto possible = images_.possible_code(module->begin, module->end, data);
  if (!possible) return;
  process.possible_code.insert(*possible);
  keep_possible_code_bounded(process.possible_code);
}

void ProcessTable::on_proven_code(uint32_t pid, const unwind::Module& code) {
  Process& process = process_entry(pid).process;
  const unwind::Module module = code;
  const size_t before = process.modules.modules().size();
  process.modules.insert(module);
  kept_modules_ += process.modules.modules().size() - before;
  process.possible_code.insert(nothing_at(module));
}

void ProcessTable::set_modules(Process& process, unwind::ModuleMap modules) {
  kept_modules_ += modules.modules().size() - process.modules.modules().size();
  process.modules = std::move(modules);
}

void ProcessTable::on_comm(uint32_t pid, uint32_t tid, std::string_view name, bool is_exec,
                           uint64_t time_ns) {
  ProcessEntry& entry = process_entry(pid);
  if (time_ns < entry.snapshot_time_ns) return;
  // After the exec of another thread the main thread's tid has ended, and lives again.
  ThreadEntry& thread = is_exec ? living_thread(pid, tid) : thread_entry(pid, tid);
  thread.state.name = name;
  if (tid == pid) entry.process.name = name;
  if (!is_exec) return;
  set_modules(entry.process, {});
  entry.process.possible_code.clear();
  entry.process.modules_known_at_ns = time_ns;
  end_other_threads(entry, tid);
}

// exec ends all threads but the one that called it, which takes over the process's pid as its tid.
void ProcessTable::end_other_threads(ProcessEntry& entry, uint32_t survivor_tid) {
  const std::vector<uint32_t> tids(entry.living_tids.begin(), entry.living_tids.end());
  for (const uint32_t tid : tids) {
    if (tid != survivor_tid) end_thread(tid);
  }
}

void ProcessTable::on_fork(uint32_t pid, uint32_t tid, uint32_t parent_pid, uint32_t parent_tid,
                           uint64_t time_ns) {
  ProcessEntry& entry = process_entry(pid);
  if (time_ns < entry.snapshot_time_ns) return;
  const auto creator = threads_.find(parent_tid);
  // A copy: creating the child's state may move the parent's.
  const std::string name = creator == threads_.end() ? std::string() : creator->second.state.name;
  if (pid != parent_pid) {
    end_other_threads(entry, kNoThread);
    begin_process(entry);
    entry.process.name = name;
    const auto parent = processes_.find(parent_pid);
    if (parent != processes_.end()) copy_modules(parent->second.process, entry.process);
  }
  // A thread that was found by listing /proc before its fork record came keeps the name it has now.
  const bool is_known = entry.living_tids.contains(tid);
  ThreadEntry& thread = living_thread(pid, tid);
  if (!is_known) thread.state.name = name;
}

void ProcessTable::copy_modules(const Process& parent, Process& child) {
  child.modules_known_at_ns = parent.modules_known_at_ns;
  child.possible_code = parent.possible_code;
  const size_t room =
      std::min(kMaxForkedModules, kMaxKeptModules - std::min(kMaxKeptModules, kept_modules_));
  const auto& modules = parent.modules.modules();
  if (modules.size() <= room) return set_modules(child, parent.modules);
  if (room < kMaxForkedModules) ++forgotten_;
  const auto images = std::ranges::count_if(
      modules, [](const unwind::Module& module) { return module.image != unwind::kNoImage; });
  if (static_cast<size_t>(images) <= room) set_modules(child, images_only(parent.modules));
}

void ProcessTable::on_exit(uint32_t pid, uint32_t tid) {
  ProcessEntry& entry = process_entry(pid);
  thread_entry(pid, tid);
  end_thread(tid);
  // The main thread may end before the others do.
  if (entry.living_tids.empty()) end_process(entry);
}

void ProcessTable::on_process_gone(uint32_t pid) {
  ProcessEntry& entry = process_entry(pid);
  end_other_threads(entry, kNoThread);
  end_process(entry);
}

void ProcessTable::end_thread(uint32_t tid) {
  ThreadEntry& entry = threads_.at(tid);
  const auto owner = processes_.find(entry.state.pid);
  if (owner != processes_.end()) owner->second.living_tids.erase(tid);
  if (entry.exit_serial != 0) return;
  entry.exit_serial = ++exits_;
  exited_threads_.push_back({tid, entry.exit_serial, 0});
  drop_oldest_threads();
}

void ProcessTable::end_process(ProcessEntry& entry) {
  if (entry.exit_serial != 0) return;
  entry.process.has_exited = true;
  entry.exit_serial = ++exits_;
  const size_t modules = entry.process.modules.modules().size();
  exited_processes_.push_back({entry.process.pid, entry.exit_serial, modules});
  exited_modules_ += modules;
  drop_oldest_processes();
}

void ProcessTable::drop_oldest_processes() {
  while (exited_processes_.size() > kMaxExitedProcesses ||
         (exited_modules_ > kMaxExitedModules && exited_processes_.size() > 1)) {
    drop_oldest_process();
  }
}

void ProcessTable::drop_oldest_process() {
  const Exited oldest = exited_processes_.front();
  exited_processes_.pop_front();
  exited_modules_ -= oldest.modules;
  const auto found = processes_.find(oldest.id);
  // Another serial: the pid was used again since.
  if (found != processes_.end() && found->second.exit_serial == oldest.serial) {
    set_modules(found->second.process, {});
    processes_.erase(found);
  }
}

void ProcessTable::drop_long_ended() {
  while (!exited_processes_.empty() && exited_processes_.front().serial <= exits_before_) {
    drop_oldest_process();
  }
  exits_before_ = exits_;
}

std::vector<uint32_t> ProcessTable::living_processes() const {
  std::vector<uint32_t> pids;
  for (const auto& [pid, entry] : processes_) {
    if (!entry.process.has_exited && !entry.living_tids.empty()) pids.push_back(pid);
  }
  std::ranges::sort(pids);
  return pids;
}

std::vector<uint32_t> ProcessTable::processes_without_end() const {
  std::vector<uint32_t> pids;
  for (const auto& [pid, entry] : processes_) {
    if (!entry.process.has_exited) pids.push_back(pid);
  }
  std::ranges::sort(pids);
  return pids;
}

std::unordered_set<unwind::ImageId> ProcessTable::mapped_images() const {
  std::unordered_set<unwind::ImageId> images;
  for (const auto& [pid, entry] : processes_) {
    for (const unwind::ModuleMap* map : {&entry.process.modules, &entry.process.possible_code}) {
      for (const unwind::Module& module : map->modules()) images.insert(module.image);
    }
  }
  return images;
}

void ProcessTable::drop_oldest_threads() {
  while (exited_threads_.size() > kMaxExitedThreads) {
    const Exited oldest = exited_threads_.front();
    exited_threads_.pop_front();
    const auto found = threads_.find(oldest.id);
    if (found == threads_.end() || found->second.exit_serial != oldest.serial) continue;
    first_generation_ = std::max(first_generation_, found->second.state.generation + 1);
    threads_.erase(found);
  }
}

}  // namespace sentry_prof::target
