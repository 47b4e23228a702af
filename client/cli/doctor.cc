// Findings from facts; see doctor.h. Threads: stateless.

#include "client/cli/doctor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text.h"

namespace tidemark::client {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kLeastMemlock = kGiB;
constexpr uint64_t kLeastFiles = 16384;
constexpr uint64_t kLeastHost = 4 * kGiB;
constexpr uint64_t kLeastShm = 64 << 20;
constexpr int kLeastDriver = 12020;

Finding Good(std::string sentence) { return {Verdict::kGood, std::move(sentence)}; }
Finding Warning(std::string sentence) { return {Verdict::kWarning, std::move(sentence)}; }
Finding Bad(std::string sentence) { return {Verdict::kBad, std::move(sentence)}; }

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

Finding Preload(const Facts& facts) {
  if (facts.preload_path.empty()) {
    return Bad(
        "libtidemark_preload.so is not beside this command; build or install Tidemark again");
  }
  if (!facts.preload_error.empty())
    return Bad(absl::StrCat("the preloaded library does not load: ", facts.preload_error));
  return Good(absl::StrCat("the preloaded library loads: ", facts.preload_path));
}

Finding Driver(const Facts& facts) {
  if (facts.driver_path.empty()) {
    return Bad(
        "no libcuda.so.1 was found; install NVIDIA's driver, set TIDEMARK_LIBCUDA, or use "
        "`tidemark run --simgpu`");
  }
  if (!facts.driver_error.empty())
    return Bad(absl::StrCat(facts.driver_path, ": ", facts.driver_error));
  if (facts.driver_version < kLeastDriver) {
    return Bad(absl::StrCat("the driver ", facts.driver_path, " speaks CUDA ",
                            VersionText(facts.driver_version), "; ", VersionText(kLeastDriver),
                            " or newer is needed to map host memory; update it"));
  }
  return Good(absl::StrCat("the driver ", facts.driver_path, " speaks CUDA ",
                           VersionText(facts.driver_version)));
}

Finding Devices(const Facts& facts) {
  if (facts.devices == 0) return Bad("the driver shows no device; check CUDA_VISIBLE_DEVICES");
  if (facts.devices_with_vmm < facts.devices || facts.devices_with_host_vmm < facts.devices) {
    return Bad(absl::StrFormat(
        "%d of %d devices can map memory by handle and %d can map host memory; on the "
        "others Tidemark passes everything through",
        facts.devices_with_vmm, facts.devices, facts.devices_with_host_vmm));
  }
  return Good(
      absl::StrFormat("%d device(s), all with virtual memory management for device and host memory",
                      facts.devices));
}

Finding Daemon(const Facts& facts) {
  if (!facts.admin_barred.empty()) return Warning(facts.admin_barred);
  if (!facts.daemon_answers) {
    return Warning(absl::StrCat("tidemarkd does not answer on ", facts.admin_address,
                                "; jobs run standalone, each "
                                "within its own --budget; start tidemarkd to share the node"));
  }
  if (facts.daemon_version != facts.own_version) {
    return Warning(absl::StrCat("tidemarkd is version ", facts.daemon_version, " and this command ",
                                facts.own_version, "; restart tidemarkd after an update"));
  }
  return Good(
      absl::StrCat("tidemarkd ", facts.daemon_version, " answers on ", facts.admin_address));
}

Finding AtLeast(const char* what, uint64_t value, uint64_t least, const char* remedy) {
  const std::string has = value == UINT64_MAX ? "unlimited" : HumanBytes(value);
  if (value >= least) return Good(absl::StrCat(what, ": ", has));
  return Warning(absl::StrCat(what, ": ", has, ", below ", HumanBytes(least), "; ", remedy));
}

Finding Files(const Facts& facts) {
  if (facts.open_files >= kLeastFiles)
    return Good(absl::StrCat("open files: up to ", facts.open_files));
  return Warning(absl::StrCat("open files: up to ", facts.open_files, ", below ", kLeastFiles,
                              "; a chunk in transit takes one, raise `ulimit -Hn`"));
}

}  // namespace

std::vector<Finding> Examine(const Facts& facts) {
  std::vector<Finding> findings = {Preload(facts), Driver(facts)};
  if (findings.back().verdict != Verdict::kBad) findings.push_back(Devices(facts));
  findings.push_back(Daemon(facts));
  findings.push_back(AtLeast("locked memory", facts.memlock_bytes, kLeastMemlock,
                             "a real driver pins host memory under it, raise `ulimit -l`"));
  findings.push_back(Files(facts));
  findings.push_back(AtLeast("available host memory", facts.host_available_bytes, kLeastHost,
                             "little can leave the device, free some or lower the job's size"));
  findings.push_back(AtLeast("/dev/shm", facts.shm_bytes, kLeastShm,
                             "NCCL and the software GPU need more, give the container --shm-size"));
  return findings;
}

}  // namespace tidemark::client
