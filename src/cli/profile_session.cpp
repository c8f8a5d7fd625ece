#include "cli/profile_session.h"

#include "base/ids.h"
#include "os/system_info.h"

namespace sentry_prof::cli {

Session make_session(const ProfileOptions& options) {
  const os::SystemInfo system = os::read_system_info();
  Session session;
  session.profiler_id = random_uuid_v4();
  session.platform = options.platform;
  session.release = options.release;
  session.environment = options.environment;
  session.transaction_name = options.transaction;
  session.sdk_name = "sentry-prof";
  session.sdk_version = SENTRY_PROF_VERSION;
  session.os_name = system.name;
  session.os_version = system.version;
  session.os_build = system.build;
  session.device_architecture = system.architecture;
  session.device_manufacturer = system.manufacturer;
  session.device_model = system.model;
  return session;
}

}  // namespace sentry_prof::cli
