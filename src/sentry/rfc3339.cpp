#include "sentry/rfc3339.h"

#include "base/time_units.h"

#include <chrono>

namespace sentry_prof::sentry {

namespace {

// The end of 2261: int64 nanoseconds end in April of the next year.
constexpr int64_t kLastUnix_s = 9'214'646'399;

class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : rest_(text) {}

  int digits(size_t count) {
    int number = 0;
    for (size_t i = 0; i < count; ++i) {
      if (!next_is_digit()) return ok_ = false, 0;
      number = number * 10 + take_digit();
    }
    return number;
  }

  // One of `accepted`; NUL without it.
  char one_of(std::string_view accepted) {
    if (rest_.empty() || accepted.find(rest_.front()) == accepted.npos) return ok_ = false, '\0';
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  // ".5", ".123456789123": in ns.
  uint32_t fraction_ns() {
    if (!rest_.starts_with('.')) return 0;
    rest_.remove_prefix(1);
    if (!next_is_digit()) return ok_ = false, 0;
    uint32_t ns = 0;
    uint32_t unit_ns = 100'000'000;
    for (; next_is_digit(); unit_ns /= 10) ns += static_cast<uint32_t>(take_digit()) * unit_ns;
    return ns;
  }

  int64_t offset_s() {
    const char sign = one_of("Zz+-");
    if (!ok_ || sign == 'Z' || sign == 'z') return 0;
    const int hours = digits(2);
    one_of(":");
    const int minutes = digits(2);
    if (hours > 23 || minutes > 59) ok_ = false;
    const int64_t seconds = (hours * 60 + minutes) * 60;
    return sign == '-' ? -seconds : seconds;
  }

  bool ended_well() const { return ok_ && rest_.empty(); }

 private:
  bool next_is_digit() const {
    return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9';
  }
  int take_digit() {
    const int digit = rest_.front() - '0';
    rest_.remove_prefix(1);
    return digit;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace

std::optional<Rfc3339Time> read_rfc3339(std::string_view text) {
  namespace calendar = std::chrono;
  TimeReader reader(text);
  const int year = reader.digits(4);
  reader.one_of("-");
  const int month = reader.digits(2);
  reader.one_of("-");
  const int day = reader.digits(2);
  reader.one_of("Tt ");
  const int hour = reader.digits(2);
  reader.one_of(":");
  const int minute = reader.digits(2);
  reader.one_of(":");
  const int second = reader.digits(2);
  const uint32_t fraction_ns = reader.fraction_ns();
  const int64_t offset_s = reader.offset_s();
  const calendar::year_month_day date{calendar::year(year),
                                      calendar::month(static_cast<unsigned>(month)),
                                      calendar::day(static_cast<unsigned>(day))};
  const bool is_real = date.ok() && hour <= 23 && minute <= 59 && second <= 60;
  if (!reader.ended_well() || !is_real) return std::nullopt;
  const int64_t days = calendar::sys_days(date).time_since_epoch().count();
  const int64_t unix_s = days * 86'400 + (hour * 60 + minute) * 60 + second - offset_s;
  return Rfc3339Time{unix_s, fraction_ns};
}

std::optional<uint64_t> parse_rfc3339(std::string_view text) {
  const std::optional<Rfc3339Time> time = read_rfc3339(text);
  if (!time || time->unix_s < 0 || time->unix_s > kLastUnix_s) return std::nullopt;
  return static_cast<uint64_t>(time->unix_s) * kNsPerSecond + time->ns;
}

}  // namespace sentry_prof::sentry
