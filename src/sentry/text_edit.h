// Changes to a JSON text, from its beginning to its end: what is not changed is copied as it
// stands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sentry_prof::sentry {

class TextEdit {
 public:
  // `text` must outlive the edit. Nothing is copied before the first change.
  explicit TextEdit(std::string_view text) : text_(text) {}

  bool is_changed() const { return is_changed_; }

  // Offsets never go back.
  void copy_until(size_t offset);
  void write(std::string_view text) { out_ += text; }
  void skip_to(size_t offset) { copied_ = offset; }

  void replace(size_t begin, size_t end, std::string_view by) {
    copy_until(begin);
    write(by);
    skip_to(end);
  }
  void cut(size_t begin, size_t end) { replace(begin, end, {}); }

  // Only if something is changed.
  std::string finish() &&;

 private:
  std::string_view text_;
  std::string out_;
  size_t copied_ = 0;
  bool is_changed_ = false;
};

// Members of one object, some of them left out with the comma that goes with them.
class MemberEdit {
 public:
  explicit MemberEdit(TextEdit& edit) : edit_(edit) {}

  // In the text's order. Offsets: of the key's opening quote, of the end of the value.
  void keep(size_t key);
  void end_kept(size_t value_end) {
    has_kept_ = true;
    kept_end_ = value_end;
  }
  void drop(size_t key, size_t value_end);
  void close();

 private:
  static constexpr size_t kNowhere = static_cast<size_t>(-1);

  TextEdit& edit_;
  bool has_kept_ = false;
  size_t kept_end_ = 0;
  // Of the members in front of the first one that is kept.
  size_t cut_begin_ = kNowhere;
  size_t cut_end_ = 0;
};

}  // namespace sentry_prof::sentry
