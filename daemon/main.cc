// tidemarkd's entry point: settings, driver, state folder, sockets, then the session loop until
// SIGTERM. Every way to fail is one sentence on stderr and a non-zero exit.
//
// Threads: this one runs the session loop; the admin service and the metrics bring their own.

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/admin_server.h"
#include "daemon/broker.h"
#include "daemon/byte_text.h"
#include "daemon/config.h"
#include "daemon/device_list.h"
#include "daemon/device_usage.h"
#include "daemon/metrics_server.h"
#include "daemon/service_notify.h"
#include "daemon/session_loop.h"
#include "daemon/state_dir.h"
#include "kernels/driver.h"

namespace tidemark::daemon {
namespace {

constexpr int kExitCannotServe = 1;
constexpr int kExitBadSettings = 2;

void Say(const std::string& sentence) { std::fprintf(stderr, "tidemarkd: %s\n", sentence.c_str()); }

std::atomic<SessionLoop*> loop_of_signals = nullptr;
std::atomic<bool> reload_wanted = false;

void OnSignal(int number) {
  SessionLoop* loop = loop_of_signals.load();
  if (loop == nullptr) return;
  const int saved = errno;
  if (number == SIGHUP) {
    reload_wanted = true;
    loop->Wake();
  } else {
    loop->Stop();
  }
  errno = saved;
}

void CatchSignals(SessionLoop* loop) {
  loop_of_signals = loop;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  signal(SIGPIPE, SIG_IGN);  // a log reader that went away is no reason to die
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaction(number, &action, nullptr);
}

// A leased chunk may cost the driver a descriptor in this process.
void RaiseDescriptorLimit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

absl::Status OpenDriver(const Config& config, kernels::Driver* driver, std::string* path) {
  char found[4096] = {};
  if (!config.libcuda.empty()) {
    *path = config.libcuda;
  } else if (kernels::FindDriver(nullptr, found, sizeof(found))) {
    *path = found;
  } else {
    return absl::NotFoundError(
        "no CUDA driver: libcuda.so.1 is not where the loader looks; name it with --libcuda PATH "
        "or "
        "TIDEMARK_LIBCUDA");
  }
  if (const char* sentence = kernels::OpenDriver(path->c_str(), driver)) {
    return absl::UnavailableError(
        absl::StrCat(sentence, "; name another driver with --libcuda PATH or TIDEMARK_LIBCUDA"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Hardware> OpenHardware(const Config& config, kernels::Driver* driver) {
  Hardware hardware;
  hardware.driver = driver;
  if (absl::Status status = OpenDriver(config, driver, &hardware.driver_path); !status.ok()) {
    return status;
  }
  absl::StatusOr<std::vector<ManagedDevice>> devices = ListDevices(*driver);
  if (!devices.ok()) {
    return absl::Status(devices.status().code(),
                        absl::StrCat(hardware.driver_path, ": ", devices.status().message()));
  }
  hardware.devices = *std::move(devices);
  absl::StatusOr<uint64_t> chunk = ChunkBytes(*driver, hardware.devices, config.chunk_bytes);
  if (!chunk.ok()) return chunk.status();
  hardware.chunk_bytes = *chunk;
  return hardware;
}

std::string Serving(const Config& config, const Hardware& hardware, const NodeSnapshot& node) {
  std::vector<std::string> names;
  for (const ManagedDevice& device : hardware.devices) {
    names.push_back(absl::StrCat(device.name, " (", ReadableBytes(device.total_bytes), ")"));
  }
  return absl::StrCat("serves ", absl::StrJoin(names, ", "), " and ",
                      ReadableBytes(node.host_budget_bytes), " of pinned host memory on ",
                      config.socket, ", admin on ", config.admin.listen, ", metrics on ",
                      config.metrics_listen.empty() ? "nothing" : config.metrics_listen,
                      ", driver ", hardware.driver_path);
}

void WarnOfMemlock(const NodeSnapshot& node) {
  const HostMemory memory = ReadHostMemory();
  if (geteuid() == 0 || memory.memlock_bytes >= node.host_budget_bytes) return;
  Say(absl::StrCat("the memlock limit ", ReadableBytes(memory.memlock_bytes),
                   " is below the host budget ", ReadableBytes(node.host_budget_bytes),
                   "; a driver that charges pinned memory will refuse beyond it (ulimit -l, "
                   "LimitMEMLOCK=)"));
}

void Reload(const CommandLine& line, Config* config, Broker* broker) {
  const Environment environment = ProcessEnvironment();
  absl::StatusOr<Config> loaded = LoadConfig(line, geteuid(), environment);
  if (!loaded.ok()) {
    const std::string sentence =
        absl::StrCat("reload refused, nothing changed: ", loaded.status().message());
    broker->AddEvent("reload_refused", kNobody, sentence);
    return Say(sentence);
  }
  std::string sentence = "settings reloaded";
  if (const std::vector<std::string> late = NeedRestart(*config, *loaded); !late.empty()) {
    absl::StrAppend(&sentence, "; a restart is needed for ", absl::StrJoin(late, ", "));
  }
  config->broker = loaded->broker;
  broker->Reconfigure(config->broker);
  broker->AddEvent("settings_reloaded", kNobody, sentence);
  Say(sentence);
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Whoever owns the folder can put a socket of theirs in the place of ours.
absl::Status CheckFolderOwner(const std::string& folder) {
  struct stat facts = {};
  if (stat(folder.c_str(), &facts) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("looking at the folder ", folder));
  }
  if (facts.st_uid == 0 || facts.st_uid == geteuid()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the folder ", folder, " belongs to user ", facts.st_uid,
                   ", who could put another socket in the place of ours; name a folder of user ",
                   geteuid(), " or of root with --socket and --admin_listen"));
}

absl::Status MakeSocketFolders(const Config& config) {
  std::vector<std::string> paths = {config.socket};
  const std::string& admin = config.admin.listen;
  if (admin.rfind("unix:", 0) == 0) paths.push_back(admin.substr(5));
  if (admin.rfind('/', 0) == 0) paths.push_back(admin);
  for (const std::string& path : paths) {
    const std::string folder = FolderOf(path);
    if (folder.empty()) continue;
    if (absl::Status status = MakeFolders(folder, 0755); !status.ok()) return status;
    if (absl::Status status = CheckFolderOwner(folder); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Serve(const CommandLine& line, Config config) {
  if (absl::Status status = CheckSocketPath(config.socket); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<StateDir>> state = StateDir::Open(config.state_dir);
  if (!state.ok()) return state.status();
  for (const std::string& complaint : (*state)->complaints()) Say(complaint);
  RaiseDescriptorLimit();
  kernels::Driver driver;
  absl::StatusOr<Hardware> hardware = OpenHardware(config, &driver);
  if (!hardware.ok()) return hardware.status();
  absl::StatusOr<std::unique_ptr<DeviceUsage>> usage =
      DeviceUsage::Open(config.libnvidia_ml, hardware->devices);
  // One that was asked for by name must be there; on its own it is a bonus.
  if (!usage.ok() && !config.libnvidia_ml.empty()) return usage.status();
  Surroundings world;
  if (usage.ok()) {
    world.used_bytes = [&usage](uint32_t device) { return (*usage)->UsedBytes(device); };
  }
  Broker broker(*hardware, state->get(), config.broker, world);
  if (absl::Status status = MakeSocketFolders(config); !status.ok()) return status;
  absl::StatusOr<std::unique_ptr<SessionLoop>> loop = SessionLoop::Open(config.socket, &broker);
  if (!loop.ok()) return loop.status();
  absl::StatusOr<std::unique_ptr<AdminServer>> admin = AdminServer::Start(config.admin, broker);
  if (!admin.ok()) return admin.status();
  std::unique_ptr<MetricsServer> metrics;
  if (!config.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<MetricsServer>> started =
        MetricsServer::Start(config.metrics_listen, broker);
    if (!started.ok()) return started.status();
    metrics = *std::move(started);
  }
  CatchSignals(loop->get());
  const std::string sentence = Serving(config, *hardware, broker.Snapshot());
  Say(sentence);
  WarnOfMemlock(broker.Snapshot());
  broker.AddEvent("daemon_started", kNobody, absl::StrCat("tidemarkd ", sentence));
  for (const std::string& complaint : (*state)->complaints()) {
    broker.AddEvent("state_set_aside", kNobody, complaint);
  }
  NotifyService(absl::StrCat("READY=1\nSTATUS=", sentence));
  (*loop)->Run([&] {
    if (reload_wanted.exchange(false)) Reload(line, &config, &broker);
  });
  NotifyService("STOPPING=1");
  loop_of_signals = nullptr;
  (*admin)->Stop();
  Say("ended; jobs run on with what they hold");
  return absl::OkStatus();
}

int Fail(const absl::Status& status, int code) {
  Say(std::string(status.message()));
  return code;
}

int Main(const std::vector<std::string>& arguments) {
  const Environment environment = ProcessEnvironment();
  const uid_t uid = geteuid();
  absl::StatusOr<CommandLine> line = ParseCommandLine(arguments, environment);
  if (!line.ok()) return Fail(line.status(), kExitBadSettings);
  const Config defaults = DefaultConfig(uid, environment);
  if (line->action == CommandLine::Action::kHelp) {
    std::fputs(HelpText(defaults).c_str(), stdout);
    return 0;
  }
  if (line->action == CommandLine::Action::kVersion) {
    std::printf("tidemarkd %s, wire version %d\n", TIDEMARK_VERSION, TM_WIRE_VERSION);
    return 0;
  }
  absl::StatusOr<Config> config = LoadConfig(*line, uid, environment);
  if (!config.ok()) return Fail(config.status(), kExitBadSettings);
  if (line->action == CommandLine::Action::kPrint) {
    std::fputs(ConfigText(*config, defaults).c_str(), stdout);
    return 0;
  }
  if (line->action == CommandLine::Action::kCheck) {
    absl::Status socket = CheckSocketPath(config->socket);
    if (!socket.ok()) return Fail(socket, kExitBadSettings);
    std::puts("tidemarkd: the settings are accepted");
    return 0;
  }
  absl::Status served = Serve(*line, *std::move(config));
  return served.ok() ? 0 : Fail(served, kExitCannotServe);
}

}  // namespace
}  // namespace tidemark::daemon

int main(int argc, char** argv) {
  return tidemark::daemon::Main(std::vector<std::string>(argv + 1, argv + argc));
}
