#include "unwind/x86_encoding.h"

#include "unwind/byte_set.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace sentry_prof::unwind {
namespace {

constexpr ByteSet kInvalid{{0x06, 0x07}, {0x0e, 0x0e}, {0x16, 0x17}, {0x1e, 0x1f}, {0x27, 0x27},
                           {0x2f, 0x2f}, {0x37, 0x37}, {0x3f, 0x3f}, {0x60, 0x61}, {0x82, 0x82},
                           {0x9a, 0x9a}, {0xce, 0xce}, {0xd4, 0xd6}, {0xea, 0xea}};
constexpr ByteSet kWithModRm{{0x00, 0x03}, {0x08, 0x0b}, {0x10, 0x13}, {0x18, 0x1b}, {0x20, 0x23},
                             {0x28, 0x2b}, {0x30, 0x33}, {0x38, 0x3b}, {0x63, 0x63}, {0x69, 0x69},
                             {0x6b, 0x6b}, {0x80, 0x81}, {0x83, 0x8f}, {0xc0, 0xc1}, {0xc6, 0xc7},
                             {0xd0, 0xd3}, {0xd8, 0xdf}, {0xf6, 0xf7}, {0xfe, 0xff}};
constexpr ByteSet kWithImmediate8{
    {0x04, 0x04}, {0x0c, 0x0c}, {0x14, 0x14}, {0x1c, 0x1c}, {0x24, 0x24}, {0x2c, 0x2c},
    {0x34, 0x34}, {0x3c, 0x3c}, {0x6a, 0x6b}, {0x70, 0x80}, {0x83, 0x83}, {0xa8, 0xa8},
    {0xb0, 0xb7}, {0xc0, 0xc1}, {0xc6, 0xc6}, {0xcd, 0xcd}, {0xe0, 0xe7}, {0xeb, 0xeb}};
// 32 bits; 16 if the operand has so many.
constexpr ByteSet kWithImmediate32{{0x05, 0x05}, {0x0d, 0x0d}, {0x15, 0x15}, {0x1d, 0x1d},
                                   {0x25, 0x25}, {0x2d, 0x2d}, {0x35, 0x35}, {0x3d, 0x3d},
                                   {0x68, 0x69}, {0x81, 0x81}, {0xa9, 0xa9}, {0xc7, 0xc7}};
constexpr ByteSet kInvalidOf0F{{0x04, 0x04}, {0x0a, 0x0a}, {0x0c, 0x0c}, {0x24, 0x27},
                               {0x36, 0x36}, {0x39, 0x39}, {0x3b, 0x3f}};
constexpr ByteSet kWithoutModRmOf0F{{0x05, 0x09}, {0x0b, 0x0b}, {0x0e, 0x0e},
                                    {0x30, 0x37}, {0x77, 0x77}, {0x80, 0x8f},
                                    {0xa0, 0xa2}, {0xa8, 0xaa}, {0xc8, 0xcf}};
constexpr ByteSet kWithImmediate8Of0F{{0x0f, 0x0f}, {0x70, 0x73}, {0xa4, 0xa4}, {0xac, 0xac},
                                      {0xba, 0xba}, {0xc2, 0xc2}, {0xc4, 0xc6}};
constexpr ByteSet kPrefixes{{0x26, 0x26}, {0x2e, 0x2e}, {0x36, 0x36}, {0x3e, 0x3e},
                            {0x40, 0x4f}, {0x64, 0x67}, {0xf0, 0xf0}, {0xf2, 0xf3}};

class Reader {
 public:
  explicit Reader(Bytes code)
      : code_(code.first(std::min(code.size(), kLongestX86Instruction_bytes))),
        reader_(code_, std::endian::little) {}

  std::optional<X86Encoding> run() {
    if (!read_opcode() || !is_valid()) return std::nullopt;
    if (has_mod_rm()) read_mod_rm();
    read_immediate();
    if (!reader_.ok()) return std::nullopt;
    result_.size_bytes = reader_.position();
    return result_;
  }

 private:
  bool read_opcode() {
    const uint8_t byte = read_prefixes();
    switch (byte) {
      case 0x0f:
        read_escaped();
        break;
      case 0xc5: {
        const uint8_t second = reader_.u8();
        read_vector(second | 0x60, 1, second & 0x7f);
        break;
      }
      case 0xc4: {
        const uint8_t second = reader_.u8();
        read_vector(second, second & 0x1f, reader_.u8());
        break;
      }
      case 0x62: {
        const uint8_t second = reader_.u8(), third = reader_.u8();
        reader_.skip(1);
        read_vector(second, second & 7, third);
        break;
      }
      case 0x8f:
        read_pop_or_xop();
        break;
      default:
        result_.opcode = byte;
    }
    return reader_.ok();
  }

  // The byte behind them.
  uint8_t read_prefixes() {
    uint8_t rex = 0;
    uint8_t byte = reader_.u8();
    for (; kPrefixes.has(byte) && reader_.ok(); byte = reader_.u8()) {
      if (byte == 0x66) result_.has_16_bit_operand = true;
      if (byte == 0x67) result_.has_32_bit_address = true;
      if (byte == 0xf2 || byte == 0xf3) result_.is_scalar = true;
      rex = (byte & 0xf0) == 0x40 ? byte : 0;  // counts only as the last one
    }
    result_.has_rex = rex != 0;
    result_.rex_w = (rex & 8) != 0;
    result_.rex_r = (rex & 4) != 0;
    result_.rex_x = (rex & 2) != 0;
    result_.rex_b = (rex & 1) != 0;
    return byte;
  }

  void read_escaped() {
    result_.map = X86Map::Escape0F;
    result_.opcode = reader_.u8();
    if (result_.opcode != 0x38 && result_.opcode != 0x3a) return;
    result_.map = result_.opcode == 0x38 ? X86Map::Escape0F38 : X86Map::Escape0F3A;
    result_.opcode = reader_.u8();
  }

  // XOP has its map where pop has ModR/M, whose middle bits are 0: maps below 8 are pop.
  void read_pop_or_xop() {
    ByteReader ahead = reader_;
    const uint8_t second = ahead.u8();
    result_.opcode = 0x8f;
    if ((second & 0x1f) < 8) return;
    reader_.skip(1);
    read_vector(second, second & 0x1f, reader_.u8());
  }

  // What REX has, inverted; the map; W, the third register, inverted, and what stands for 0x66,
  // 0xf3 and 0xf2.
  void read_vector(uint8_t registers, uint8_t map, uint8_t rest) {
    // Maps 5 and 6 are of the form of 0F38, XOP's 8 and 9 of that of 0F3A and 0F38.
    constexpr X86Map kMaps[] = {X86Map::Other,      X86Map::Escape0F, X86Map::Escape0F38,
                                X86Map::Escape0F3A, X86Map::Other,    X86Map::Escape0F38,
                                X86Map::Escape0F38, X86Map::Other,    X86Map::Escape0F3A,
                                X86Map::Escape0F38};
    result_.is_vector = true;
    result_.map = map < std::size(kMaps) ? kMaps[map] : X86Map::Other;
    result_.rex_r = (registers & 0x80) == 0;
    result_.rex_x = (registers & 0x40) == 0;
    result_.rex_b = (registers & 0x20) == 0;
    result_.vector_reg = ~unsigned{rest} >> 3 & 15;
    result_.is_scalar = (rest & 3) > 1;
    result_.opcode = reader_.u8();
  }

  bool is_valid() const {
    if (result_.map == X86Map::OneByte) return !kInvalid.has(result_.opcode);
    if (result_.map == X86Map::Escape0F)
      return result_.is_vector || !kInvalidOf0F.has(result_.opcode);
    return result_.map != X86Map::Other;
  }

  bool has_mod_rm() const {
    if (result_.map == X86Map::OneByte) return kWithModRm.has(result_.opcode);
    if (result_.map != X86Map::Escape0F) return true;
    return result_.is_vector ? result_.opcode != 0x77 : !kWithoutModRmOf0F.has(result_.opcode);
  }

  void read_mod_rm() {
    const Bytes operand = code_.subspan(reader_.position());
    if (operand.empty()) return reader_.skip(1);  // fails
    const auto mod_rm = std::to_integer<uint8_t>(operand[0]);
    result_.mod = mod_rm >> 6;
    result_.reg = (mod_rm >> 3 & 7u) + (result_.rex_r ? 8 : 0);
    result_.rm = (mod_rm & 7u) + (result_.rex_b ? 8 : 0);
    // Of control and debug registers, it has no memory operand whatever it says.
    const bool is_of_kernel = result_.map == X86Map::Escape0F && (result_.opcode & 0xfc) == 0x20;
    if (is_of_kernel && !result_.is_vector) result_.mod = 3;
    reader_.skip(result_.is_register() ? 1 : x86_operand_bytes(operand));
    if (reader_.ok() && !result_.is_register()) read_memory_operand(operand);
  }

  // `operand` is whole.
  void read_memory_operand(Bytes operand) {
    const bool has_sib = (result_.rm & 7) == 4;
    const bool has_no_base = result_.mod == 0 && (result_.rm & 7) == 5;
    if (!has_sib && !has_no_base) result_.base = result_.rm;
    if (has_sib) result_.base = base_without_index(std::to_integer<uint8_t>(operand[1]));
    if (result_.has_32_bit_address) result_.base.reset();
    ByteReader reader(operand.subspan(has_sib ? 2 : 1), std::endian::little);
    if (result_.mod == 1) result_.displacement = reader.i8();
    if (result_.mod == 2) result_.displacement = reader.i32();
  }

  std::optional<unsigned> base_without_index(uint8_t sib) const {
    const unsigned index = (sib >> 3 & 7u) + (result_.rex_x ? 8 : 0);
    const unsigned base = (sib & 7u) + (result_.rex_b ? 8 : 0);
    if (index != 4 || (result_.mod == 0 && (base & 7) == 5)) return std::nullopt;
    return base;
  }

  void read_immediate() {
    const size_t before = reader_.position();
    reader_.skip(immediate_bytes());
    if (!reader_.ok()) return;
    ByteReader immediate(code_.subspan(before, reader_.position() - before), std::endian::little);
    if (reader_.position() - before == 1) result_.immediate = static_cast<int8_t>(immediate.u8());
    if (reader_.position() - before == 2) result_.immediate = immediate.u16();
    if (reader_.position() - before == 4) result_.immediate = immediate.i32();
  }

  size_t immediate_bytes() const {
    switch (result_.map) {
      case X86Map::OneByte:
        return immediate_bytes_of_one_byte();
      case X86Map::Escape0F:
        if (!result_.is_vector && (result_.opcode & 0xf0) == 0x80) return 4;  // jcc
        return kWithImmediate8Of0F.has(result_.opcode) ? 1 : 0;
      case X86Map::Escape0F3A:
        return 1;
      default:
        return 0;
    }
  }

  size_t immediate_bytes_of_one_byte() const {
    const size_t full = result_.moves_16_bits() ? 2 : 4;
    const uint8_t byte = result_.opcode;
    if (kWithImmediate8.has(byte)) return 1;
    if (kWithImmediate32.has(byte)) return full;
    if (byte == 0xe8 || byte == 0xe9) return 4;
    if (byte == 0xf6 && (result_.reg & 7) < 2) return 1;
    if (byte == 0xf7 && (result_.reg & 7) < 2) return full;
    if (byte >= 0xa0 && byte <= 0xa3) return result_.has_32_bit_address ? 4 : 8;
    if (byte >= 0xb8 && byte <= 0xbf) return result_.rex_w ? 8 : full;
    if (byte == 0xc2 || byte == 0xca) return 2;
    return byte == 0xc8 ? 3 : 0;
  }

  Bytes code_;
  ByteReader reader_;
  X86Encoding result_;
};

}  // namespace

std::optional<X86Encoding> read_x86_encoding(Bytes code) { return Reader(code).run(); }

size_t x86_operand_bytes(Bytes operand) {
  const unsigned mod_rm = std::to_integer<unsigned>(operand[0]);
  const unsigned mod = mod_rm >> 6, rm = mod_rm & 7;
  if (mod == 3) return 1;
  const bool has_sib = rm == 4;
  const size_t fixed = has_sib ? 2 : 1;
  if (mod == 1) return fixed + 1;
  if (mod == 2) return fixed + 4;
  const bool has_no_base =
      has_sib && operand.size() > 1 && (std::to_integer<unsigned>(operand[1]) & 7) == 5;
  return rm == 5 || has_no_base ? fixed + 4 : fixed;
}

}  // namespace sentry_prof::unwind
