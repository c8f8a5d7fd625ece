#include "recorder/raw_log_writer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace sentry_prof::recorder {

namespace {

// Sections are read from it at once, not in pieces: another unwinder may need other parts.
class LoggedFile final : public ByteSource {
 public:
  LoggedFile(RawLogWriter& log, uint32_t number, std::shared_ptr<const ByteSource> inner)
      : log_(log), number_(number), inner_(std::move(inner)) {}

  uint64_t size_bytes() const override { return inner_->size_bytes(); }

  [[nodiscard]] bool read_at(uint64_t offset, std::span<std::byte> out) const override {
    if (!inner_->read_at(offset, out)) return false;
    if (out.empty()) return true;
    std::lock_guard lock(mutex_);
    const uint64_t last = (offset + out.size() - 1) / kRawBlock_bytes;
    for (uint64_t block = offset / kRawBlock_bytes; block <= last; ++block) keep(block);
    return true;
  }
  bool was_silent() const override { return inner_->was_silent(); }
  bool is_unchanged() const override { return inner_->is_unchanged(); }
  bool was_changed() const override { return inner_->was_changed(); }

 private:
  void keep(uint64_t block) const {
    if (!kept_.insert(block).second) return;
    const uint64_t offset = block * kRawBlock_bytes;
    const uint64_t size = size_bytes();
    if (offset >= size) return;
    std::vector<std::byte> bytes(static_cast<size_t>(std::min(kRawBlock_bytes, size - offset)));
    if (inner_->read_at(offset, bytes)) {
      log_.add(RawEntry::FileBytes, encode_block(number_, block, bytes));
    }
  }

  RawLogWriter& log_;
  uint32_t number_;
  std::shared_ptr<const ByteSource> inner_;
  mutable std::mutex mutex_;  // both threads read symbols and unwind tables
  mutable std::unordered_set<uint64_t> kept_;
};

// Recording thread only, as every opener.
class LoggedOpener final : public target::ImageOpener {
 public:
  LoggedOpener(RawLogWriter& log, std::unique_ptr<target::ImageOpener> inner)
      : log_(log), inner_(std::move(inner)) {}

  Result<std::shared_ptr<const ByteSource>> open(const target::MappingFacts& mapping) override {
    return keep(raw_question_key(RawQuestion::Open, mapping), inner_->open(mapping));
  }

  Result<std::shared_ptr<const ByteSource>> open_by_path(
      const target::MappingFacts& mapping) override {
    return keep(raw_question_key(RawQuestion::OpenByPath, mapping), inner_->open_by_path(mapping));
  }

  Result<std::shared_ptr<const ByteSource>> open_mapped(
      const target::MappingFacts& mapping) override {
    return keep(raw_question_key(RawQuestion::OpenMapped, mapping), inner_->open_mapped(mapping));
  }

  bool name_is_literal(const target::MappingFacts& mapping) override {
    RawAnswer answer;
    answer.is_yes = inner_->name_is_literal(mapping);
    log_.add(RawEntry::Opened,
             encode(raw_question_key(RawQuestion::NameIsLiteral, mapping), answer));
    return answer.is_yes;
  }

 private:
  Result<std::shared_ptr<const ByteSource>> keep(const std::string& key,
                                                 Result<std::shared_ptr<const ByteSource>> file) {
    RawAnswer answer;
    answer.is_yes = file.has_value();
    if (file) {
      answer.file_number = files_++;
      answer.file_bytes = (*file)->size_bytes();
    } else {
      answer.error = file.error();
    }
    log_.add(RawEntry::Opened, encode(key, answer));
    if (!file) return file;
    return std::make_shared<LoggedFile>(log_, answer.file_number, std::move(*file));
  }

  RawLogWriter& log_;
  std::unique_ptr<target::ImageOpener> inner_;
  uint32_t files_ = 0;
};

}  // namespace

Result<std::unique_ptr<RawLogWriter>> RawLogWriter::create(const std::string& path) {
  auto file = os::AtomicFile::create(path);
  if (!file) return tl::unexpected(file.error());
  std::unique_ptr<RawLogWriter> writer(new RawLogWriter(std::move(*file)));
  writer->write(raw_log_head());
  return writer;
}

std::unique_ptr<target::ImageOpener> RawLogWriter::wrap(
    std::unique_ptr<target::ImageOpener> inner) {
  return std::make_unique<LoggedOpener>(*this, std::move(inner));
}

void RawLogWriter::add(RawEntry type, const std::string& payload) {
  write(raw_entry_head(type, payload.size()) + payload);
}

void RawLogWriter::write(const std::string& bytes) {
  std::lock_guard lock(mutex_);
  if (status_) status_ = file_.write(bytes);
}

Result<void> RawLogWriter::commit() {
  std::lock_guard lock(mutex_);
  if (status_) status_ = file_.commit();
  return status_;
}

}  // namespace sentry_prof::recorder
