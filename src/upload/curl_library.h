// libcurl, loaded when something is sent and not before: with what it brings along it is 30
// libraries, which a recording into a file needs neither the time for (5 ms) nor the attack surface
// of.
#pragma once

#include "sentry_prof/result.h"

#include <curl/curl.h>

namespace sentry_prof::upload {

// The functions in use, named as in curl/curl.h without "curl_". Options are not checked against
// their types, as the header's macros of the same names would: they have to be long, curl_off_t or
// pointers.
struct CurlLibrary {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_version_info) version_info = nullptr;
};

// Loads and initializes it once; the first call must be made before other threads run. Unsupported
// if it is not installed, older than 7.87 or cannot be initialized.
Result<const CurlLibrary*> load_curl();

// Only after load_curl() has succeeded.
const CurlLibrary& curl();

}  // namespace sentry_prof::upload
