#include "os/priority.h"

#include <cstdint>
#include <optional>

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::os {

namespace {

constexpr int kHighest = -20;
constexpr int kCallingThread = 0;

// struct sched_attr of <linux/sched/types.h>, SCHED_ATTR_SIZE_VER0. Debian 12's header cannot be
// included together with <sched.h>, and its glibc has neither the struct nor the calls.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

// Of a normal thread.
std::optional<SchedulingAttributes> read_attributes() {
  SchedulingAttributes attributes;
  const auto got = ::syscall(SYS_sched_getattr, kCallingThread, &attributes, sizeof(attributes), 0);
  const bool is_normal = attributes.policy == SCHED_OTHER || attributes.policy == SCHED_BATCH;
  return got == 0 && is_normal ? std::optional(attributes) : std::nullopt;
}

}  // namespace

ThreadPriority thread_priority() {
  const auto attributes = read_attributes();
  if (!attributes) return {::getpriority(PRIO_PROCESS, kCallingThread), 0};
  return {attributes->nice, attributes->runtime_ns};
}

void set_thread_priority(const ThreadPriority& priority) {
  // Linux keeps a nice value for each thread. One by one: the slice needs no permission.
  ::setpriority(PRIO_PROCESS, kCallingThread, priority.nice);
  auto attributes = read_attributes();
  if (!attributes) return;
  attributes->runtime_ns = priority.slice_ns;
  ::syscall(SYS_sched_setattr, kCallingThread, &*attributes, 0);
}

RaisedPriority::RaisedPriority() : previous_(thread_priority()) {
  set_thread_priority({kHighest, kSlice_ns});
}

RaisedPriority::~RaisedPriority() { set_thread_priority(previous_); }

}  // namespace sentry_prof::os
