#include "cli/run_report.h"

#include "base/utf8.h"
#include "cli/message.h"
#include "recorder/run_notes.h"
#include "recorder/summary.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

std::string note_of_left(const std::vector<std::string>& left) {
  if (left.empty()) return "";
  const std::string first = printable_utf8(left.front());
  return left.size() == 1 ? first + " is of an earlier recording"
                          : fmt::format("{} files are of an earlier recording: {} to {}",
                                        left.size(), first, printable_utf8(left.back()));
}

// Who records one process twice has one file: the name is made of the process's.
std::string note_of_replaced(const std::vector<std::string>& replacing) {
  if (replacing.empty()) return "";
  const std::string first = printable_utf8(replacing.front());
  return replacing.size() == 1
             ? first + " was there before and is replaced"
             : fmt::format("{} files were there before and are replaced, the first: {}",
                           replacing.size(), first);
}

// Of many chunks that a full disk did not take the messages differ in numbers only.
std::string what_was_not_written(const recorder::RunFigures& figures) {
  const std::string& first = figures.write_errors.front();
  if (figures.chunks_not_written < 2) return first;
  const std::string& last = figures.write_errors.back();
  return fmt::format("{} chunks were not written. The first error: {}{}",
                     figures.chunks_not_written, first, last == first ? "" : " The last: " + last);
}

}  // namespace

bool report(const ProfileOptions& options, const recorder::RunFigures& figures,
            const ChunkFiles& files, const HalfWritten& half_written) {
  if (!options.is_quiet) {
    print(recorder::summary_text(figures, files.written(), options.is_verbose));
    const std::string replaced = note_of_replaced(files.replacing());
    if (!replaced.empty()) print("  note      " + replaced + '\n');
    const std::string left = note_of_left(files.left_by_earlier_run());
    if (!left.empty()) print("  note      " + left + '\n');
  } else if (figures.chunks_written == 0 && figures.write_errors.empty()) {
    complain(recorder::why_nothing_was_written(figures));
  }
  if (!figures.write_errors.empty()) complain(what_was_not_written(figures));
  for (const auto& [chunks, what] : {std::pair(half_written.not_in_files, "uploaded only"),
                                     {half_written.not_uploaded, "written to files only"}}) {
    if (chunks == 0) continue;
    complain(fmt::format("chunks {}: {}. The first: {}", what, chunks, half_written.first_error));
  }
  const bool are_all_taken = figures.sample.loss(recorder::Loss::ChunkQueueFull) == 0;
  return figures.write_errors.empty() && half_written.first_error.empty() && are_all_taken;
}

bool write_summary(const ProfileOptions& options, const recorder::RunFigures& figures,
                   const ChunkFiles& files) {
  if (options.summary.empty()) return true;
  const std::string json = recorder::summary_json(figures, files.written());
  const auto ok = write_output(options.summary, json);
  if (!ok) complain(ok.error().message);
  return ok.has_value();
}

}  // namespace sentry_prof::cli
