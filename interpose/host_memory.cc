// Implementation of interpose/host_memory.h. Threads: any.

#include "interpose/host_memory.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace tidemark::interpose {
namespace {

// Reads a small file; false when there is none.
bool ReadFile(const char* path, char* text, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, text, size - 1);
  close(fd);
  if (got <= 0) return false;
  text[got] = 0;
  return true;
}

// The first number after `key`; `otherwise` when there is none ("max").
uint64_t NumberAfter(const char* text, const char* key, uint64_t otherwise) {
  const char* at = strstr(text, key);
  if (at == nullptr) return otherwise;
  at += strlen(key);
  while (*at == ' ') ++at;
  if (*at < '0' || *at > '9') return otherwise;
  uint64_t number = 0;
  for (; *at >= '0' && *at <= '9'; ++at) number = number * 10 + static_cast<uint64_t>(*at - '0');
  return number;
}

// What the cgroup (v2) of this process leaves; no limit is all there is.
uint64_t CgroupSpare() {
  char line[512], path[640], text[64];
  if (!ReadFile("/proc/self/cgroup", line, sizeof(line))) return UINT64_MAX;
  const char* group = strstr(line, "0::");
  if (group == nullptr) return UINT64_MAX;
  group += 3;
  size_t length = strcspn(group, "\n");
  uint64_t value[2] = {UINT64_MAX, 0};
  const char* const files[2] = {"/memory.max", "/memory.current"};
  for (int i = 0; i < 2; ++i) {
    strcpy(path, "/sys/fs/cgroup");
    strncat(path, group, length);
    strcat(path, files[i]);
    if (ReadFile(path, text, sizeof(text))) value[i] = NumberAfter(text, "", value[i]);
  }
  if (value[0] == UINT64_MAX) return UINT64_MAX;
  return value[0] > value[1] ? value[0] - value[1] : 0;
}

}  // namespace

uint64_t SpareHostBytes() {
  char text[4096];
  uint64_t available = 0;
  if (ReadFile("/proc/meminfo", text, sizeof(text))) {
    available = NumberAfter(text, "MemAvailable:", 0) * 1024;
  }
  const uint64_t group = CgroupSpare();
  return (available < group ? available : group) / 2;
}

}  // namespace tidemark::interpose
