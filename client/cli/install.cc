// Where the parts of Tidemark lie; see install.h. Threads: stateless.

#include "client/cli/install.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/driver.h"

namespace tidemark::client {
namespace {

namespace fs = std::filesystem;

fs::path Root() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : self.parent_path().parent_path();
}

std::string FirstThatExists(std::initializer_list<const char*> candidates) {
  for (const char* candidate : candidates) {
    std::error_code error;
    const fs::path path = Root() / candidate;
    if (fs::exists(path, error)) return path.string();
  }
  return "";
}

}  // namespace

std::string PreloadLibrary() {
  return FirstThatExists({"lib/libtidemark_preload.so", "lib/tidemark/libtidemark_preload.so"});
}

std::string AliasLibrary() {
  return FirstThatExists({"lib/libtidemark_alias.so", "lib/tidemark/libtidemark_alias.so"});
}

std::string SimgpuDirectory() {
  const std::string driver =
      FirstThatExists({"simgpu/libcuda.so.1", "lib/tidemark/simgpu/libcuda.so.1"});
  return driver.empty() ? "" : fs::path(driver).parent_path().string();
}

std::string RealDriver(const std::string& library_path) {
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string kept = before == nullptr ? "" : before;
  setenv("LD_LIBRARY_PATH", library_path.c_str(), 1);
  char path[PATH_MAX];
  const bool found = kernels::FindDriver(PreloadLibrary().c_str(), path, sizeof path);
  if (before == nullptr) {
    unsetenv("LD_LIBRARY_PATH");
  } else {
    setenv("LD_LIBRARY_PATH", kept.c_str(), 1);
  }
  return found ? path : "";
}

}  // namespace tidemark::client
