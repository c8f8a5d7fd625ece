#include "upload/http_date.h"

#include <array>
#include <chrono>

namespace sentry_prof::upload {

namespace {

// Follows a fixed form. A failure sticks.
class DateReader {
 public:
  explicit DateReader(std::string_view text) : rest_(text) {}

  void skip(std::string_view expected) {
    if (!rest_.starts_with(expected)) return fail();
    rest_.remove_prefix(expected.size());
  }

  int digits(size_t count) {
    if (rest_.size() < count) return fail(), 0;
    int number = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return fail(), 0;
      number = number * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return number;
  }

  // asctime's day: " 6" or "16".
  int padded_two_digits() {
    if (!rest_.starts_with(' ')) return digits(2);
    rest_.remove_prefix(1);
    return digits(1);
  }

  int month() {
    static constexpr std::array<std::string_view, 12> kMonths = {
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    for (size_t i = 0; i < kMonths.size(); ++i) {
      if (!rest_.starts_with(kMonths[i])) continue;
      rest_.remove_prefix(3);
      return static_cast<int>(i) + 1;
    }
    return fail(), 0;
  }

  int seconds_of_day() {
    const int hour = digits(2);
    skip(":");
    const int minute = digits(2);
    skip(":");
    const int second = digits(2);  // 60 is a leap second
    if (hour > 23 || minute > 59 || second > 60) fail();
    return (hour * 60 + minute) * 60 + second;
  }

  bool ended_well() const { return ok_ && rest_.empty(); }
  bool next_is(char c) const { return rest_.starts_with(c); }

 private:
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  bool ok_ = true;
};

struct Date {
  int year = 0, month = 0, day = 0, seconds = 0;
};

std::optional<int64_t> unix_seconds(const Date& date) {
  namespace calendar = std::chrono;
  const calendar::year_month_day day{calendar::year(date.year),
                                     calendar::month(static_cast<unsigned>(date.month)),
                                     calendar::day(static_cast<unsigned>(date.day))};
  if (!day.ok()) return std::nullopt;
  const auto days = calendar::sys_days(day).time_since_epoch().count();
  return static_cast<int64_t>(days) * 86'400 + date.seconds;
}

// "Nov  6 08:49:37 1994"
Date read_asctime(DateReader& reader) {
  Date date;
  date.month = reader.month();
  reader.skip(" ");
  date.day = reader.padded_two_digits();
  reader.skip(" ");
  date.seconds = reader.seconds_of_day();
  reader.skip(" ");
  date.year = reader.digits(4);
  return date;
}

// RFC 9110 has two-digit years stand for the past 50 years or so. Here they are never of the last
// century: a limit does not end there.
constexpr int kCenturyOfShortYears = 2000;

// "06 Nov 1994 08:49:37 GMT" or "06-Nov-94 08:49:37 GMT"
Date read_day_first(DateReader& reader) {
  Date date;
  date.day = reader.digits(2);
  const bool has_short_year = reader.next_is('-');
  const std::string_view separator = has_short_year ? "-" : " ";
  reader.skip(separator);
  date.month = reader.month();
  reader.skip(separator);
  date.year = has_short_year ? kCenturyOfShortYears + reader.digits(2) : reader.digits(4);
  reader.skip(" ");
  date.seconds = reader.seconds_of_day();
  reader.skip(" GMT");
  return date;
}

}  // namespace

std::optional<int64_t> parse_http_date(std::string_view text) {
  const size_t comma = text.find(", ");
  const size_t begin = comma != text.npos ? comma + 2 : text.find(' ') + 1;
  // "Wednesday" is the longest name of a day.
  if (begin == 0 || begin > 11) return std::nullopt;
  DateReader reader(text.substr(begin));
  const Date date = comma != text.npos ? read_day_first(reader) : read_asctime(reader);
  if (!reader.ended_well()) return std::nullopt;
  return unix_seconds(date);
}

}  // namespace sentry_prof::upload
