// A small profile with everything that the formats can say, and fixed ids.
#pragma once

#include "sentry_prof/profile.h"

#include <string>

namespace sentry_prof::testing {

inline Uuid fixed_uuid(uint8_t last_byte) {
  Uuid uuid;
  uuid.bytes = {0x41, 0xfe, 0xd0, 0x92, 0x56, 0x70, 0x46, 0x8b,
                0xb0, 0x45, 0x7f, 0x61, 0xa7, 0x46, 0x88, last_byte};
  return uuid;
}

inline Session test_session() {
  Session session;
  session.profiler_id = fixed_uuid(0xff);
  session.platform = "rust";
  session.release = "svc@0123456789ab";
  session.environment = "production";
  session.transaction_name = "svc \"main\"";
  session.sdk_name = "sentry-prof";
  session.sdk_version = "0.1.0";
  session.os_name = "Linux";
  session.os_version = "6.1.0";
  session.os_build = "#1 SMP";
  session.device_architecture = "x86_64";
  session.device_manufacturer = "ACME";
  session.device_model = "Anvil";
  return session;
}

// Two images, one of them without a build id; a frame outside of both; two threads, one of them
// idle at its end.
inline Profile test_profile() {
  Profile profile;
  profile.session = test_session();
  profile.start_unix_ns = 1'768'478'400'000'000'000;  // 2026-01-15T12:00:00Z
  profile.end_unix_ns = profile.start_unix_ns + 2'000'000'000;

  Uuid debug_id;
  debug_id.bytes = {0xe2, 0x0a, 0x22, 0x68, 0x5d, 0xc6, 0xc1, 0x65,
                    0xb6, 0xaa, 0xa1, 0x2f, 0xa6, 0x76, 0x5a, 0x6e};
  profile.images = {
      {"/usr/bin/svc", "68220ae2c65d65c1b6aaa12fa6765a6ec2f5f434", debug_id, "x86_64",
       0x55d0c0a00000, 90112, 0},
      {"/opt/gr\xc3\xbc\xc3\x9f/lib\"a.so", "", {}, "", 0x7f0000400000, 4096, 0x400000},
  };
  profile.frames = {
      {0x55d0c0a01234, "work<int>(char const*)", 0},
      {0x55d0c0a01300, "main", 0},
      {0x7f0000400fff, "lib\"a.so+0xfff", 1},
      {0x7fff00000000, "0x7fff00000000", Frame::kNoImage},
  };
  profile.stack_frame_indices = {0, 1, 2, 0, 1, 3};
  profile.stack_begin = {0, 0, 2, 5, 6};
  profile.threads = {{4242, 4242, 4242, "svc"},
                     {4243 + (uint64_t{1} << 32), 4242, 4243, "worker \\1 (make 7)"}};
  const auto at = [&](uint64_t us) { return profile.start_unix_ns + us * 1000 + 999; };
  profile.samples = {{at(0), 0, 1},      {at(9'901), 1, 2},     {at(19'802), 0, 3},
                     {at(29'703), 1, 1}, {at(1'500'000), 1, 0}, {at(1'999'999), 0, 2}};
  return profile;
}

}  // namespace sentry_prof::testing
