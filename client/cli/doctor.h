// What `tidemark doctor` looks at, apart from how it finds out: facts in, findings out, so that a
// test can give it any world. Threads: stateless.

#ifndef TIDEMARK_CLIENT_CLI_DOCTOR_H_
#define TIDEMARK_CLIENT_CLI_DOCTOR_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::client {

struct Facts {
  std::string preload_path;   // "": not found
  std::string preload_error;  // of the loader, "" if it loads
  std::string driver_path;    // "": not found
  std::string driver_error;   // of opening or cuInit
  int driver_version = 0;     // as cuDriverGetVersion
  int devices = 0;
  int devices_with_vmm = 0;       // virtual memory management and file descriptor handles
  int devices_with_host_vmm = 0;  // VMM of host memory
  std::string admin_address;
  std::string admin_barred;  // the sentence, when permissions keep this user out
  bool daemon_answers = false;
  std::string daemon_version;
  std::string own_version;
  uint64_t memlock_bytes = 0;  // UINT64_MAX: unlimited
  uint64_t open_files = 0;     // hard limit
  uint64_t host_available_bytes = 0;
  uint64_t shm_bytes = 0;  // size of /dev/shm
};

enum class Verdict { kGood, kWarning, kBad };

struct Finding {
  Verdict verdict;
  std::string sentence;  // with threshold and remedy unless good
};

std::vector<Finding> Examine(const Facts& facts);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_DOCTOR_H_
