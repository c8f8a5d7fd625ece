#include "sampling/outer_stacks.h"

#include "os/errors.h"
#include "os/privileges.h"
#include "sampling/outer_stack_program.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sentry_prof::sampling {
namespace {

// Fifteen stacks of the largest size: what one thread has in 15 ms at 997 Hz, or two in 75 ms at
// 101 Hz, where the rings are looked at every 10 ms (PollPace). Its pages count as our memory, once
// it is needed. What finds no room is read from the process, as without.
constexpr size_t kMinOuterRing_bytes = 4u << 20;
// For larger machines, where more threads with deep stacks may run at a time. The kernel takes it
// all at once.
constexpr size_t kOuterRingPerCpu_bytes = 1u << 20;
constexpr size_t kMaxOuterRing_bytes = 16u << 20;
// As many threads of processes with deep stacks as are likely to run at a time; the least used one
// gives way.
constexpr uint32_t kMaxThreads = 1024;
// PROC_PID_INIT_INO of include/linux/proc_ns.h. Programs are told the first namespace's ids.
constexpr uint64_t kFirstPidNamespace = 0xeffffffc;
// The helpers that read memory are the kernel's own interface, which is under the GPL; this program
// is under both licenses.
constexpr const char* kLicense = "Dual MIT/GPL";

int bpf(bpf_cmd command, bpf_attr& attr) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attr, sizeof(attr)));
}

// The kernel wants what an attribute does not use to be zero.
bpf_attr empty_attr() {
  bpf_attr attr;
  std::memset(&attr, 0, sizeof(attr));
  return attr;
}

uint64_t address_of(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

os::Fd create_map(bpf_map_type type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries) {
  bpf_attr attr = empty_attr();
  attr.map_type = type;
  attr.key_size = key_bytes;
  attr.value_size = value_bytes;
  attr.max_entries = entries;
  return os::Fd(bpf(BPF_MAP_CREATE, attr));
}

os::Fd load_program(const std::vector<bpf_insn>& code) {
  bpf_attr attr = empty_attr();
  attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
  attr.insns = address_of(code.data());
  attr.insn_cnt = static_cast<uint32_t>(code.size());
  attr.license = address_of(kLicense);
  return os::Fd(bpf(BPF_PROG_LOAD, attr));
}

tl::unexpected<Error> refused(const char* what) {
  const int error_number = errno;
  const bool is_forbidden = error_number == EPERM || error_number == EACCES;
  const bool has_rights = os::has_capability(os::kCapSysAdmin) ||
                          (os::has_capability(os::kCapBpf) && os::has_capability(os::kCapPerfmon));
  if (is_forbidden && !has_rights) {
    return fail(ErrorCode::PermissionDenied, "that takes root, or CAP_BPF and CAP_PERFMON");
  }
  if (error_number == EINVAL) {
    return fail(ErrorCode::Unsupported, "that takes Linux 5.15 or newer, with BTF");
  }
  return os::fail_with_errno(error_number, what);
}

bool is_in_first_pid_namespace() {
  struct stat status = {};
  return ::stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == kFirstPidNamespace;
}

size_t ring_bytes_for(size_t cpus) {
  const size_t wanted_bytes = std::bit_ceil(cpus) * kOuterRingPerCpu_bytes;
  return std::clamp(wanted_bytes, kMinOuterRing_bytes, kMaxOuterRing_bytes);
}

std::atomic_ref<uint64_t> position_in(std::byte* page) {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(page));
}

}  // namespace

Result<std::unique_ptr<OuterStacks>> OuterStacks::create(uint32_t frequency_hz, size_t cpus) {
  if (!is_in_first_pid_namespace()) {
    return fail(ErrorCode::Unsupported, "not in a container that has process ids of its own");
  }
  if (::sysconf(_SC_PAGESIZE) != long{kOuterPage_bytes}) {
    return fail(ErrorCode::Unsupported, "for pages of 4 KiB only");
  }
  std::unique_ptr<OuterStacks> made(new OuterStacks());
  made->ring_bytes_ = ring_bytes_for(cpus);
  made->max_copying_ns_ = max_copying_ns(frequency_hz);
  made->threads_ =
      create_map(BPF_MAP_TYPE_LRU_HASH, sizeof(uint32_t), sizeof(uint64_t), kMaxThreads);
  if (!made->threads_.is_open()) return refused("a BPF map");
  made->ring_map_ =
      create_map(BPF_MAP_TYPE_RINGBUF, 0, 0, static_cast<uint32_t>(made->ring_bytes_));
  if (!made->ring_map_.is_open()) return refused("a BPF ring buffer");
  made->program_ = load_program(outer_stack_program(made->threads_.get(), made->ring_map_.get()));
  if (!made->program_.is_open()) return refused("a BPF program");
  return made;
}

OuterStacks::~OuterStacks() {
  if (consumer_page_ != nullptr) ::munmap(consumer_page_, kOuterPage_bytes);
  if (producer_page_ != nullptr) ::munmap(producer_page_, kOuterPage_bytes + ring_bytes_);
}

bool OuterStacks::attach(int event_fd) const {
  return ::ioctl(event_fd, PERF_EVENT_IOC_SET_BPF, program_.get()) == 0;
}

void OuterStacks::follow(uint32_t pid, uint32_t tid, uint64_t stack_end) {
  if (!map_ring()) return;
  set_stack_end(key_of_process(pid), 0);
  set_stack_end(tid, stack_end);
}

void OuterStacks::set_stack_end(uint32_t key, uint64_t stack_end) const {
  bpf_attr attr = empty_attr();
  attr.map_fd = static_cast<uint32_t>(threads_.get());
  attr.key = address_of(&key);
  attr.value = address_of(&stack_end);
  attr.flags = BPF_ANY;
  bpf(BPF_MAP_UPDATE_ELEM, attr);
}

// Not before it is needed: its pages count as this process's memory. (The kernel would map the
// bytes twice, one behind the other, so that a record need not be put together; that counts twice.)
bool OuterStacks::map_ring() {
  if (ring_ || is_refused_) return ring_ != nullptr;
  const auto map = [&](size_t size, int protection, size_t offset) {
    void* const place =
        ::mmap(nullptr, size, protection, MAP_SHARED, ring_map_.get(), static_cast<off_t>(offset));
    return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
  };
  consumer_page_ = map(kOuterPage_bytes, PROT_READ | PROT_WRITE, 0);
  producer_page_ = map(kOuterPage_bytes + ring_bytes_, PROT_READ, kOuterPage_bytes);
  is_refused_ = consumer_page_ == nullptr || producer_page_ == nullptr;
  if (is_refused_) return false;
  ring_ = std::make_unique<OuterStackRing>(Bytes(producer_page_ + kOuterPage_bytes, ring_bytes_),
                                           max_copying_ns_);
  return true;
}

void OuterStacks::look() {
  if (!ring_) return;
  const uint64_t producer = position_in(producer_page_).load(std::memory_order_acquire);
  ring_->look(position_in(consumer_page_).load(std::memory_order_relaxed), producer);
}

void OuterStacks::release_before(uint64_t time_ns) {
  if (!ring_) return;
  position_in(consumer_page_).store(ring_->forget_before(time_ns), std::memory_order_release);
}

}  // namespace sentry_prof::sampling
