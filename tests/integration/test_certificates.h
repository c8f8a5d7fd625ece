// A certificate authority for one test, made by the openssl program.
#pragma once

#include "process.h"
#include "temporary_directory.h"

#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sentry_prof::testing {

class TestCertificates {
 public:
  TestCertificates() {
    run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", file("authority.key"), "-out", authority(), "-days", "30", "-subj",
         "/CN=sentry-prof test authority"});
  }

  std::string authority() const { return file("authority.pem"); }
  std::string file(const std::string& name) const { return folder_.file(name); }

  // NAME.pem and NAME.key, signed by the authority. `subject_name`: "IP:127.0.0.1" or "DNS:host".
  // Times as openssl has them: YYYYMMDDHHMMSSZ.
  void sign(const std::string& name, const std::string& subject_name,
            const std::string& begin = "20200101000000Z",
            const std::string& end = "20491231000000Z") {
    run({"openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", file(name + ".key"), "-out", file(name + ".csr"), "-subj",
         "/CN=" + name});
    write(
        "ca.conf",
        "[ca]\ndefault_ca = own\n[own]\ndatabase = " + file("index") +
            "\nserial = " + file("serial") + "\nnew_certs_dir = " + folder_.path() +
            "\ndefault_md = sha256\npolicy = any\nx509_extensions = leaf\nunique_subject = no\n"
            "[any]\ncommonName = supplied\n[leaf]\nbasicConstraints = CA:FALSE\nsubjectAltName = " +
            subject_name + "\n");
    write("index", "");
    run({"openssl", "ca", "-batch", "-notext", "-rand_serial", "-config", file("ca.conf"), "-cert",
         authority(), "-keyfile", file("authority.key"), "-startdate", begin, "-enddate", end,
         "-in", file(name + ".csr"), "-out", file(name + ".pem")});
  }

  void sign_by_itself(const std::string& name, const std::string& subject_name) {
    run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", file(name + ".key"), "-out", file(name + ".pem"), "-days", "30",
         "-subj", "/CN=" + name, "-addext", "subjectAltName=" + subject_name});
  }

 private:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
  }

  static void run(std::vector<std::string> arguments) {
    Command command;
    command.arguments = std::move(arguments);
    const CommandResult result = run_command(command);
    if (result.status() != 0) throw std::runtime_error("openssl: " + result.standard_error);
  }

  TemporaryDirectory folder_;
};

}  // namespace sentry_prof::testing
