#include "cli/record_end.h"

#include "base/utf8.h"
#include "cli/message.h"
#include "recorder/run_notes.h"
#include "recorder/summary.h"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace sentry_prof::cli {

namespace {

// False if it could not be written.
bool finish_raw_log(recorder::RawLogWriter* raw_log) {
  if (raw_log == nullptr) return true;
  const auto ok = raw_log->commit();
  if (!ok) complain(ok.error().message);
  return ok.has_value();
}

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

}  // namespace

bool report(const RecordOptions& options, const recorder::RunFigures& figures,
            const ChunkFiles& files, const HalfWritten& half_written) {
  if (!options.is_quiet) {
    print(recorder::summary_text(figures, files.written(), options.is_verbose));
    const std::string replaced = note_of_replaced(files.replacing());
    if (!replaced.empty()) print("  note      " + replaced + '\n');
    const std::string left = writes_files(options) ? note_of_left(files.left_by_earlier_run()) : "";
    if (!left.empty()) print("  note      " + left + '\n');
  } else if (figures.chunks_written == 0 && figures.write_errors.empty()) {
    complain(recorder::why_nothing_was_written(figures));
  }
  for (const std::string& error : figures.write_errors) complain(error);
  for (const auto& [chunks, what] : {std::pair(half_written.not_in_files, "uploaded only"),
                                     {half_written.not_uploaded, "written to files only"}}) {
    if (chunks == 0) continue;
    complain(fmt::format("chunks {}: {}. The first: {}", what, chunks, half_written.first_error));
  }
  return figures.write_errors.empty() && half_written.first_error.empty();
}

bool write_summary_of(const RecordOptions& options, const recorder::RunFigures& figures,
                      const ChunkFiles& files) {
  if (options.summary.empty()) return true;
  const auto ok = write_summary(options, recorder::summary_json(figures, files.written()));
  if (!ok) complain(ok.error().message);
  return ok.has_value();
}

RecordEnd leave(const RecordOptions& options, recorder::RunResult& run,
                const RecordOutputs& outputs, const os::SignalSet& signals, bool is_killable) {
  RecordEnd end;
  if (is_killable) signals.let_next_one_kill();
  end.is_written = finish_raw_log(outputs.raw_log.get());
  end.is_written =
      report(options, run.figures, outputs.files, outputs.chunks.half_written()) && end.is_written;
  if (outputs.upload != nullptr) {
    signals.hold_again();
    end.sent = outputs.upload->finish(signals.fd(), run.reason == recorder::StopReason::Signal);
    run.figures.uploads = end.sent.figures;
    if (is_killable) {
      end.taken = signals.take();
      signals.let_next_one_kill();
    }
  }
  end.is_written = write_summary_of(options, run.figures, outputs.files) && end.is_written;
  return end;
}

void give_up(RecordUpload* upload, const os::SignalSet& signals, const Error& error) {
  complain(error.message);
  if (upload != nullptr) upload->finish(signals.fd(), true);
}

}  // namespace sentry_prof::cli
