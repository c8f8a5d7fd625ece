// A kernel setting that is changed for the length of a test.
#pragma once

#include <string>

#include <sys/types.h>

namespace sentry_prof::testing {

// Writes `value` to a file below /proc/sys. The old value comes back with the destructor, and also
// if this process is killed: a process of its own session waits for that.
class SysctlGuard {
 public:
  SysctlGuard(const std::string& path, const std::string& value);
  ~SysctlGuard();
  SysctlGuard(const SysctlGuard&) = delete;
  SysctlGuard& operator=(const SysctlGuard&) = delete;

  // Whether the setting has the wanted value now.
  bool is_set() const { return is_set_; }

 private:
  pid_t keeper_ = -1;
  int keeper_waits_for_ = -1;
  bool is_set_ = false;
};

}  // namespace sentry_prof::testing
