#include "cli/record_end.h"

#include "cli/message.h"
#include "cli/run_report.h"

namespace sentry_prof::cli {

namespace {

// False if it could not be written.
bool finish_raw_log(recorder::RawLogWriter* raw_log) {
  if (raw_log == nullptr) return true;
  const auto ok = raw_log->commit();
  if (!ok) complain(ok.error().message);
  return ok.has_value();
}

}  // namespace

RecordEnd leave(const ProfileOptions& options, recorder::RunResult& run,
                const RecordOutputs& outputs, const os::SignalSet& signals, bool is_killable,
                const std::function<void()>& on_tick) {
  RecordEnd end;
  if (is_killable) signals.let_next_one_kill();
  end.is_written = finish_raw_log(outputs.raw_log.get());
  end.is_written =
      report(options, run.figures, outputs.files, outputs.chunks.half_written()) && end.is_written;
  if (outputs.upload != nullptr) {
    signals.hold_again();
    end.sent = outputs.upload->finish(signals.fd(), run.was_end_asked_for, on_tick);
    run.figures.uploads = end.sent.figures;
    if (is_killable) {
      end.taken = signals.take();
      signals.let_next_one_kill();
    }
  }
  end.is_written = write_summary(options, run.figures, outputs.files) && end.is_written;
  return end;
}

void give_up(RecordUpload* upload, const os::SignalSet& signals, const Error& error) {
  complain(error.message);
  if (upload != nullptr) upload->finish(signals.fd(), true, {});
}

}  // namespace sentry_prof::cli
