// Writing Sentry's sample formats.
// Sources: Sentry's "Sample Format V1" and "Sample Format V2" (Profiles 2.5.0), "Debug Meta
// Interface", and what Relay enforces; docs/sentry-format.md says where they differ.
#pragma once

#include "sentry_prof/profile.h"

#include <string>

namespace sentry_prof {

enum class SentryFormat { V1, V2 };

// Compact JSON, UTF-8, one object, newline at the end. Fresh event, transaction, trace or chunk ids
// are drawn for each call.
std::string to_sentry_json(const Profile& profile, SentryFormat format);

}  // namespace sentry_prof
