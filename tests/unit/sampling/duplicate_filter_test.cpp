#include "sampling/duplicate_filter.h"

#include "support/catch2.h"

using sentry_prof::sampling::DuplicateFilter;

namespace {

constexpr uint64_t kParentEvent = 100, kLateEvent = 200;
constexpr uint32_t kLateThread = 11, kChild = 12;

DuplicateFilter filter_with_late_thread() {
  DuplicateFilter filter;
  filter.add_late_event(kLateThread, 0, kLateEvent);
  return filter;
}

bool is_kept(DuplicateFilter& filter, uint32_t tid, uint32_t cpu, uint64_t identifier) {
  const auto verdict = filter.judge(tid, cpu, identifier);
  return !verdict.is_duplicate && !verdict.superfluous_event;
}

}  // namespace

TEST_CASE("without late threads every sample is kept") {
  DuplicateFilter filter;
  CHECK(is_kept(filter, 1, 0, 5));
  CHECK(is_kept(filter, 1, 0, 6));
}

TEST_CASE("a late thread that inherited nothing keeps its own event") {
  DuplicateFilter filter = filter_with_late_thread();
  CHECK(is_kept(filter, kLateThread, 0, kLateEvent));
  CHECK(is_kept(filter, kLateThread, 0, kLateEvent));
}

TEST_CASE("a sample of an inherited event makes the thread's own event superfluous, once") {
  DuplicateFilter filter = filter_with_late_thread();
  const auto verdict = filter.judge(kLateThread, 0, kParentEvent);
  CHECK_FALSE(verdict.is_duplicate);
  CHECK(verdict.superfluous_event == kLateEvent);
  CHECK(is_kept(filter, kLateThread, 0, kParentEvent));
}

TEST_CASE("samples of a superfluous event that are still in the rings are duplicates") {
  DuplicateFilter filter = filter_with_late_thread();
  filter.judge(kLateThread, 0, kParentEvent);
  CHECK(filter.judge(kLateThread, 0, kLateEvent).is_duplicate);
  CHECK(filter.judge(kChild, 0, kLateEvent).is_duplicate);
  CHECK(is_kept(filter, kChild, 0, kParentEvent));
}

TEST_CASE("an event inherited on one CPU says nothing of another CPU") {
  DuplicateFilter filter = filter_with_late_thread();
  filter.add_late_event(kLateThread, 1, kLateEvent + 1);
  CHECK(filter.judge(kLateThread, 0, kParentEvent).superfluous_event == kLateEvent);
  CHECK(is_kept(filter, kLateThread, 1, kLateEvent + 1));
}

TEST_CASE("a child that inherited both events of a late thread tells it, too") {
  DuplicateFilter filter = filter_with_late_thread();
  CHECK(is_kept(filter, kChild, 0, kLateEvent));
  CHECK(filter.judge(kChild, 0, kParentEvent).superfluous_event == kLateEvent);
}

TEST_CASE("a late child of a late thread is sampled once") {
  constexpr uint64_t kChildEvent = 300;
  for (const bool own_comes_first : {true, false}) {
    CAPTURE(own_comes_first);
    DuplicateFilter filter = filter_with_late_thread();
    filter.add_late_event(kChild, 0, kChildEvent);
    if (own_comes_first) CHECK(is_kept(filter, kChild, 0, kChildEvent));
    const auto verdict = filter.judge(kChild, 0, kLateEvent);
    CHECK_FALSE(verdict.is_duplicate);
    CHECK(verdict.superfluous_event == kChildEvent);
    CHECK(filter.judge(kChild, 0, kChildEvent).is_duplicate);
    CHECK(is_kept(filter, kChild, 0, kLateEvent));
    CHECK(is_kept(filter, kLateThread, 0, kLateEvent));
  }
}

TEST_CASE("who inherited the events of two late threads is sampled by the older one") {
  constexpr uint64_t kChildEvent = 300;
  constexpr uint32_t kGrandchild = 13;
  for (const bool older_comes_first : {true, false}) {
    CAPTURE(older_comes_first);
    DuplicateFilter filter = filter_with_late_thread();
    filter.add_late_event(kChild, 0, kChildEvent);
    const uint64_t first = older_comes_first ? kLateEvent : kChildEvent;
    const uint64_t second = older_comes_first ? kChildEvent : kLateEvent;
    CHECK(is_kept(filter, kGrandchild, 0, first));
    const auto verdict = filter.judge(kGrandchild, 0, second);
    CHECK(verdict.is_duplicate == older_comes_first);
    CHECK(verdict.superfluous_event == kChildEvent);
    CHECK(filter.judge(kChild, 0, kChildEvent).is_duplicate);
    CHECK(is_kept(filter, kGrandchild, 0, kLateEvent));
  }
}

TEST_CASE("a thread number that is given away again is no evidence") {
  DuplicateFilter filter = filter_with_late_thread();
  filter.forget_thread(kLateThread);
  CHECK(is_kept(filter, kLateThread, 0, kParentEvent));
  CHECK(is_kept(filter, kChild, 0, kLateEvent));
}

TEST_CASE("a thread that is born with a number whose end no record told is not the one before") {
  DuplicateFilter filter = filter_with_late_thread();
  CHECK(is_kept(filter, kChild, 0, kLateEvent));
  filter.note_birth(kChild);
  CHECK(is_kept(filter, kChild, 0, kParentEvent));
  CHECK(is_kept(filter, kLateThread, 0, kLateEvent));
}

TEST_CASE("a late thread's own birth, told when it is sampled already, forgets nothing") {
  DuplicateFilter filter = filter_with_late_thread();
  filter.note_birth(kLateThread);
  CHECK(filter.judge(kLateThread, 0, kParentEvent).superfluous_event == kLateEvent);
  filter.note_birth(kLateThread);  // another thread's
  CHECK(is_kept(filter, kLateThread, 0, kParentEvent));
}
