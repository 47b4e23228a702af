// `tidemark doctor`: gathers the facts and prints the findings. Threads: one.

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/connection.h"
#include "client/cli/doctor.h"
#include "client/cli/install.h"
#include "client/cli/verb.h"
#include "kernels/driver.h"

namespace tidemark::client {
namespace {

void AskDevices(const kernels::Driver& driver, Facts* facts) {
  driver.cuDeviceGetCount(&facts->devices);
  for (int i = 0; i < facts->devices; ++i) {
    int vmm = 0;
    int fds = 0;
    int host = 0;
    driver.cuDeviceGetAttribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, i);
    driver.cuDeviceGetAttribute(&fds,
                                CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, i);
    driver.cuDeviceGetAttribute(
        &host, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, i);
    facts->devices_with_vmm += vmm != 0 && fds != 0;
    facts->devices_with_host_vmm += host != 0;
  }
}

void AskDriver(Facts* facts) {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  facts->driver_path = RealDriver(path == nullptr ? "" : path);
  if (facts->driver_path.empty()) return;
  static kernels::Driver driver;
  const char* wrong = kernels::OpenDriver(facts->driver_path.c_str(), &driver);
  if (wrong != nullptr) {
    facts->driver_error = wrong;
    return;
  }
  driver.cuDriverGetVersion(&facts->driver_version);
  const CUresult result = driver.cuInit(0);
  if (result != CUDA_SUCCESS) {
    facts->driver_error = absl::StrCat("cuInit answers ", static_cast<int>(result));
    return;
  }
  AskDevices(driver, facts);
}

void AskDaemon(const Invocation& call, Facts* facts) {
  facts->admin_address = AdminAddress(call);
  facts->admin_barred = WhyBarred(facts->admin_address);
  v1::GetVersionResponse version;
  const grpc::Status status =
      Connect(call)->GetVersion(Deadline(absl::Seconds(2)).get(), {}, &version);
  facts->daemon_answers = status.ok();
  facts->daemon_version = version.version();
  facts->own_version = TIDEMARK_VERSION;
}

void AskPreload(Facts* facts) {
  facts->preload_path = PreloadLibrary();
  if (facts->preload_path.empty()) return;
  void* library = dlopen(facts->preload_path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) facts->preload_error = dlerror();
}

uint64_t MemAvailable() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    uint64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return 0;
}

void AskSystem(Facts* facts) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    facts->memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
  }
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts->open_files = limit.rlim_max;
  facts->host_available_bytes = MemAvailable();
  struct statvfs shm = {};
  if (statvfs("/dev/shm", &shm) == 0) facts->shm_bytes = uint64_t{shm.f_blocks} * shm.f_frsize;
}

const char* Word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood:
      return "ok";
    case Verdict::kWarning:
      return "warning";
    case Verdict::kBad:
      return "BAD";
  }
  return "";
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

int Doctor(const Invocation& call) {
  Facts facts;
  if (call.has("--simgpu")) setenv("LD_LIBRARY_PATH", SimgpuDirectory().c_str(), 1);
  AskDriver(&facts);  // before the preloaded library is opened, which bears the same soname
  AskDaemon(call, &facts);
  AskPreload(&facts);
  AskSystem(&facts);
  int status = kOk;
  const char* separator = "[";
  for (const Finding& finding : Examine(facts)) {
    if (finding.verdict == Verdict::kBad) status = kFailed;
    if (call.json()) {
      absl::PrintF("%s{\"verdict\": \"%s\", \"sentence\": %s}", separator, Word(finding.verdict),
                   Quoted(finding.sentence));
      separator = ",\n ";
    } else {
      absl::PrintF("%-8s %s\n", Word(finding.verdict), finding.sentence);
    }
  }
  if (call.json()) absl::PrintF("]\n");
  return status;
}

}  // namespace

const Verb kDoctor = {"doctor",
                      "",
                      "look for what keeps Tidemark from working, and say the remedy",
                      "Exits 1 when something is BAD, 0 otherwise.",
                      {{"--simgpu", Takes::kNothing, "", "", "examine the software GPU"}},
                      0,
                      0,
                      Doctor};

}  // namespace tidemark::client
