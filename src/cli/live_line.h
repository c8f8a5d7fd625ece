// One line on a terminal that follows a recording; nothing in a pipe.
#pragma once

#include "recorder/recorder.h"

#include <string>

namespace sentry_prof::cli {

// What the line says, at most `columns` characters of it (0: all).
std::string live_text(const recorder::Progress& progress, unsigned columns);

class LiveLine {
 public:
  static constexpr int kNoCommand = -1;
  // `command_pid`: a launched command. While its standard output or error is our terminal, that
  // belongs to the command and nothing is drawn: two writers would garble each other's lines.
  explicit LiveLine(bool is_wanted, int command_pid = kNoCommand);
  ~LiveLine() { clear(); }

  // Redraws a few times a second, however often it is called.
  void show(const recorder::Progress& progress);
  void clear();

 private:
  bool may_draw() const;

  bool is_shown_;
  int command_pid_;
  double last_drawn_s_ = -1;
};

}  // namespace sentry_prof::cli
