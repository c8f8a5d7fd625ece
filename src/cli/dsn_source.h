// Where the DSN comes from, as Sentry's users know it.
#pragma once

#include "sentry/dsn.h"
#include "sentry_prof/result.h"

#include <string>

namespace sentry_prof::cli {

struct FoundDsn {
  sentry::Dsn dsn;
  // "--dsn", "SENTRY_DSN", "--dsn-file PATH", the path of a .sentryclirc
  std::string source;
};

// The first of: `dsn` (of --dsn), the file `dsn_file`, SENTRY_DSN, `dsn` in [auth] of .sentryclirc
// in the current directory or one above it, and of that in the home directory. A .sentryclirc of
// another user (but root) is passed over: it could lead profiles elsewhere. NotFound if there is
// none; messages name the source, never the text. `from` stands before the options' names.
Result<FoundDsn> find_dsn(const std::string& dsn, const std::string& dsn_file,
                          const std::string& from = "");

// `dsn` of [auth] in the text of a .sentryclirc; empty if there is none.
std::string dsn_in_sentryclirc(const std::string& text);

}  // namespace sentry_prof::cli
