#include "kernels/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/driver_search.h"

namespace tidemark::kernels {
namespace {

struct Entry {
  const char* exported;
  size_t offset;  // of the pointer in Driver
  bool required;
};

constexpr Entry kEntries[] = {
#define TIDEMARK_DRIVER_REQUIRED(name, exported) {exported, offsetof(Driver, name), true},
#define TIDEMARK_DRIVER_OPTIONAL(name, exported) {exported, offsetof(Driver, name), false},
#include "kernels/driver_functions.def"
#undef TIDEMARK_DRIVER_REQUIRED
#undef TIDEMARK_DRIVER_OPTIONAL
};

constexpr const char* kUsualDirectories[] = {
#if defined(__x86_64__)
    "/usr/lib/x86_64-linux-gnu",
#else
    "/usr/lib/aarch64-linux-gnu",
#endif
    "/usr/lib64",
    "/usr/local/nvidia/lib64",  // container toolkits mount the driver here
    "/usr/local/nvidia/lib",
    "/usr/lib/wsl/lib",
    "/run/opengl-driver/lib",  // NixOS
    "/usr/lib",
    nullptr,
};

thread_local char sentence[1024];

// dlerror's text in one line: it may hold a newline where a path does.
void ReplaceNewlines(char* text) {
  for (; *text != '\0'; ++text) {
    if (*text == '\n' || *text == '\r') *text = ' ';
  }
}

}  // namespace

const char* LoadDriver(void* handle, Driver* driver) {
  Driver loaded;
  loaded.library = handle;
  for (const Entry& entry : kEntries) {
    void* function = dlsym(handle, entry.exported);
    if (function == nullptr && entry.required) return entry.exported;
    memcpy(reinterpret_cast<char*>(&loaded) + entry.offset, &function, sizeof(function));
  }
  *driver = loaded;
  return nullptr;
}

const char* OpenDriver(const char* path, Driver* driver) {
  if (path == nullptr || path[0] != '/') {
    snprintf(sentence, sizeof(sentence),
             "the driver library must be named by an absolute path, not \"%s\"",
             path == nullptr ? "" : path);
    ReplaceNewlines(sentence);
    return sentence;
  }
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    snprintf(sentence, sizeof(sentence), "the driver library %s cannot be opened: %s", path,
             reason == nullptr ? "no reason given" : reason);
    ReplaceNewlines(sentence);
    return sentence;
  }
  const char* missing = LoadDriver(handle, driver);
  if (missing == nullptr) return nullptr;
  dlclose(handle);
  snprintf(sentence, sizeof(sentence),
           "the driver library %s lacks %s; a driver of CUDA 12 or newer has it", path, missing);
  ReplaceNewlines(sentence);
  return sentence;
}

bool FindDriver(const char* skip, char* path, unsigned long size) {
  DriverSearch search;
  search.explicit_path = getenv("TIDEMARK_LIBCUDA");
  search.library_path = getenv("LD_LIBRARY_PATH");
  search.directories = kUsualDirectories;
  search.cache_file = "/etc/ld.so.cache";
  search.skip = skip;
  return SearchDriver(search, path, size);
}

}  // namespace tidemark::kernels
