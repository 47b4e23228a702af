// A private folder that is gone after the test.

#ifndef TIDEMARK_TESTS_DAEMON_SCRATCH_DIR_H_
#define TIDEMARK_TESTS_DAEMON_SCRATCH_DIR_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tidemark::daemon {

class ScratchDir {
 public:
  ScratchDir() {
    char name[] = "/tmp/tidemark-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~ScratchDir() { std::filesystem::remove_all(path_); }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

}  // namespace tidemark::daemon

#endif  // TIDEMARK_TESTS_DAEMON_SCRATCH_DIR_H_
