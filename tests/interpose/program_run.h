// Runs a probe program with a chosen environment, and gives back what it printed, how it ended, and
// what the fake driver recorded meanwhile.

#ifndef TIDEMARK_TESTS_INTERPOSE_PROGRAM_RUN_H_
#define TIDEMARK_TESTS_INTERPOSE_PROGRAM_RUN_H_

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tidemark::interpose {

struct Outcome {
  int exit = -1;       // exit status, or 128 + signal
  std::string output;  // stdout and stderr
  std::vector<std::string> log;

  int Count(const std::string& line) const {
    int count = 0;
    for (const std::string& each : log) count += each == line;
    return count;
  }
  std::string Log() const {
    std::string text;
    for (const std::string& each : log) text += each + "\n";
    return text;
  }
};

// `command` starts with a program of PROBES, or is an absolute path; `settings` are NAME=value
// words.
inline Outcome RunProgram(const std::string& command, const std::string& settings) {
  std::string probes = PROBES;
  char log[] = "/tmp/tidemark-loader-XXXXXX";
  close(mkstemp(log));
  std::string path = command[0] == '/' ? command : probes + "/" + command;
  std::string line =
      "env FAKE_DRIVER_LOG=" + std::string(log) + " " + settings + " " + path + " 2>&1";
  Outcome run;
  FILE* pipe = popen(line.c_str(), "r");
  char buffer[4096];
  for (size_t bytes; (bytes = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    run.output.append(buffer, bytes);
  }
  int status = pclose(pipe);
  run.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  std::ifstream file(log);
  for (std::string each; std::getline(file, each);) run.log.push_back(each);
  unlink(log);
  return run;
}

inline std::string Preloaded(const std::string& library) { return "LD_PRELOAD=" + library + " "; }
inline std::string Driver(const std::string& folder) {
  return std::string("LD_LIBRARY_PATH=") + PROBES + "/" + folder + ":" + PROBES + "/runtime ";
}

}  // namespace tidemark::interpose

#endif  // TIDEMARK_TESTS_INTERPOSE_PROGRAM_RUN_H_
