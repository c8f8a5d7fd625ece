#include "sentry/writers.h"

#include "profile/chunk_builder.h"
#include "profile/finish_chunk.h"
#include "sentry/json_parts.h"
#include "sentry_prof/sentry.h"
#include "support/catch2.h"
#include "support/sentry_checker.h"
#include "unit/sentry/test_files.h"
#include "unit/sentry/test_profile.h"

#include <set>

using namespace sentry_prof;
using namespace sentry_prof::testing;

namespace {

std::vector<std::string> problems_of(const Profile& profile, SentryFormat format) {
  const ProfileKind kind = format == SentryFormat::V1 ? ProfileKind::V1 : ProfileKind::V2;
  return check_sentry_profile(to_sentry_json(profile, format), kind).problems;
}

std::string text_between(const std::string& text, std::string_view before, size_t length) {
  const size_t at = text.find(before);
  return at == std::string::npos ? "" : text.substr(at + before.size(), length);
}

}  // namespace

TEST_CASE("V2 is written byte for byte as the golden file has it") {
  CHECK(sentry::write_v2(test_profile(), fixed_uuid(1)) == read_test_file("sentry/golden_v2.json"));
}

TEST_CASE("V1 is written byte for byte as the golden file has it") {
  CHECK(sentry::write_v1(test_profile(), {fixed_uuid(1), fixed_uuid(2), fixed_uuid(3)}) ==
        read_test_file("sentry/golden_v1.json"));
}

TEST_CASE("Frames of platforms other than rust say whether they belong to the application") {
  Profile profile = test_profile();
  profile.session.platform = "native";
  profile.images[1].code_file = "/usr/lib/x86_64-linux-gnu/liba.so";
  CHECK(sentry::write_v2(profile, fixed_uuid(1)) == read_test_file("sentry/golden_v2_native.json"));
  for (SentryFormat format : {SentryFormat::V1, SentryFormat::V2}) {
    CHECK(problems_of(profile, format) == std::vector<std::string>());
  }
}

TEST_CASE("Stacks of all lengths have all their indices, however long these are") {
  Profile profile;
  std::string expected;
  for (const size_t length : {0, 1, 15, 16, 17, 32, 33}) {
    expected += expected.empty() ? "[" : ",[";
    for (size_t i = 0; i < length; ++i) {
      const uint32_t index = i % 2 == 0 ? UINT32_MAX : static_cast<uint32_t>(i);
      profile.stack_frame_indices.push_back(index);
      expected += (i == 0 ? "" : ",") + std::to_string(index);
    }
    profile.stack_begin.push_back(static_cast<uint32_t>(profile.stack_frame_indices.size()));
    expected += ']';
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  sentry::write_stacks(json, profile);
  json.end_object();
  CHECK(text == "{\"stacks\":[" + expected + "]}");
}

TEST_CASE("System libraries are told from libraries of the application by their directory") {
  struct Case {
    std::string path;
    bool is_in_app;
  };
  for (const Case& c : {Case{"/lib64/ld-linux-x86-64.so.2", false},
                        {"/usr/lib32/libc.so.6", false},
                        {"[vdso]", false},
                        {"/library/liba.so", true},
                        {"/opt/usr/lib/liba.so", true},
                        {"/usr/local/lib/liba.so", true}}) {
    Profile profile = test_profile();
    profile.session.platform = "native";
    profile.images[1].code_file = c.path;
    const std::string json = to_sentry_json(profile, SentryFormat::V1);
    INFO(c.path);
    const std::string frame = "\"package\":\"" + c.path + "\",\"platform\":\"native\",\"in_app\":";
    CHECK(text_between(json, frame, 4) == (c.is_in_app ? "true" : "fals"));
  }
}

TEST_CASE("Code that was compiled while the program ran is the application's") {
  for (const std::string platform : {"rust", "native"}) {
    Profile profile = test_profile();
    profile.session.platform = platform;
    for (Frame& frame : profile.frames) frame.is_compiled = frame.image == Frame::kNoImage;
    for (SentryFormat format : {SentryFormat::V1, SentryFormat::V2}) {
      const std::string json = to_sentry_json(profile, format);
      const std::string in_app =
          platform == "rust" ? "" : ",\"platform\":\"native\",\"in_app\":true";
      CHECK(json.find("\"package\":\"[jit]\"" + in_app + "}") != std::string::npos);
      CHECK(problems_of(profile, format) == std::vector<std::string>());
    }
  }
}

TEST_CASE("Both formats pass the checker, with fresh ids each time") {
  for (SentryFormat format : {SentryFormat::V1, SentryFormat::V2}) {
    CHECK(problems_of(test_profile(), format) == std::vector<std::string>());
    const std::string key = format == SentryFormat::V1 ? "\"event_id\":\"" : "\"chunk_id\":\"";
    std::set<std::string> ids;
    for (int i = 0; i < 10; ++i) {
      ids.insert(text_between(to_sentry_json(test_profile(), format), key, 32));
    }
    CHECK(ids.size() == 10);
    CHECK_FALSE(ids.contains(""));
  }
}

TEST_CASE("Empty optional texts are left out, never null") {
  Profile profile = test_profile();
  profile.session.os_build.clear();
  profile.session.device_manufacturer.clear();
  profile.session.device_model.clear();
  profile.session.transaction_name.clear();
  const std::string json = to_sentry_json(profile, SentryFormat::V1);
  CHECK(json.find("build_number") == std::string::npos);
  CHECK(json.find("manufacturer") == std::string::npos);
  CHECK(json.find("\"model\"") == std::string::npos);
  CHECK(json.find("null") == std::string::npos);
  CHECK(problems_of(profile, SentryFormat::V1) == std::vector<std::string>());
}

TEST_CASE("The V1 timestamp is a calendar time in UTC") {
  const auto timestamp_at = [](uint64_t unix_ns) {
    Profile profile = test_profile();
    profile.start_unix_ns = unix_ns;
    return text_between(to_sentry_json(profile, SentryFormat::V1), "\"timestamp\":\"", 27);
  };
  CHECK(timestamp_at(0) == "1970-01-01T00:00:00.000000Z");
  CHECK(timestamp_at(1'709'251'199'000'001'999) == "2024-02-29T23:59:59.000001Z");
  CHECK(timestamp_at(UINT64_MAX) == "2554-07-21T23:34:33.709551Z");
}

TEST_CASE("V1 gives thirty seconds whole and V2 keeps microseconds") {
  Profile profile = test_profile();
  profile.samples.back().unix_time_ns = profile.start_unix_ns + 30'000'000'000;
  CHECK(problems_of(profile, SentryFormat::V1) == std::vector<std::string>());
  CHECK(to_sentry_json(profile, SentryFormat::V1).find("\"30000000000\"") != std::string::npos);
  CHECK(to_sentry_json(profile, SentryFormat::V2).find(":1768478430.000000,") != std::string::npos);
}

TEST_CASE("Hostile names stay inside their strings") {
  Profile profile = test_profile();
  profile.threads[0].name = "\",\"x\":{\x01\xff";
  profile.frames[0].function = "\\\"}]\n\xc3";
  profile.images[0].code_file = "/tmp/\x80\"";
  for (SentryFormat format : {SentryFormat::V1, SentryFormat::V2}) {
    CHECK(problems_of(profile, format) == std::vector<std::string>());
  }
}

TEST_CASE("The size estimate of a chunk is never below its JSON") {
  using namespace sentry_prof::profile;
  struct LongTexts final : FrameNames {
    std::string name = std::string(1800, 'n');
    std::vector<ImageFacts> facts{100};
    const ImageFacts& image(uint32_t image) const override { return facts[image]; }
    std::vector<FrameName> names_of(std::span<const FrameKey> frames) override {
      std::vector<FrameName> names(frames.size());
      for (size_t i = 0; i < frames.size(); ++i) names[i].text = name.substr(0, i % 3 * 900);
      return names;
    }
  } names;
  std::string path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30";
  if (GENERATE(false, true)) {
    names.name = std::string(1800, '"');
    path = "/" + std::string(4'000, GENERATE('p', '\\', '\x01', '\xff'));
  }
  for (ImageFacts& facts : names.facts) {
    facts.image.code_file = path;
    facts.image.code_id = std::string(128, 'f');
    facts.image.arch = "x86_64";
    facts.image.image_size = 1 << 30;
  }

  const uint32_t frame_count = GENERATE(1u, 50u, 900u);
  ChunkBuilder builder(0);
  for (uint64_t i = 0; i < 600; ++i) {
    std::vector<FrameKey> frames;
    for (uint32_t depth = 0; depth < 1 + i % 40; ++depth) {
      const uint64_t pc = (i * 31 + depth * 7) % frame_count;
      frames.push_back({static_cast<uint32_t>(pc % 100), depth == 0, pc});
    }
    builder.add_sample(i * 1000, builder.thread(1, static_cast<uint32_t>(i % 100), 0), frames);
  }
  const uint64_t estimate = builder.estimated_json_bytes();
  ImagePlacer placer;
  const Profile profile = finish_chunk(builder.finish(10'000'000), test_session(),
                                       {0, 1'768'478'400'000'000'000}, 1, names, placer);
  for (SentryFormat format : {SentryFormat::V1, SentryFormat::V2}) {
    const std::string json = to_sentry_json(profile, format);
    CHECK(json.size() < estimate);
    CHECK(check_sentry_profile(json, format == SentryFormat::V1 ? ProfileKind::V1 : ProfileKind::V2)
              .problems == std::vector<std::string>());
  }
}
