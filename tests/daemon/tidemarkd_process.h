// The real tidemarkd as a child process, and systemd's end of its notifications.

#ifndef TIDEMARK_TESTS_DAEMON_TIDEMARKD_PROCESS_H_
#define TIDEMARK_TESTS_DAEMON_TIDEMARKD_PROCESS_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/unique_fd.h"

namespace tidemark::daemon {

inline constexpr int kPatienceMilliseconds = 20000;

inline bool Eventually(const std::function<bool()>& claim) {
  const absl::Time deadline = absl::Now() + absl::Milliseconds(kPatienceMilliseconds);
  while (!claim()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

// systemd's end of $NOTIFY_SOCKET.
class NotifySocket {
 public:
  explicit NotifySocket(std::string path) : path_(std::move(path)) {
    unlink(path_.c_str());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::copy(path_.begin(), path_.end(), address.sun_path);
    fd_ = UniqueFd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  const std::string& path() const { return path_; }
  // The next message, empty when none comes.
  std::string Next(int patience_ms = kPatienceMilliseconds) {
    pollfd waited = {fd_.get(), POLLIN, 0};
    char text[4096];
    if (poll(&waited, 1, patience_ms) != 1) return "";
    const ssize_t got = recv(fd_.get(), text, sizeof(text), 0);
    return got > 0 ? std::string(text, static_cast<size_t>(got)) : "";
  }

 private:
  std::string path_;
  UniqueFd fd_;
};

class Process {
 public:
  Process(std::vector<std::string> arguments, const std::string& log, const std::string& notify) {
    std::vector<char*> argv = {const_cast<char*>(TIDEMARKD)};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    setenv("NOTIFY_SOCKET", notify.c_str(), 1);
    execv(TIDEMARKD, argv.data());
    _exit(127);
  }
  ~Process() {
    if (pid_ > 0) Kill(SIGKILL), Wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Kill(int number) { kill(pid_, number); }
  // The exit status, or minus the signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_TESTS_DAEMON_TIDEMARKD_PROCESS_H_
