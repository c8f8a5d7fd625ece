// Unwind information, stacks and address spaces made by hand, for tests of the walk.
#pragma once

#include "unwind/module_map.h"
#include "unwind/row.h"
#include "unwind/stack_snapshot.h"

#include <array>
#include <bitset>
#include <initializer_list>
#include <map>
#include <vector>

namespace sentry_prof::test {

// Rows by address, as a test states them. What no row covers has NoCfi.
class FakeCfi final : public unwind::CfiSource {
 public:
  // The row holds for [begin, end); its own begin and end are set to that.
  void add(uint64_t begin, uint64_t end, unwind::Row row) {
    row.begin = {begin};
    row.end = {end};
    answers_[begin] = {end, unwind::RowStatus::Found, row};
  }
  void add(uint64_t begin, uint64_t end, unwind::RowStatus status, uint32_t work = 0) {
    answers_[begin] = {end, status, {}};
    answers_[begin].row.work = work;
  }

  unwind::RowStatus row_at(LinkAddress pc, unwind::Row& row) const override {
    ++lookups_;
    auto after = answers_.upper_bound(pc.value);
    if (after == answers_.begin()) return unwind::RowStatus::NoCfi;
    const Answer& answer = (--after)->second;
    if (pc.value >= answer.end) return unwind::RowStatus::NoCfi;
    const uint32_t work = row.work + answer.row.work;
    if (answer.status == unwind::RowStatus::Found) row = answer.row;
    row.work = work;
    return answer.status;
  }

  bool has_frame_pointers(LinkAddress pc) const override {
    return pc.value >= framed_begin && pc.value < framed_end;
  }

  int lookups() const { return lookups_; }

  uint64_t framed_begin = 0, framed_end = 0;

 private:
  struct Answer {
    uint64_t end;
    unwind::RowStatus status;
    unwind::Row row;
  };
  std::map<uint64_t, Answer> answers_;
  mutable int lookups_ = 0;
};

// Code at link addresses, as a test states it; what it does not state cannot be read.
class FakeCode final : public unwind::CodeSource {
 public:
  void put(uint64_t begin, const std::vector<int>& bytes) {
    for (int byte : bytes) {
      Page& page = pages_[begin / kPage_bytes];
      page.bytes[begin % kPage_bytes] = static_cast<std::byte>(byte);
      page.are_known[begin++ % kPage_bytes] = true;
    }
  }
  // A direct call, so that it returns to `return_address`.
  void put_call(uint64_t return_address, uint64_t target) {
    const auto offset = static_cast<uint32_t>(target - return_address);
    put(return_address - 7, {0x90, 0x90, 0xe8});
    for (unsigned i = 0; i < 4; ++i) put(return_address - 4 + i, {int((offset >> (8 * i)) & 0xff)});
  }

  bool read_code(LinkAddress begin, std::span<std::byte> out) const override {
    ++reads_;
    if (is_silent) {
      ++unanswered_;
      return false;
    }
    auto page = pages_.end();
    for (std::byte& byte : out) {
      const uint64_t place = begin.value++ % kPage_bytes;
      if (page == pages_.end() || place == 0) page = pages_.find((begin.value - 1) / kPage_bytes);
      if (page == pages_.end() || !page->second.are_known[place]) return false;
      byte = page->second.bytes[place];
    }
    return true;
  }

  LinkAddress entry_point() const override { return entry; }
  uint64_t address_space() const override { return space; }
  uint32_t unanswered_reads() const override { return unanswered_; }

  int reads() const { return reads_; }

  LinkAddress entry;
  uint64_t space = 0;
  bool is_silent = false;  // nobody answers for now

 private:
  static constexpr uint64_t kPage_bytes = 4096;
  struct Page {
    std::array<std::byte, kPage_bytes> bytes{};
    std::bitset<kPage_bytes> are_known;
  };
  std::map<uint64_t, Page> pages_;
  mutable int reads_ = 0;
  mutable uint32_t unanswered_ = 0;
};

// DWARF numbers of x86-64, as the tests name them.
inline constexpr unsigned kRax = 0, kRbx = 3, kRdi = 5, kRbp = 6, kRsp = 7, kR10 = 10, kRip = 16;

// CFA = reg + offset, return address at CFA - 8: what every x86-64 function has at least.
inline unwind::Row row_with_cfa(unsigned reg, int64_t offset) {
  unwind::Row row;
  row.cfa_kind = unwind::CfaKind::RegisterOffset;
  row.cfa_register = static_cast<uint16_t>(reg);
  row.cfa_offset = offset;
  row.return_address_register = kRip;
  row.rules[kRip] = {.kind = unwind::RuleKind::AtCfaOffset, .offset = -8};
  return row;
}

inline unwind::Row saving(unwind::Row row, unsigned reg, int64_t offset_from_cfa) {
  row.rules[reg] = {.kind = unwind::RuleKind::AtCfaOffset, .offset = offset_from_cfa};
  return row;
}

inline unwind::Row root_row() {
  unwind::Row row = row_with_cfa(kRsp, 8);
  row.rules[kRip] = {.kind = unwind::RuleKind::Undefined};
  return row;
}

// An expression that lives as long as the object.
class Expression {
 public:
  Expression(std::initializer_list<int> bytes) {
    for (int byte : bytes) bytes_.push_back(static_cast<std::byte>(byte));
  }
  operator Bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Words from `begin` upward.
class FakeStack {
 public:
  FakeStack(uint64_t begin, std::vector<uint64_t> words)
      : begin_(begin), words_(std::move(words)) {}
  operator unwind::StackSnapshot() const {
    return {RuntimeAddress{begin_}, std::as_bytes(std::span(words_))};
  }

 private:
  uint64_t begin_;
  std::vector<uint64_t> words_;
};

inline unwind::Registers registers_at(uint64_t pc, uint64_t sp, uint64_t fp) {
  unwind::Registers registers;
  registers.set(kRip, pc);
  registers.set(kRsp, sp);
  registers.set(kRbp, fp);
  return registers;
}

}  // namespace sentry_prof::test
