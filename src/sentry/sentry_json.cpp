#include "base/ids.h"
#include "sentry/writers.h"
#include "sentry_prof/sentry.h"

namespace sentry_prof {

std::string to_sentry_json(const Profile& profile, SentryFormat format) {
  if (format == SentryFormat::V2) return sentry::write_v2(profile, random_uuid_v4());
  return sentry::write_v1(profile, {random_uuid_v4(), random_uuid_v4(), random_uuid_v4()});
}

}  // namespace sentry_prof
