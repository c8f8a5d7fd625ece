// A BPF ring buffer of any bytes at any positions: the look must end, every piece lie in the ring,
// and no more be given back than was written.
#include "fuzz/require.h"
#include "sampling/outer_stack_ring.h"

#include <vector>

using namespace sentry_prof;
using namespace sentry_prof::sampling;
using fuzz::require;

namespace {

constexpr size_t kFuzzedRing_bytes = 64 * 1024;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader in(std::as_bytes(std::span(data, size)));
  const uint64_t consumer = in.u64();
  const uint64_t producer = consumer + in.u32() % (kFuzzedRing_bytes + 64);
  const uint32_t tid = in.u32();
  const uint64_t stack_pointer = in.u64();
  const uint64_t pc = in.u64();
  const uint64_t time_ns = in.u64();
  // Most of a block is what was copied, and does not matter: small inputs stand at its begin.
  const Bytes rest = in.bytes(in.remaining());
  std::vector<std::byte> memory(kFuzzedRing_bytes);
  for (size_t i = 0; i < rest.size() && i < memory.size(); ++i) memory[i] = rest[i];

  OuterStackRing ring(memory, kMaxCopying_ns);
  ring.look(consumer, producer);
  size_t total_bytes = 0;
  for (const StackPiece& piece : ring.pieces_of({tid, stack_pointer, pc, time_ns})) {
    require(piece.bytes.data() >= memory.data() &&
            piece.bytes.data() + piece.bytes.size() <= memory.data() + memory.size());
    total_bytes += piece.bytes.size();
  }
  require(total_bytes <= memory.size());
  for (const uint64_t time : {uint64_t{0}, time_ns, UINT64_MAX}) {
    const uint64_t consumed = ring.forget_before(time);
    require(consumed - consumer <= producer - consumer);
  }
  return 0;
}
