#include "upload/curl_client.h"

#include "base/time_units.h"
#include "os/clock.h"
#include "upload/curl_failure.h"
#include "upload/curl_library.h"
#include "upload/reply_reader.h"

#include <cstdlib>
#include <utility>

#include <fmt/core.h>

namespace sentry_prof::upload {

namespace {

// How often is_cancelled is asked: ^C shall be felt at once, and a wake-up costs microseconds.
constexpr int kPoll_ms = 100;

struct EasyCleanup {
  void operator()(CURL* easy) const { curl().easy_cleanup(easy); }
};
struct MultiCleanup {
  void operator()(CURLM* multi) const { curl().multi_cleanup(multi); }
};
struct ListCleanup {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
using Easy = std::unique_ptr<CURL, EasyCleanup>;
using Multi = std::unique_ptr<CURLM, MultiCleanup>;
using HeaderList = std::unique_ptr<curl_slist, ListCleanup>;

size_t on_head_line(char* text, size_t, size_t size, void* reader) {
  static_cast<ReplyReader*>(reader)->take_head_line({text, size});
  return size;
}

// Any other number than `size` ends the transfer.
size_t on_body(char* text, size_t, size_t size, void* reader) {
  return static_cast<ReplyReader*>(reader)->take_body({text, size}) ? size : 0;
}

// "http_proxy" of "Uses proxy env variable http_proxy == '...'"; nothing of other lines, and of
// those about hosts without a proxy.
std::string_view proxy_variable_in(std::string_view line) {
  constexpr std::string_view kBegin = "Uses proxy env variable ";
  if (!line.starts_with(kBegin)) return {};
  line.remove_prefix(kBegin.size());
  const std::string_view name = line.substr(0, line.find(' '));
  return name == "no_proxy" || name == "NO_PROXY" ? std::string_view() : name;
}

// Which variable's proxy is taken, with NO_PROXY and all, libcurl tells only among what it says to
// those who want to hear everything.
int on_words(CURL*, curl_infotype kind, char* text, size_t size, void* proxy_variable) {
  if (kind != CURLINFO_TEXT) return 0;
  const std::string_view name = proxy_variable_in({text, size});
  if (!name.empty()) *static_cast<std::string*>(proxy_variable) = name;
  return 0;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

struct Authorities {
  std::string file;
  std::string directory;
};

// As the curl program does: its own variable wins over OpenSSL's.
Authorities chosen_authorities(const CurlOptions& options) {
  if (!options.ca_file.empty()) return {options.ca_file, {}};
  if (std::string file = environment("CURL_CA_BUNDLE"); !file.empty()) return {file, {}};
  return {environment("SSL_CERT_FILE"), environment("SSL_CERT_DIR")};
}

bool append(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl().slist_append(list.get(), line.c_str());
  if (longer == nullptr) return false;
  (void)list.release();
  list.reset(longer);
  return true;
}

// Null without memory.
HeaderList header_list(const HttpRequest& request) {
  HeaderList list;
  // Without this libcurl asks for "100 Continue" first, and waits a second for servers that do not
  // know it.
  bool is_whole = append(list, "Expect:");
  for (const HttpHeader& header : request.headers) {
    is_whole = is_whole && append(list, header.name + ": " + header.value);
  }
  return is_whole ? std::move(list) : HeaderList();
}

HttpFailure cancelled_after(uint64_t ns) {
  const uint64_t seconds = ns / kNsPerSecond;
  return {HttpFailureKind::Cancelled, seconds == 0
                                          ? "had not answered yet."
                                          : fmt::format("had not answered after {} s.", seconds)};
}

HttpFailure out_of_memory() {
  return {HttpFailureKind::Misconfigured, "not enough memory for a request."};
}

}  // namespace

struct CurlClient::Impl {
  CurlOptions options;
  Authorities authorities;
  Multi multi;  // keeps the connections; lives longer than `easy`
  Easy easy;
  char error_text[CURL_ERROR_SIZE] = {};
  uint64_t begin_ns = 0;       // of the request
  std::string proxy_variable;  // of its connection

  void set_fixed_options();
  void set_limits();
  void set_request(const HttpRequest& request, curl_slist* headers, ReplyReader& reader);
  CURLcode perform();
  CURLcode run_to_end();
  bool has_sent_all(const HttpRequest& request) const;
  CurlFacts facts(CURLcode code) const;
  HttpResult result(CURLcode code, const HttpRequest& request, const ReplyReader& reader) const;
  bool is_cancelled() const { return options.is_cancelled && options.is_cancelled(); }
};

CurlClient::CurlClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CurlClient::~CurlClient() = default;

Result<std::unique_ptr<CurlClient>> CurlClient::create(CurlOptions options) {
  if (auto loaded = load_curl(); !loaded) return tl::unexpected(loaded.error());
  const curl_version_info_data* version = curl().version_info(CURLVERSION_NOW);
  if ((version->features & CURL_VERSION_SSL) == 0) {
    return fail(ErrorCode::Unsupported, "this libcurl cannot do TLS");
  }
  auto impl = std::make_unique<Impl>();
  impl->authorities = chosen_authorities(options);
  impl->options = std::move(options);
  impl->multi.reset(curl().multi_init());
  impl->easy.reset(curl().easy_init());
  if (impl->multi == nullptr || impl->easy == nullptr) {
    return fail(ErrorCode::LimitExceeded, "not enough memory for libcurl");
  }
  impl->set_fixed_options();
  impl->set_limits();
  return std::unique_ptr<CurlClient>(new CurlClient(std::move(impl)));
}

void CurlClient::Impl::set_fixed_options() {
  CURL* handle = easy.get();
  curl().easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl().easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl().easy_setopt(handle, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl().easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  curl().easy_setopt(handle, CURLOPT_HTTP09_ALLOWED, 0L);
  curl().easy_setopt(handle, CURLOPT_SSL_VERIFYPEER, 1L);
  curl().easy_setopt(handle, CURLOPT_SSL_VERIFYHOST, 2L);
  curl().easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  // The key is for the server; a proxy sees it only where the DSN itself says http.
  curl().easy_setopt(handle, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  // What a proxy says to CONNECT is not the server's answer.
  curl().easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  if (!authorities.file.empty()) {
    curl().easy_setopt(handle, CURLOPT_CAINFO, authorities.file.c_str());
    curl().easy_setopt(handle, CURLOPT_PROXY_CAINFO, authorities.file.c_str());
  }
  if (!authorities.directory.empty()) {
    curl().easy_setopt(handle, CURLOPT_CAPATH, authorities.directory.c_str());
    curl().easy_setopt(handle, CURLOPT_PROXY_CAPATH, authorities.directory.c_str());
  }
  curl().easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_head_line);
  curl().easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl().easy_setopt(handle, CURLOPT_ERRORBUFFER, error_text);
  curl().easy_setopt(handle, CURLOPT_VERBOSE, 1L);
  curl().easy_setopt(handle, CURLOPT_DEBUGFUNCTION, on_words);
  curl().easy_setopt(handle, CURLOPT_DEBUGDATA, &proxy_variable);
}

// The option takes the place of the variables.
static std::string without_proxy_and_local() {
  std::string hosts = "localhost,127.0.0.1,::1";
  for (const char* variable : {"no_proxy", "NO_PROXY"}) {
    if (const char* named = std::getenv(variable)) return hosts + "," + named;
  }
  return hosts;
}

void CurlClient::Impl::set_limits() {
  CURL* handle = easy.get();
  curl().easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options.connect_time_out_s));
  curl().easy_setopt(handle, CURLOPT_TIMEOUT, static_cast<long>(options.whole_time_out_s));
  curl().easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(options.stall_bytes_per_s));
  curl().easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options.stall_time_s));
  if (options.passes_proxy_for_local) {
    curl().easy_setopt(handle, CURLOPT_NOPROXY, without_proxy_and_local().c_str());
  }
  curl().easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);  // time-outs of names without SIGALRM
  // A name that is still being looked up does not hold up the end (the thread is left behind).
  curl().easy_setopt(handle, CURLOPT_QUICK_EXIT, 1L);
}

void CurlClient::Impl::set_request(const HttpRequest& request, curl_slist* headers,
                                   ReplyReader& reader) {
  CURL* handle = easy.get();
  curl().easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl().easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
  curl().easy_setopt(handle, CURLOPT_POST, 1L);
  curl().easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.data());
  curl().easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  curl().easy_setopt(handle, CURLOPT_HEADERDATA, &reader);
  curl().easy_setopt(handle, CURLOPT_WRITEDATA, &reader);
  error_text[0] = '\0';
  begin_ns = os::monotonic_ns();
  proxy_variable.clear();
}

// curl_easy_perform, but able to stop within kPoll_ms. CURLE_ABORTED_BY_CALLBACK: cancelled.
CURLcode CurlClient::Impl::run_to_end() {
  int running = 1;
  for (;;) {
    if (curl().multi_perform(multi.get(), &running) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
    if (running == 0) break;
    if (is_cancelled()) return CURLE_ABORTED_BY_CALLBACK;
    if (curl().multi_poll(multi.get(), nullptr, 0, kPoll_ms, nullptr) != CURLM_OK) {
      return CURLE_OUT_OF_MEMORY;
    }
  }
  int messages_left = 0;
  const CURLMsg* message = curl().multi_info_read(multi.get(), &messages_left);
  const bool is_end = message != nullptr && message->msg == CURLMSG_DONE;
  return is_end ? message->data.result : CURLE_OUT_OF_MEMORY;
}

CURLcode CurlClient::Impl::perform() {
  if (curl().multi_add_handle(multi.get(), easy.get()) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
  const CURLcode code = run_to_end();
  curl().multi_remove_handle(multi.get(), easy.get());
  return code;
}

bool CurlClient::Impl::has_sent_all(const HttpRequest& request) const {
  curl_off_t sent = 0;
  curl().easy_getinfo(easy.get(), CURLINFO_SIZE_UPLOAD_T, &sent);
  return static_cast<uint64_t>(sent) >= request.body.size();
}

CurlFacts CurlClient::Impl::facts(CURLcode code) const {
  CurlFacts facts;
  facts.code = code;
  facts.text = error_text[0] != '\0' ? error_text : curl().easy_strerror(code);
  facts.ca_file = authorities.file;
  facts.proxy_variable = proxy_variable;
  facts.connect_time_out_s = options.connect_time_out_s;
  curl().easy_getinfo(easy.get(), CURLINFO_SSL_VERIFYRESULT, &facts.verify_result);
  curl().easy_getinfo(easy.get(), CURLINFO_HTTP_CONNECTCODE, &facts.proxy_status);
  curl_off_t connected_us = 0;
  curl().easy_getinfo(easy.get(), CURLINFO_PRETRANSFER_TIME_T, &connected_us);
  facts.was_connected = connected_us > 0;
  return facts;
}

// The head decides: an answer whose body is cut off, too slow or too long is an answer. But a 2xx
// before the server had the whole body is not believed.
HttpResult CurlClient::Impl::result(CURLcode code, const HttpRequest& request,
                                    const ReplyReader& reader) const {
  const bool is_success = reader.reply().status / 100 == 2;
  const bool has_answer = reader.has_whole_head() && (!is_success || has_sent_all(request));
  if (has_answer) return reader.reply();
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    return tl::unexpected(cancelled_after(os::monotonic_ns() - begin_ns));
  }
  if (code != CURLE_OK) return tl::unexpected(failure_of(facts(code)));
  // To libcurl a head without an end is an answer, too.
  return tl::unexpected(HttpFailure{HttpFailureKind::ConnectionLost, "its answer was cut off."});
}

HttpResult CurlClient::post(const HttpRequest& request) {
  const HeaderList headers = header_list(request);
  if (headers == nullptr) return tl::unexpected(out_of_memory());
  ReplyReader reader;
  impl_->set_request(request, headers.get(), reader);
  const CURLcode code = impl_->perform();
  const HttpResult result = impl_->result(code, request, reader);
  // What lived for this request only, the key among it, is not left behind.
  curl().easy_setopt(impl_->easy.get(), CURLOPT_HTTPHEADER, nullptr);
  return result;
}

}  // namespace sentry_prof::upload
