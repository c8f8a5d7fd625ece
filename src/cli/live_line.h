// One line on a terminal that follows a recording; nothing in a pipe.
#pragma once

#include "recorder/recorder.h"

namespace sentry_prof::cli {

class LiveLine {
 public:
  explicit LiveLine(bool is_wanted);
  ~LiveLine() { clear(); }

  // Redraws a few times a second, however often it is called.
  void show(const recorder::Progress& progress);
  void clear();

 private:
  bool is_shown_;
  bool is_drawn_ = false;
  double last_drawn_s_ = -1;
};

}  // namespace sentry_prof::cli
