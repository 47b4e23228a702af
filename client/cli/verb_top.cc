// `tidemark top`: the node, live, in the terminal. Threads: one; the handler only sets a flag.

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/connection.h"
#include "client/cli/node_text.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

volatile sig_atomic_t g_stop = 0;
void Stop(int) { g_stop = 1; }

int Columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 160;
}

// The alternate screen, so that the shell's text is there again afterwards.
class Screen {
 public:
  Screen() { absl::PrintF("\x1b[?1049h\x1b[?25l"); }
  ~Screen() {
    absl::PrintF("\x1b[?25h\x1b[?1049l");
    fflush(stdout);
  }
  void Show(const std::string& text) {
    absl::PrintF("\x1b[H\x1b[J%s\n(Ctrl-C ends)", text);
    fflush(stdout);
  }
};

int Live(const Invocation& call, absl::Duration interval) {
  struct sigaction stop = {};
  stop.sa_handler = Stop;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &stop, nullptr);
  {
    Screen screen;
    v1::GetNodeResponse before;
    absl::Time then = absl::Now();
    while (!g_stop) {
      v1::GetNodeResponse node;
      const grpc::Status status = Connect(call)->GetNode(Deadline().get(), {}, &node);
      if (!status.ok() && !g_stop) {
        screen.Show(absl::StrCat("tidemarkd does not answer on ", AdminAddress(call),
                                 "; waiting for it\n"));
      } else {
        const absl::Time now = absl::Now();
        screen.Show(TopText(node, before, absl::ToDoubleSeconds(now - then), Columns()));
        before = std::move(node);
        then = now;
      }
      poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(interval)));
    }
  }
  return kOk;
}

int Once(const Invocation& call) {
  v1::GetNodeResponse node;
  if (int failed = Ask(call, &v1::Admin::Stub::GetNode, v1::GetNodeRequest(), &node); failed != kOk)
    return failed;
  if (call.json()) return PrintJson(node);
  absl::PrintF("%s", TopText(node, node, 0, Columns()));
  return kOk;
}

int Top(const Invocation& call) {
  double seconds = 0;
  if (!absl::SimpleAtod(call.value("--interval", "1"), &seconds) ||
      !(seconds >= 0.1 && seconds <= 3600)) {
    absl::FPrintF(stderr, "tidemark: --interval '%s' is not accepted; 0.1 to 3600 seconds are\n",
                  call.value("--interval"));
    return kUsage;
  }
  if (call.has("--once") || call.json() || !isatty(STDOUT_FILENO)) return Once(call);
  v1::GetVersionResponse version;
  if (int failed = Ask(call, &v1::Admin::Stub::GetVersion, v1::GetVersionRequest(), &version);
      failed != kOk) {
    return failed;
  }
  return Live(call, absl::Seconds(seconds));
}

}  // namespace

const Verb kTop = {
    "top",
    "",
    "the node and its jobs, live in the terminal",
    "",
    {{"--once", Takes::kNothing, "", "", "print one screen and end; so it is when piped"},
     {"--interval", Takes::kValue, "SECONDS", "1", "time between looks"}},
    0,
    0,
    Top};

}  // namespace tidemark::client
