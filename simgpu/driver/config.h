// The SIMGPU environment variable, parsed once: "devices=2,memory=8GiB,h2d=25GB/s,...". The keys,
// their units and defaults are listed in simgpu/README.md. A key or value that is not understood
// makes cuInit return CUDA_ERROR_INVALID_VALUE after one sentence on stderr that names it.

#ifndef SIMGPU_DRIVER_CONFIG_H_
#define SIMGPU_DRIVER_CONFIG_H_

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

namespace simgpu {

struct Fault {  // fail=FUNCTION:N:CODE
  std::string function;
  uint64_t nth = 0;  // 1 is the first call
  CUresult code = CUDA_SUCCESS;
};

struct Config {
  int devices = 1;
  uint64_t memory_bytes = uint64_t{8} << 30;  // per device
  double h2d_bytes_per_second = 25e9;
  double d2h_bytes_per_second = 25e9;
  double duplex = 1.0;  // each direction's rate is multiplied by it while both run
  double memory_bytes_per_second = 1e12;  // device memory bandwidth
  double flops = 20e12;
  double launch_seconds = 4e-6;
  bool adversarial = false;  // order=eager|adversarial
  uint64_t seed = 0;
  bool race = false;
  bool verbose = false;
  bool report = false;             // one summary of virtual time and traffic at exit
  std::string report_path;         // empty: stderr
  std::string guard = "auto";      // auto | pkey | mprotect | off
  std::string directory;           // where the node's shared state lives; default under /dev/shm
  std::vector<std::string> twins;  // shared objects with extra host twins
  uint64_t out_of_memory_after_bytes = 0;  // 0: never
  std::vector<Fault> faults;
};

// The parsed configuration; `error` empty, or the sentence to print.
const Config& GetConfig();
const std::string& ConfigError();

// Parses `text`; for tests and for GetConfig. Returns an empty string or the sentence.
std::string ParseConfig(const std::string& text, Config* config);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_CONFIG_H_
