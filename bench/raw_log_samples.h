// The samples of a raw log, each with the maps that it was taken in, ready to be walked.
#pragma once

#include "recorder/raw_log.h"
#include "target/image_store.h"
#include "unwind/module_map.h"
#include "unwind/registers.h"
#include "unwind/stack_snapshot.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sentry_prof::bench {

struct StoredSample {
  uint32_t pid = 0;
  uint32_t tid = 0;
  unwind::Registers registers;
  Bytes stack;  // in the log
  bool stack_is_cut = false;
  const unwind::ModuleMap* modules = nullptr;  // one for all samples between two changes

  unwind::StackSnapshot stack_snapshot() const;
};

class RawLogSamples {
 public:
  // Throws std::runtime_error where the log cannot be read.
  explicit RawLogSamples(const std::string& path);
  ~RawLogSamples();

  // In the order of time; valid as long as this object.
  const std::vector<StoredSample>& samples() const;
  const target::ImageStore& images() const;

 private:
  class Collector;

  std::string bytes_;
  recorder::RawLog log_;  // points into bytes_
  std::unique_ptr<Collector> collector_;
};

}  // namespace sentry_prof::bench
