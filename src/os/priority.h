// Scheduling priority of the calling thread.
#pragma once

namespace sentry_prof::os {

// While it lives the calling thread runs before all normal ones, where that is permitted (root or
// CAP_SYS_NICE); else it changes nothing. Measured with 320 runnable threads on two CPUs: without
// it attaching takes seconds and rings overflow. Threads and children started meanwhile inherit it.
class RaisedPriority {
 public:
  RaisedPriority();
  RaisedPriority(const RaisedPriority&) = delete;
  RaisedPriority& operator=(const RaisedPriority&) = delete;
  ~RaisedPriority();

  int previous() const { return previous_; }

 private:
  int previous_;
};

// Gives the calling thread this nice value, if permitted.
void set_thread_nice(int nice);

}  // namespace sentry_prof::os
