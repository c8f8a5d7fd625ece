#include "cli/live_line.h"

#include "base/counted.h"
#include "cli/message.h"
#include "os/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {
constexpr double kRedraw_s = 0.25;
}

std::string live_text(const recorder::Progress& progress, unsigned columns) {
  const double rate =
      progress.elapsed_s > 0 ? static_cast<double>(progress.samples) / progress.elapsed_s : 0;
  std::string text = fmt::format("{:.1f} s  {}  {:.0f}/s  {}  {} lost", progress.elapsed_s,
                                 counted(progress.samples, "sample"), rate,
                                 counted(progress.threads, "thread"), progress.lost);
  // The last column stays free: a line that is full may wrap, and could not be erased.
  if (columns > 0 && text.size() >= columns) text.resize(columns - 1);
  return text;
}

LiveLine::LiveLine(bool is_wanted, int command_pid)
    : is_shown_(is_wanted && os::is_capable_terminal(STDERR_FILENO)), command_pid_(command_pid) {}

bool LiveLine::may_draw() const {
  return os::is_in_foreground(STDERR_FILENO) &&
         (command_pid_ == kNoCommand || !os::shares_terminal(command_pid_, STDERR_FILENO));
}

void LiveLine::show(const recorder::Progress& progress) {
  if (!is_shown_ || progress.elapsed_s - last_drawn_s_ < kRedraw_s) return;
  last_drawn_s_ = progress.elapsed_s;
  if (!may_draw()) {
    forget_line();  // whatever is there now, it is not ours to erase
    return;
  }
  draw_line(live_text(progress, os::terminal_columns(STDERR_FILENO)));
}

void LiveLine::clear() { erase_line(); }

}  // namespace sentry_prof::cli
