#include "sentry/text_edit.h"

namespace sentry_prof::sentry {

void TextEdit::copy_until(size_t offset) {
  if (!is_changed_) {
    is_changed_ = true;
    // Longer names and quotes add less than a third to any text. What is not written to needs no
    // memory, a string that grows by doubling does.
    out_.reserve(text_.size() + text_.size() / 3 + 64);
  }
  out_ += text_.substr(copied_, offset - copied_);
  copied_ = offset;
}

std::string TextEdit::finish() && {
  copy_until(text_.size());
  return std::move(out_);
}

void MemberEdit::keep(size_t key) {
  if (cut_begin_ != kNowhere) edit_.cut(cut_begin_, key);
  cut_begin_ = kNowhere;
}

void MemberEdit::drop(size_t key, size_t value_end) {
  if (has_kept_) {
    edit_.cut(kept_end_, value_end);
    kept_end_ = value_end;
    return;
  }
  if (cut_begin_ == kNowhere) cut_begin_ = key;
  cut_end_ = value_end;
}

void MemberEdit::close() {
  if (cut_begin_ != kNowhere) edit_.cut(cut_begin_, cut_end_);
}

}  // namespace sentry_prof::sentry
