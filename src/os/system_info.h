// What machine and system this is, for a profile's `os` and `device`.
#pragma once

#include <string>
#include <string_view>

namespace sentry_prof::os {

struct SystemInfo {
  std::string name;          // "Linux"
  std::string version;       // "6.1.0"
  std::string build;         // "18-amd64"; may be empty
  std::string host_name;     // as uname names it
  std::string architecture;  // as uname names it: "x86_64", "aarch64"
  std::string manufacturer;  // DMI; empty where there is none (virtual machines, ARM boards)
  std::string model;
};

struct KernelRelease {
  std::string version;
  std::string build;
};

// Splits "6.1.0-18-amd64" behind the dotted numbers.
KernelRelease split_kernel_release(std::string_view release);

// From uname(2) and /sys/class/dmi/id. What cannot be read is empty.
SystemInfo read_system_info();

}  // namespace sentry_prof::os
