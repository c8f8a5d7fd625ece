#include "cli/live_line.h"

#include "cli/message.h"

#include <fmt/format.h>
#include <unistd.h>

namespace sentry_prof::cli {

namespace {
constexpr double kRedraw_s = 0.25;
}

LiveLine::LiveLine(bool is_wanted) : is_shown_(is_wanted && ::isatty(STDERR_FILENO) == 1) {}

void LiveLine::show(const recorder::Progress& progress) {
  if (!is_shown_ || progress.elapsed_s - last_drawn_s_ < kRedraw_s) return;
  last_drawn_s_ = progress.elapsed_s;
  is_drawn_ = true;
  const double rate =
      progress.elapsed_s > 0 ? static_cast<double>(progress.samples) / progress.elapsed_s : 0;
  print(fmt::format("\r\x1b[K{:.1f} s  {} samples  {:.0f}/s  {} threads  {} lost",
                    progress.elapsed_s, progress.samples, rate, progress.threads, progress.lost));
}

void LiveLine::clear() {
  if (!is_drawn_) return;
  is_drawn_ = false;
  print("\r\x1b[K");
}

}  // namespace sentry_prof::cli
