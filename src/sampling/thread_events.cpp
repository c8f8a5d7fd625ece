#include "sampling/thread_events.h"

#include "sampling/perf_open.h"

#include <cerrno>
#include <cstddef>

#include <sys/ioctl.h>
#include <unistd.h>

namespace sentry_prof::sampling {
namespace {

void add_count(const os::Fd& event, EventTotals& totals) {
  EventCount count{};
  const ssize_t size_bytes = ::read(event.get(), &count, sizeof count);
  if (size_bytes >= static_cast<ssize_t>(offsetof(EventCount, lost))) {
    totals.on_cpu_ns += count.time_running_ns;
  }
  // read(2) gives less where the kernel does not count losses.
  if (size_bytes == sizeof count) totals.lost = totals.lost.value_or(0) + count.lost;
}

}  // namespace

// Records between opening and redirecting are lost in silence. What they would have told of this
// process is read from /proc after the attach, and threads that they announced are found by the
// next pass. But of a process that is forked in these microseconds the FORK record is missing: only
// its samples tell of it, and its maps have to be read then. Likewise a thread that is born before
// the event has its BPF program is without it for its life: its deep stacks count as missed.
// (PERF_FLAG_FD_OUTPUT would save the second call; the manual page calls it broken.)
int ThreadEvents::open_redirected(pid_t tid, const PerfRing& ring, const perf_event_attr& attr,
                                  std::vector<os::Fd>& events) {
  if (side_band_.size() + sampling_.size() >= limit_) return EMFILE;
  os::Fd event = open_event(attr, tid, ring.cpu());
  if (!event.is_open()) return errno;
  if (::ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, ring.fd()) != 0) return errno;
  events.push_back(std::move(event));
  return 0;
}

int ThreadEvents::open_on_ring(pid_t tid, const PerfRing& ring, const ThreadAttrs& attrs) {
  // The side band first: who has inherited a sampling event has inherited its side band then.
  int error_number = 0;
  if (attrs.side_band) error_number = open_redirected(tid, ring, *attrs.side_band, side_band_);
  if (error_number == 0) error_number = open_redirected(tid, ring, attrs.sampling, sampling_);
  if (error_number == 0 && attrs.outer_stacks != nullptr) {
    attrs.outer_stacks->attach(sampling_.back().get());  // as at an event of ours, which was tried
  }
  return error_number;
}

int ThreadEvents::open_thread(pid_t tid, const ThreadAttrs& attrs,
                              const OnLateEvent& on_late_event) {
  const size_t side_band_before = side_band_.size(), sampling_before = sampling_.size();
  std::vector<NewEvent> opened;
  for (const PerfRing& ring : rings_) {
    const int error_number = open_on_ring(tid, ring, attrs);
    if (error_number == 0) opened.push_back(newest_event(ring, attrs));
    if (error_number == 0 || error_number == ENODEV) continue;  // ENODEV: the CPU went offline
    side_band_.resize(side_band_before);
    sampling_.resize(sampling_before);
    return error_number;
  }
  // Only now, since a failure would give the places of these events to those of the next thread.
  if (on_late_event) remember_late(tid, opened, on_late_event);
  return 0;
}

ThreadEvents::NewEvent ThreadEvents::newest_event(const PerfRing& ring,
                                                  const ThreadAttrs& attrs) const {
  NewEvent event{ring.cpu(), {sampling_.size() - 1, std::nullopt}};
  if (attrs.side_band) event.places.side_band_index = side_band_.size() - 1;
  return event;
}

void ThreadEvents::remember_late(pid_t tid, std::span<const NewEvent> events,
                                 const OnLateEvent& on_late_event) {
  for (const NewEvent& event : events) {
    const int fd = sampling_[event.places.sampling_index].get();
    uint64_t identifier = 0;
    if (::ioctl(fd, PERF_EVENT_IOC_ID, &identifier) != 0) continue;
    late_events_[identifier] = event.places;
    on_late_event(static_cast<uint32_t>(tid), static_cast<uint32_t>(event.cpu), identifier);
  }
}

void ThreadEvents::close_late_event(uint64_t identifier) {
  const auto late = late_events_.find(identifier);
  if (late == late_events_.end()) return;
  const EventPlaces event = late->second;
  late_events_.erase(late);
  if (event.sampling_index < sampling_.size()) {
    EventTotals closed;
    add_count(sampling_[event.sampling_index], closed);
    lost_by_closed_ += closed.lost.value_or(0);
    sampling_[event.sampling_index].reset();
  }
  if (event.side_band_index && *event.side_band_index < side_band_.size()) {
    side_band_[*event.side_band_index].reset();
  }
}

EventTotals ThreadEvents::end_and_read() {
  EventTotals totals;
  for (const os::Fd& event : sampling_) {
    if (!event.is_open()) continue;
    ::ioctl(event.get(), PERF_EVENT_IOC_DISABLE, 0);
    add_count(event, totals);
  }
  if (totals.lost) *totals.lost += lost_by_closed_;
  return totals;
}

}  // namespace sentry_prof::sampling
