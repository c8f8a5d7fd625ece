// What libcurl's error codes mean to a user.
#pragma once

#include "upload/http.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <curl/curl.h>

namespace sentry_prof::upload {

// The facts that libcurl has about a request that failed.
struct CurlFacts {
  CURLcode code = CURLE_OK;
  std::string text;            // of the error buffer, or of the code
  long verify_result = 0;      // CURLINFO_SSL_VERIFYRESULT: an X509_V_ERR_... of OpenSSL
  long proxy_status = 0;       // CURLINFO_HTTP_CONNECTCODE
  bool was_connected = false;  // to the server or its proxy
  std::string ca_file;         // in use; empty: the system's
  std::string
      proxy_variable;  // whose proxy it went through; empty: none, or this libcurl is silent
  uint32_t connect_time_out_s = 0;
};

HttpFailure failure_of(const CurlFacts& facts);

}  // namespace sentry_prof::upload
