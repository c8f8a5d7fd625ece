// A whole perf.data file as its player hands it on.
#pragma once

#include "formats/perf_data.h"
#include "support/catch2.h"
#include "support/perf_data_builder.h"

#include <cstdint>
#include <variant>
#include <vector>

namespace sentry_prof::formats_test {

using formats::PerfData;
using formats::PerfDataFigures;
using formats::PerfDataSurvey;

using Times = std::vector<uint64_t>;
using Tids = std::vector<uint32_t>;

class KeepingSink final : public sampling::EventSink {
 public:
  void on_event(const sampling::Event& event) override {
    times.push_back(event.time_ns);
    if (const auto* sample = std::get_if<sampling::SampleEvent>(&event.body)) {
      sample_tids.push_back(sample->tid);
    }
    if (const auto* map = std::get_if<sampling::MapEvent>(&event.body)) maps.push_back(*map);
    if (std::holds_alternative<sampling::UndecodableEvent>(event.body)) ++undecodable;
  }
  std::vector<uint64_t> times;
  std::vector<uint32_t> sample_tids;
  std::vector<sampling::MapEvent> maps;  // without paths, which are gone
  int undecodable = 0;
};

struct Played {
  KeepingSink sink;
  PerfDataFigures figures;
  PerfDataSurvey survey;
};

inline Played play(const ByteSource& file) {
  Played played;
  const auto data = PerfData::open(file);
  REQUIRE(data);
  played.survey = data->survey();
  const auto figures = data->play(played.sink);
  REQUIRE(figures);
  played.figures = *figures;
  return played;
}

}  // namespace sentry_prof::formats_test
