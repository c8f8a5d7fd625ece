#include "sentry_server.h"

#include "text_file.h"

#include <fstream>
#include <stdexcept>

namespace sentry_prof::testing {

SentryServer::SentryServer(const std::string& script, const std::string& certificate,
                           const std::string& key)
    : is_encrypted_(!certificate.empty()) {
  std::ofstream(folder_.file("script")) << script;
  Command command;
  command.arguments = {"python3",  SENTRY_PROF_TEST_SERVER, "--folder", folder_.path(),
                       "--script", folder_.file("script")};
  if (is_encrypted_) {
    for (const std::string& argument :
         {std::string("--certificate"), certificate, std::string("--key"), key}) {
      command.arguments.push_back(argument);
    }
  }
  process_ = std::make_unique<BackgroundProcess>(command);
  const bool has_started = wait_until(
      [&] { return !contents_of(folder_.file("port")).empty() || !process_->is_running(); });
  const std::string port = contents_of(folder_.file("port"));
  if (!has_started || port.empty()) {
    throw std::runtime_error("the test server does not start: " + process_->standard_error());
  }
  port_ = std::stoi(port);
}

std::string SentryServer::origin(const std::string& userinfo) const {
  return (is_encrypted_ ? "https://" : "http://") + userinfo + "127.0.0.1:" + std::to_string(port_);
}

std::string SentryServer::url() const { return origin("") + "/api/42/envelope/"; }
std::string SentryServer::dsn(const std::string& key) const { return origin(key + "@") + "/42"; }

std::vector<KeptRequest> SentryServer::requests() const {
  std::vector<KeptRequest> result;
  for (size_t number = 1;; ++number) {
    const std::string name = folder_.file(std::to_string(number));
    std::string facts = contents_of(name + ".json");
    if (facts.empty()) return result;
    result.push_back({std::move(facts), contents_of(name + ".body")});
  }
}

}  // namespace sentry_prof::testing
