#include "formats/perf_data_records.h"

#include "compress/expander.h"
#include "sampling/record_decoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace sentry_prof::formats {

namespace {

constexpr size_t kWindow_bytes = size_t{1} << 20;

// Records that follow each other in a stream of bytes which comes in pieces.
class RecordCutter {
 public:
  explicit RecordCutter(const std::function<void(Bytes)>& visit) : visit_(visit) {}

  // False where a record has an impossible size.
  bool feed(Bytes piece) {
    rest_.insert(rest_.end(), piece.begin(), piece.end());
    size_t begin = 0;
    while (rest_.size() - begin >= sampling::RecordHeader::kSize_bytes) {
      const Bytes left = Bytes(rest_).subspan(begin);
      const size_t size_bytes = sampling::read_record_header(left).size_bytes;
      if (size_bytes < sampling::RecordHeader::kSize_bytes) return false;
      if (size_bytes > left.size()) break;
      visit_(left.first(size_bytes));
      begin += size_bytes;
    }
    rest_.erase(rest_.begin(), rest_.begin() + static_cast<ptrdiff_t>(begin));
    return true;
  }
  bool is_inside_record() const { return !rest_.empty(); }

 private:
  const std::function<void(Bytes)>& visit_;
  std::vector<std::byte> rest_;  // less than a record between two calls
};

class RecordReader {
 public:
  RecordReader(const ByteSource& file, const PerfRecordRange& range,
               const std::function<void(Bytes)>& visit)
      : file_(file),
        visit_(visit),
        next_(range.offset),
        end_(range.offset + std::min(range.size_bytes, file.size_bytes() - range.offset)),
        expanded_left_(range.max_expanded_bytes),
        expanded_records_(visit) {}

  Result<PerfRecordsEnd> run(const std::function<bool()>& goes_on) {
    while (next_ < end_) {
      if (!goes_on()) return PerfRecordsEnd::Whole;
      if (!fill(sampling::RecordHeader::kSize_bytes)) return PerfRecordsEnd::CutOff;
      if (is_unreadable_) return fail(ErrorCode::Io, "the file cannot be read");
      const size_t size_bytes = sampling::read_record_header(window()).size_bytes;
      if (size_bytes < sampling::RecordHeader::kSize_bytes) return PerfRecordsEnd::Malformed;
      if (!fill(size_bytes)) return PerfRecordsEnd::CutOff;
      if (is_unreadable_) return fail(ErrorCode::Io, "the file cannot be read");
      const auto taken = take(window().first(size_bytes));
      if (!taken) return tl::unexpected(taken.error());
      if (!*taken) return PerfRecordsEnd::Malformed;
    }
    const bool is_cut = next_ > end_ || expanded_records_.is_inside_record();
    return is_cut ? PerfRecordsEnd::CutOff : PerfRecordsEnd::Whole;
  }

 private:
  Bytes window() const {
    return Bytes(window_).subspan(static_cast<size_t>(next_ - window_offset_));
  }

  // False if the range has not so many bytes any more.
  bool fill(size_t size_bytes) {
    if (size_bytes > end_ - next_) return false;
    const bool is_there = next_ >= window_offset_ && next_ - window_offset_ <= window_.size() &&
                          size_bytes <= window().size();
    if (is_there) return true;
    window_offset_ = next_;
    window_.resize(static_cast<size_t>(std::min<uint64_t>(kWindow_bytes, end_ - next_)));
    is_unreadable_ = !file_.read_at(next_, window_);
    return true;
  }

  // False where compressed data is damaged. Moves on.
  Result<bool> take(Bytes record) {
    const uint32_t type = sampling::read_record_header(record).type;
    next_ += record.size();
    if (type == kPerfCompressed || type == kPerfCompressed2) return expand(type, record);
    skip_what_follows(type, record);
    visit_(record);
    return true;
  }

  // Two types are followed by data that does not count as theirs.
  void skip_what_follows(uint32_t type, Bytes record) {
    ByteReader in(record, std::endian::native);
    in.skip(sampling::RecordHeader::kSize_bytes);
    uint64_t bytes = 0;
    if (type == kPerfAuxtrace) bytes = in.u64();
    if (type == kPerfHeaderTracingData) bytes = (uint64_t{in.u32()} + 7) / 8 * 8;
    next_ = bytes > end_ - next_ ? end_ + 1 : next_ + bytes;
  }

  // One zstd stream runs through all records of the file and has no end: perf only flushes it.
  Result<bool> expand(uint32_t type, Bytes record) {
    ByteReader in(record, std::endian::native);
    in.skip(sampling::RecordHeader::kSize_bytes);
    const Bytes data = in.bytes(type == kPerfCompressed2 ? in.u64() : in.remaining());
    if (!in.ok()) return false;
    if (expander_ == nullptr) {
      const std::string_view begin(reinterpret_cast<const char*>(data.data()), data.size());
      if (compress::detect_compression(begin) != compress::Compression::Zstd) {
        return fail(ErrorCode::Unsupported,
                    "its compressed records go on from an earlier file (perf record -z with "
                    "--switch-output), or are damaged: record without -z");
      }
      expander_ = compress::make_expander(compress::Compression::Zstd);
    }
    bool is_right = true;
    const auto fed = expander_->feed(
        {reinterpret_cast<const char*>(data.data()), data.size()}, [&](std::string_view piece) {
          if (piece.size() > expanded_left_) return false;
          expanded_left_ -= piece.size();
          is_right = expanded_records_.feed(std::as_bytes(std::span(piece)));
          return is_right;
        });
    if (!fed || !is_right) return false;
    if (!*fed) return fail(ErrorCode::LimitExceeded, "the records expand to more than is read");
    return true;
  }

  const ByteSource& file_;
  const std::function<void(Bytes)>& visit_;
  uint64_t next_, end_;
  std::vector<std::byte> window_;
  uint64_t window_offset_ = 0;
  bool is_unreadable_ = false;
  uint64_t expanded_left_;
  RecordCutter expanded_records_;
  std::unique_ptr<compress::Expander> expander_;
};

constexpr std::array<std::string_view, 22> kKernelNames = {"",
                                                           "MMAP",
                                                           "LOST",
                                                           "COMM",
                                                           "EXIT",
                                                           "THROTTLE",
                                                           "UNTHROTTLE",
                                                           "FORK",
                                                           "READ",
                                                           "SAMPLE",
                                                           "MMAP2",
                                                           "AUX",
                                                           "ITRACE_START",
                                                           "LOST_SAMPLES",
                                                           "SWITCH",
                                                           "SWITCH_CPU_WIDE",
                                                           "NAMESPACES",
                                                           "KSYMBOL",
                                                           "BPF_EVENT",
                                                           "CGROUP",
                                                           "TEXT_POKE",
                                                           "AUX_OUTPUT_HW_ID"};
constexpr std::array<std::string_view, 21> kUserNames = {"HEADER_ATTR",
                                                         "HEADER_EVENT_TYPE",
                                                         "HEADER_TRACING_DATA",
                                                         "HEADER_BUILD_ID",
                                                         "FINISHED_ROUND",
                                                         "ID_INDEX",
                                                         "AUXTRACE_INFO",
                                                         "AUXTRACE",
                                                         "AUXTRACE_ERROR",
                                                         "THREAD_MAP",
                                                         "CPU_MAP",
                                                         "STAT_CONFIG",
                                                         "STAT",
                                                         "STAT_ROUND",
                                                         "EVENT_UPDATE",
                                                         "TIME_CONV",
                                                         "HEADER_FEATURE",
                                                         "COMPRESSED",
                                                         "FINISHED_INIT",
                                                         "COMPRESSED2",
                                                         "BPF_METADATA"};

}  // namespace

std::string name_of_perf_record(uint32_t type) {
  if (type > 0 && type < kKernelNames.size()) return std::string(kKernelNames[type]);
  const uint32_t own = type - kFirstPerfUserRecord;
  if (type >= kFirstPerfUserRecord && own < kUserNames.size()) return std::string(kUserNames[own]);
  return "unknown";
}

Result<PerfRecordsEnd> for_each_perf_record(const ByteSource& file, const PerfRecordRange& range,
                                            const std::function<void(Bytes)>& visit,
                                            const std::function<bool()>& goes_on) {
  if (range.offset > file.size_bytes())
    return fail(ErrorCode::Malformed, "records outside the file");
  return RecordReader(file, range, visit).run(goes_on);
}

}  // namespace sentry_prof::formats
