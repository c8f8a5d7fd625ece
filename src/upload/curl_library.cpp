#include "upload/curl_library.h"

#include <string>

#include <dlfcn.h>

// CURLOPT_PROTOCOLS_STR came with 7.85, CURLOPT_QUICK_EXIT with 7.87. Debian 12 has 7.88.
#if LIBCURL_VERSION_NUM < 0x075700
#error "libcurl 7.87 or newer is needed"
#endif

namespace sentry_prof::upload {

namespace {

constexpr unsigned kOldestVersion = 0x075700;
// Of all of curl 7 and 8. Debian's package is libcurl4, with a suffix since Debian 13.
constexpr const char* kFileName = "libcurl.so.4";

CurlLibrary g_curl;

tl::unexpected<Error> unusable(const std::string& why) {
  return fail(ErrorCode::Unsupported,
              std::string(kFileName).append(" is needed to send: ").append(why));
}

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library, CurlLibrary& curl) {
  return find(library, "curl_global_init", curl.global_init) &&
         find(library, "curl_easy_init", curl.easy_init) &&
         find(library, "curl_easy_cleanup", curl.easy_cleanup) &&
         find(library, "curl_easy_setopt", curl.easy_setopt) &&
         find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
         find(library, "curl_easy_strerror", curl.easy_strerror) &&
         find(library, "curl_multi_init", curl.multi_init) &&
         find(library, "curl_multi_cleanup", curl.multi_cleanup) &&
         find(library, "curl_multi_add_handle", curl.multi_add_handle) &&
         find(library, "curl_multi_remove_handle", curl.multi_remove_handle) &&
         find(library, "curl_multi_perform", curl.multi_perform) &&
         find(library, "curl_multi_poll", curl.multi_poll) &&
         find(library, "curl_multi_info_read", curl.multi_info_read) &&
         find(library, "curl_slist_append", curl.slist_append) &&
         find(library, "curl_slist_free_all", curl.slist_free_all) &&
         find(library, "curl_version_info", curl.version_info);
}

Result<const CurlLibrary*> load_once() {
  void* const library = ::dlopen(kFileName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    return unusable(std::string(reason == nullptr ? "cannot be loaded" : reason)
                        .append(". Install libcurl (Debian: libcurl4)"));
  }
  CurlLibrary curl;
  if (!find_all(library, curl)) return unusable("lacks a function. Install libcurl 7.87 or newer");
  if (curl.version_info(CURLVERSION_NOW)->version_num < kOldestVersion) {
    return unusable("is too old. Install libcurl 7.87 or newer");
  }
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return unusable("does not start");
  g_curl = curl;
  return &g_curl;
}

}  // namespace

Result<const CurlLibrary*> load_curl() {
  static const Result<const CurlLibrary*> result = load_once();
  return result;
}

const CurlLibrary& curl() { return g_curl; }

}  // namespace sentry_prof::upload
