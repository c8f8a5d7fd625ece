#include "unwind/code_state.h"

namespace sentry_prof::unwind {

namespace {

constexpr int64_t kWord_bytes = 8;

std::optional<int16_t> as_words(int64_t bytes) {
  const int64_t words = bytes / kWord_bytes;
  const bool fits = bytes % kWord_bytes == 0 && words >= INT16_MIN && words <= INT16_MAX;
  return fits ? std::optional(static_cast<int16_t>(words)) : std::nullopt;
}

}  // namespace

void CodeState::apply(const X86Instruction& instruction) {
  overwritten_ |= instruction.writes;
  if ((instruction.writes >> kX86R10 & 1) != 0) r10_.reset();
  switch (instruction.effect) {
    case X86Effect::Push:
      return push();
    case X86Effect::PushFp:
      return push_fp();
    case X86Effect::Pop:
      return move_sp(kWord_bytes);
    case X86Effect::PopFp:
      return pop_fp();
    case X86Effect::AddToSp:
      return move_sp(instruction.operand);
    case X86Effect::SpFromFp:
      return sp_from_fp(instruction.operand);
    case X86Effect::SpFromRegister:
      return sp_from_register(instruction);
    case X86Effect::SpFromStack:
      return sp_from_stack(instruction.operand);
    case X86Effect::FpFromSp:
      return fp_from_sp(instruction.operand);
    case X86Effect::SavesFp:
      return save_fp(instruction.operand);
    case X86Effect::RestoresFp:
      return restore_fp(instruction.operand);
    case X86Effect::FollowsFp:
      return follow_fp();
    case X86Effect::Leave:
      sp_from_fp(0);
      return pop_fp();
    case X86Effect::LoadsR10:
      return load_r10(instruction.operand);
    case X86Effect::PushR10:
      return push_r10();
    case X86Effect::PopR10:
      return pop_r10();
    case X86Effect::OverwritesSp:
      return overwrite_sp();
    case X86Effect::OverwritesFp:
      fp_ = {FpValue::Kind::Unknown};
      return;
    default:
      return;
  }
}

void CodeState::move_sp(int64_t bytes) { offset_bytes_ += bytes; }

void CodeState::push() {
  move_sp(-kWord_bytes);
  if (offset_bytes_ == saved_at_bytes_) saved_at_bytes_ = INT64_MAX;
}

void CodeState::push_fp() {
  move_sp(-kWord_bytes);
  save_fp(0);
}

void CodeState::pop_fp() {
  restore_fp(0);
  move_sp(kWord_bytes);
}

void CodeState::save_fp(int64_t bytes) {
  if (!sp_is_known_) return;
  saved_ = fp_;
  saved_at_bytes_ = offset_bytes_ + bytes;
}

void CodeState::restore_fp(int64_t bytes) {
  if (sp_is_known_) {
    load_fp(offset_bytes_ + bytes);
  } else {
    fp_ = {FpValue::Kind::Unknown};
  }
}

void CodeState::load_fp(int64_t from_bytes) {
  if (from_bytes == saved_at_bytes_) {
    fp_ = saved_;
  } else if (base_ == Base::Sp && from_bytes < 0) {
    fp_ = {FpValue::Kind::Unknown};  // put there from another register
  } else {
    fp_ = {FpValue::Kind::InMemory, base_, from_bytes};
  }
}

void CodeState::follow_fp() {
  const bool is_own_record = fp_.kind == FpValue::Kind::AtSp && base_ == Base::Sp;
  if (is_own_record) return load_fp(fp_.offset_bytes);
  const bool is_original = fp_.kind == FpValue::Kind::Original;
  fp_ =
      is_original ? FpValue{FpValue::Kind::InMemory, Base::Fp, 0} : FpValue{FpValue::Kind::Unknown};
}

void CodeState::sp_from_fp(int64_t bytes) {
  if (fp_.kind != FpValue::Kind::AtSp && fp_.kind != FpValue::Kind::Original) return overwrite_sp();
  sp_is_known_ = true;
  if (fp_.kind == FpValue::Kind::AtSp) {
    if (base_ != Base::Sp) saved_at_bytes_ = INT64_MAX;
    base_ = Base::Sp;
    offset_bytes_ = fp_.offset_bytes + bytes;
  } else {
    base_ = Base::Fp;
    offset_bytes_ = bytes;
    saved_at_bytes_ = INT64_MAX;
  }
}

void CodeState::sp_from_register(const X86Instruction& instruction) {
  if (instruction.source == kX86R10 && r10_) return stand_on_word(*r10_, instruction.operand);
  if (has_overwritten(instruction.source)) return overwrite_sp();
  base_register_ = instruction.source;
  stand_on(Base::Register, instruction.operand);
}

void CodeState::sp_from_stack(int64_t bytes) {
  const std::optional<Place> word = place_at_sp(bytes);
  if (!word) return overwrite_sp();
  stand_on_word(*word, 0);
}

// What was restored before from a frame record says nothing any more of where the code returns: it
// has left that frame.
void CodeState::overwrite_sp() {
  sp_is_known_ = false;
  if (fp_.kind == FpValue::Kind::InMemory) fp_ = {FpValue::Kind::Unknown};
}

void CodeState::load_r10(int64_t bytes) {
  if (r10_is_saved_) return restore_r10();
  if (fp_.kind == FpValue::Kind::Original) r10_ = Place{Base::Fp, bytes};
}

void CodeState::push_r10() {
  if (!has_overwritten(kX86R10)) r10_is_saved_ = true;
  push();
}

void CodeState::pop_r10() {
  if (r10_is_saved_) {
    restore_r10();
  } else {
    r10_ = place_at_sp(0);
  }
  move_sp(kWord_bytes);
}

// Functions save it once, and load it into itself only from there.
void CodeState::restore_r10() { overwritten_ &= static_cast<X86Registers>(~(1u << kX86R10)); }

// None if the code has put the word there since.
std::optional<CodeState::Place> CodeState::place_at_sp(int64_t bytes) const {
  const Place word{base_, offset_bytes_ + bytes};
  const bool is_there =
      sp_is_known_ && (base_ == Base::Fp || (base_ == Base::Sp && word.offset_bytes >= 0));
  return is_there ? std::optional(word) : std::nullopt;
}

void CodeState::stand_on_word(Place word, int64_t offset_bytes) {
  word_ = word;
  stand_on(Base::Word, offset_bytes);
}

void CodeState::stand_on(Base base, int64_t offset_bytes) {
  sp_is_known_ = true;
  base_ = base;
  offset_bytes_ = offset_bytes;
  saved_at_bytes_ = INT64_MAX;
  // It may be told by another register or word.
  if (fp_.base == base) fp_ = {FpValue::Kind::Unknown};
}

void CodeState::fp_from_sp(int64_t bytes) {
  fp_ = base_ == Base::Sp && sp_is_known_
            ? FpValue{FpValue::Kind::AtSp, Base::Sp, offset_bytes_ + bytes}
            : FpValue{FpValue::Kind::Unknown};
}

// A return address that is on the stack now, and behind a call that pushed words of eight bytes.
bool CodeState::is_plausible() const {
  if (!sp_is_known_ || offset_bytes_ % kWord_bytes != 0) return false;
  switch (base_) {
    case Base::Sp:
      return offset_bytes_ >= 0;
    case Base::Fp:
      return offset_bytes_ > 0;
    default:
      return true;  // of what they hold the walk sees whether it is above the stack pointer
  }
}

CompactRule CodeState::rule(int32_t arguments_bytes) const {
  const bool has_record = is_in_frame(base_) && fp_.kind == FpValue::Kind::InMemory &&
                          fp_.base == Base::Fp && fp_.offset_bytes == 0;
  // The return address is beside the caller's frame pointer, wherever the stack pointer is.
  if (has_record) return rule_of(Base::Fp, kWord_bytes, arguments_bytes);
  return is_plausible() ? rule_of(base_, offset_bytes_, arguments_bytes) : CompactRule{};
}

// The return address was at the stack pointer, and the CFA is behind it.
CompactRule CodeState::rule_of_function() const {
  const int64_t above_words = 1 - offset_bytes_ / kWord_bytes;
  const bool is_known = sp_is_known_ && base_ == Base::Sp && offset_bytes_ % kWord_bytes == 0 &&
                        above_words >= 1 && above_words <= INT16_MAX;
  if (!is_known) return {};
  CompactRule rule{.kind = CompactKind::CodeFromSp,
                   .cfa_words = static_cast<int16_t>(above_words),
                   .return_address_words = -1};
  if (fp_.kind == FpValue::Kind::Original) return rule;
  rule.fp = CompactFp::Unknown;
  const int64_t saved_words = saved_at_bytes_ / kWord_bytes - 1;
  const bool is_saved = saved_.kind == FpValue::Kind::Original && saved_at_bytes_ < 0 &&
                        saved_at_bytes_ >= offset_bytes_ && saved_at_bytes_ % kWord_bytes == 0 &&
                        saved_words >= INT16_MIN;
  if (is_saved) {
    rule.fp = CompactFp::Saved;
    rule.fp_words = static_cast<int16_t>(saved_words);
  }
  return rule;
}

CompactRule CodeState::rule_of(Base base, int64_t return_address_bytes,
                               int32_t arguments_bytes) const {
  if (arguments_bytes % kWord_bytes != 0) return {};
  const int64_t above_words = arguments_bytes / kWord_bytes + 1;
  const int64_t cfa_words = return_address_bytes / kWord_bytes + above_words;
  if (cfa_words > INT16_MAX || cfa_words < INT16_MIN) return {};
  CompactRule rule{.kind = kind_of(base),
                   .cfa_words = static_cast<int16_t>(cfa_words),
                   .return_address_words = static_cast<int16_t>(-above_words)};
  if (!is_in_frame(base)) {
    const auto where = place_of_base(base);
    if (above_words != 1 || !where) return {};  // nor do compilers make such functions
    rule.return_address_words = *where;
  }
  if (fp_.kind == FpValue::Kind::Original) return rule;
  rule.fp = CompactFp::Unknown;
  if (fp_.kind != FpValue::Kind::InMemory) return rule;
  const auto from_register = as_words(fp_.offset_bytes);
  const auto below_cfa = as_words(fp_.offset_bytes - cfa_words * kWord_bytes);
  if (!is_in_frame(base) && is_in_frame(fp_.base) && from_register) {
    rule.fp = fp_.base == Base::Sp ? CompactFp::SavedFromSp : CompactFp::SavedFromFp;
    rule.fp_words = *from_register;
  } else if (fp_.base == base && below_cfa && *below_cfa < -above_words) {
    rule.fp = CompactFp::Saved;
    rule.fp_words = *below_cfa;
  }
  return rule;
}

// The register's number, or where the word is.
std::optional<int16_t> CodeState::place_of_base(Base base) const {
  if (base == Base::Register) return static_cast<int16_t>(base_register_);
  return as_words(word_.offset_bytes);
}

CompactKind CodeState::kind_of(Base base) const {
  switch (base) {
    case Base::Sp:
      return CompactKind::CodeFromSp;
    case Base::Fp:
      return CompactKind::CodeFromFp;
    case Base::Register:
      return CompactKind::CodeFromRegister;
    case Base::Word:
      break;
  }
  return word_.base == Base::Sp ? CompactKind::CodeFromWordAtSp : CompactKind::CodeFromWordAtFp;
}

}  // namespace sentry_prof::unwind
