// /proc of a running target (the Linux half).
#pragma once

#include "sentry_prof/result.h"
#include "target/process_table.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sentry_prof::target {

// Pure: the executable mappings in the text of /proc/PID/maps. Unparsable lines are skipped.
std::vector<MappingFacts> parse_maps(std::string_view text, uint32_t pid);

// Pure: data of files that lies directly below executable memory without a file, above which the
// same file goes on with data: all of its code was replaced.
std::vector<MappingFacts> parse_data_below_code(std::string_view text, uint32_t pid);

// Pure: what the text says of the place of `mapping` now, if a file is mapped there that may be the
// same: its device and inode are, or, where a build id was given instead, the caller compares that.
std::optional<MappingFacts> find_mapping(std::string_view text, const MappingFacts& mapping);

// What a process has mapped of a file in one place.
struct MappedPiece {
  uint64_t file_offset = 0;
  uint64_t size_bytes = 0;
  RuntimeAddress begin;

  bool operator==(const MappedPiece&) const = default;
};
// Pure: all read-only pieces of the file that find_mapping() found, executable or not, in the
// file's order and without overlaps. None if another file is mapped in that place by now.
std::vector<MappedPiece> parse_mapped_pieces(std::string_view text, const MappingFacts& found);

// Whether /proc is there and numbers processes as we do. Else nothing is known of any, or what is
// known is another's: chroots without it, pid namespaces with their parent's.
Result<void> check_proc();

// Refuses with a sentence: no such process, zombie, kernel thread (Unsupported), thread, another
// user's process. `pids`: all that are to be recorded with it, for the advice.
Result<void> check_is_profilable(int pid, std::span<const int> pids);

// The process that a thread belongs to: of a main thread the same id. Nothing if there is none.
std::optional<int> process_of_thread(int tid);

// Whether an error of this folder, or of os::open_pidfd(), says that there is no such process, or
// none any more.
bool is_of_ended_process(const Error& error);

// maps, threads and names of a process. A zombie leader's maps are read through a living thread.
Result<ProcessSnapshot> read_process(int pid);

// Its executable mappings alone; none of a zombie.
Result<std::vector<MappingFacts>> read_mappings(int pid);

// The path of a running process's executable, as the process sees it, like those of its mappings;
// empty where the link may not be read.
std::string executable_of(uint32_t pid);

// The opener of design decision "the target's files are hostile". May wait for ever: see
// target_files.h.
std::unique_ptr<ImageOpener> make_proc_opener();

}  // namespace sentry_prof::target
