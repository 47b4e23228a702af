// `tidemark run`: starts a command with the preloaded library, passes its signals and its exit
// status on, and names the next useful command. Threads: one; the handler only forwards a signal.

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/connection.h"
#include "client/cli/install.h"
#include "client/cli/sockets.h"
#include "client/cli/text.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

volatile sig_atomic_t g_child = 0;

void Forward(int signal) {
  if (g_child > 0) kill(g_child, signal);
}

int Complain(const std::string& sentence, int status) {
  absl::FPrintF(stderr, "tidemark: %s\n", sentence);
  return status;
}

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void PutFirst(const char* name, const std::string& entry) {
  const std::string before = Environment(name);
  setenv(name, before.empty() ? entry.c_str() : absl::StrCat(entry, ":", before).c_str(), 1);
}

// Passes a size flag on as `variable`; returns the sentence on what is wrong, or "".
std::string PassBytes(const Invocation& call, const char* flag, const char* variable) {
  if (!call.has(flag)) return "";
  uint64_t bytes = 0;
  // The share is resolved in the job, which knows its devices; any whole serves to check the form.
  std::string wrong = ParseBytes(call.value(flag), uint64_t{1} << 40, flag, &bytes);
  if (wrong.empty() && bytes == 0) wrong = absl::StrCat(flag, " must be more than 0");
  if (wrong.empty()) setenv(variable, call.value(flag).c_str(), 1);
  return wrong;
}

// Which daemon the job will find; without flag and variable it looks by itself, as JobSocket does.
// Returns whether there is one.
bool ChooseSocket(const Invocation& call) {
  if (call.has("--standalone")) {
    setenv("TIDEMARK_SOCKET", "", 1);
    return false;
  }
  std::string socket = call.value("--socket", Environment("TIDEMARK_SOCKET"));
  if (!socket.empty()) setenv("TIDEMARK_SOCKET", socket.c_str(), 1);
  if (socket.empty() || socket == "auto") {
    unsetenv("TIDEMARK_SOCKET");
    socket = JobSocket();
  }
  const Door door = Knock(socket, SOCK_SEQPACKET);
  if (door == Door::kOpen) return true;
  const char* why = door == Door::kForeign  ? "neither root nor this user listens on"
                    : door == Door::kBarred ? "this user may not use"
                                            : "no tidemarkd on";
  absl::FPrintF(stderr, "tidemark: %s %s; the job runs standalone, within %s\n", why, socket,
                call.has("--budget") ? "its budget" : "the whole device");
  return false;
}

// The job's pid for scripts that will signal it; complete when the file is there. Returns the
// sentence on what is wrong, or "".
std::string WritePid(const std::string& path, pid_t pid) {
  const std::string fresh = path + ".new";
  FILE* file = fopen(fresh.c_str(), "we");
  bool written = file != nullptr && fprintf(file, "%d\n", pid) > 0;
  if (file != nullptr) written = fclose(file) == 0 && written;
  if (written && rename(fresh.c_str(), path.c_str()) == 0) return "";
  return absl::StrCat("cannot write --pid-file '", path, "': ", strerror(errno));
}

// Fills the job's environment; returns the sentence on what is wrong, or "".
std::string Prepare(const Invocation& call) {
  for (auto [flag, variable] : {std::pair{"--budget", "TIDEMARK_BUDGET"},
                                std::pair{"--host-budget", "TIDEMARK_HOST_BUDGET"}}) {
    if (std::string wrong = PassBytes(call, flag, variable); !wrong.empty()) return wrong;
  }
  const std::string preload = PreloadLibrary();
  if (preload.empty())
    return "libtidemark_preload.so is not beside this command; build or install it";
  if (call.has("--simgpu")) {
    const std::string directory = SimgpuDirectory();
    if (directory.empty()) return "--simgpu: the software GPU is not installed beside this command";
    PutFirst("LD_LIBRARY_PATH", directory);
    if (!call.value("--simgpu").empty()) setenv("SIMGPU", call.value("--simgpu").c_str(), 1);
  }
  if (call.has("--job")) setenv("TIDEMARK_JOB_NAME", call.value("--job").c_str(), 1);
  if (Environment("TIDEMARK_LIBCUDA").empty()) {
    const std::string driver = RealDriver(Environment("LD_LIBRARY_PATH"));
    if (!driver.empty()) setenv("TIDEMARK_LIBCUDA", driver.c_str(), 1);
  }
  const std::string alias = AliasLibrary();
  if (!alias.empty()) PutFirst("LD_PRELOAD", alias);
  PutFirst("LD_PRELOAD", preload);
  return "";
}

[[noreturn]] void Execute(const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  const int error = errno;
  // The loader would complain about our library in this shell's name otherwise.
  absl::FPrintF(stderr, "tidemark: cannot run '%s': %s\n", command[0], strerror(error));
  _exit(error == ENOENT ? 127 : 126);
}

int Wait(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  g_child = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int RunJob(const Invocation& call) {
  if (std::string wrong = Prepare(call); !wrong.empty()) return Complain(wrong, kUsage);
  const bool attached = ChooseSocket(call);
  fflush(stdout);
  const pid_t child = fork();
  if (child < 0)
    return Complain(absl::StrCat("cannot start a process: ", strerror(errno)), kFailed);
  if (child == 0) Execute(call.arguments);
  g_child = child;
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) ::signal(signal, Forward);
  if (call.has("--pid-file")) {
    // The job is not at fault and runs on.
    if (std::string wrong = WritePid(call.value("--pid-file"), child); !wrong.empty())
      Complain(wrong, kFailed);
  }
  const int status = Wait(child);
  const bool by_itself = status != 0 && status <= 128;  // not ended by a signal from outside
  const char* next = attached && !by_itself ? "tidemark events" : "tidemark doctor";
  absl::FPrintF(stderr, "tidemark: %s (pid %d) ended with %d; next: %s\n", call.arguments[0], child,
                status, next);
  return status;
}

}  // namespace

const Verb kRun = {
    "run",
    "-- COMMAND [ARGUMENT...]",
    "run a command past its GPU memory",
    "The command needs no change. With a tidemarkd its memory comes from the node's pool; without "
    "one it\n"
    "keeps to --budget by itself.\n\n"
    "  tidemark run -- python train.py\n"
    "  tidemark run --budget 40% --job nightly -- ./train\n"
    "  tidemark run --simgpu=memory=2GiB -- ./train      on the software GPU, without hardware",
    {{"--budget", Takes::kValue, "BYTES|%", "the policy's",
      "device memory the job may hold per GPU: 4GiB, 40%"},
     {"--host-budget", Takes::kValue, "BYTES", "the policy's",
      "host memory for what left the device"},
     {"--job", Takes::kValue, "NAME", "the program's name", "name in jobs, metrics and policy"},
     {"--socket", Takes::kValue, "PATH", "this user's tidemarkd, else the node's",
      "tidemarkd's socket for jobs"},
     {"--pid-file", Takes::kValue, "FILE", "", "write the job's process id to FILE at its start"},
     {"--standalone", Takes::kNothing, "", "", "without tidemarkd"},
     {"--simgpu", Takes::kOptionalValue, "SPEC", "",
      "on the software GPU; SPEC as in simgpu/README.md"}},
    1,
    -1,
    RunJob};

}  // namespace tidemark::client
