#include "recorder/stack_reading.h"

#include <algorithm>

namespace sentry_prof::recorder {

void StackReading::restart(const Thread& thread) {
  thread_ = thread;
  read_time_ns_ = 0;
  size_bytes_ = 0;
  pieces_.clear();
  words_ = {};
}

void StackReading::release() {
  restart({});
  buffer_ = std::vector<std::byte>();  // and its capacity
}

void StackReading::take_room_of(StackReading& other) {
  other.restart({});
  buffer_.swap(other.buffer_);
}

size_t StackReading::read_piece(const ReadMemory& read, const MemoryRequest& request,
                                const StackRange& piece, const StackRange& words) {
  if (buffer_.size() < size_bytes_ + piece.size_bytes) {
    buffer_.reserve(size_bytes_ + piece.size_bytes);  // not twice as much
    buffer_.resize(size_bytes_ + piece.size_bytes);
    place_pieces();
  }
  words_now_.resize(words.size_bytes);
  std::array<os::MemoryRange, 2> ranges{
      {{piece.begin.value, std::span(buffer_).subspan(size_bytes_, piece.size_bytes)},
       {words.begin.value, words_now_}}};
  const uint64_t time_ns = read(request, std::span(ranges).first(words.size_bytes > 0 ? 2 : 1));
  words_ = ranges[1].got_bytes == words.size_bytes ? words : StackRange();
  const size_t got = ranges[0].got_bytes;
  if (got == 0) return 0;
  read_time_ns_ = time_ns;
  add_piece(piece.begin, got);
  return got;
}

void StackReading::add_piece(RuntimeAddress begin, size_t size_bytes) {
  const bool goes_on = !pieces_.empty() && pieces_.back().end() == begin.value;
  const Bytes bytes = std::span(buffer_).subspan(size_bytes_, size_bytes);
  size_bytes_ += size_bytes;
  if (goes_on) {
    pieces_.back().bytes = {pieces_.back().bytes.data(), pieces_.back().bytes.size() + size_bytes};
  } else {
    pieces_.push_back({begin, bytes});
  }
}

// The buffer may have moved.
void StackReading::place_pieces() {
  size_t begin = 0;
  for (Piece& piece : pieces_) {
    piece.bytes = std::span(buffer_).subspan(begin, piece.bytes.size());
    begin += piece.bytes.size();
  }
}

StackReading& StackReadings::of(const StackReading::Thread& thread) {
  StackReading& found = oldest_or_of(thread);
  if (found.thread() != thread) found.restart(thread);
  while (held_bytes() - found.held_bytes() > kMaxLiveStack_bytes) make_room_for(found);
  return found;
}

// An empty one takes the room of another: new pages would cost as much as reading.
void StackReadings::make_room_for(StackReading& reading) {
  StackReading* largest = nullptr;
  for (StackReading& other : readings_) {
    if (&other == &reading) continue;
    if (largest == nullptr || other.held_bytes() > largest->held_bytes()) largest = &other;
  }
  const bool may_take = reading.pieces().empty() && reading.held_bytes() < largest->held_bytes();
  if (may_take) {
    reading.take_room_of(*largest);
  } else {
    largest->release();
  }
}

StackReading& StackReadings::oldest_or_of(const StackReading::Thread& thread) {
  const auto same = std::ranges::find(readings_, thread, &StackReading::thread);
  if (same != readings_.end()) return *same;
  return *std::ranges::min_element(readings_, {}, &StackReading::read_time_ns);
}

void StackReadings::end_batch() {
  for (StackReading& reading : readings_) reading.restart({});
}

size_t StackReadings::held_bytes() const {
  size_t held_bytes = 0;
  for (const StackReading& reading : readings_) held_bytes += reading.held_bytes();
  return held_bytes;
}

}  // namespace sentry_prof::recorder
