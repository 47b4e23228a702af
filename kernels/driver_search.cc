#include "kernels/driver_search.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tidemark::kernels {
namespace {

constexpr char kSoname[] = "libcuda.so.1";

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
#error "Tidemark knows x86-64 and AArch64"
#endif

bool IsSameFile(const char* a, const char* b) {
  struct stat left, right;
  return a != nullptr && b != nullptr && stat(a, &left) == 0 && stat(b, &right) == 0 &&
         left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

bool IsLibraryForThisMachine(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  Elf64_Ehdr header;
  const bool whole = pread(fd, &header, sizeof(header), 0) == sizeof(header);
  close(fd);
  return whole && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == kMachine;
}

bool IsStubDirectory(const char* directory, size_t length) {
  while (length > 0 && directory[length - 1] == '/') --length;
  constexpr char kStubs[] = "/stubs";
  constexpr size_t kLength = sizeof(kStubs) - 1;
  return length >= kLength && memcmp(directory + length - kLength, kStubs, kLength) == 0;
}

bool Accept(const DriverSearch& search, const char* candidate) {
  return IsLibraryForThisMachine(candidate) && !IsSameFile(candidate, search.skip);
}

bool TryDirectory(const DriverSearch& search, const char* directory, size_t length, char* path,
                  size_t size) {
  if (length == 0 || IsStubDirectory(directory, length)) return false;
  // The loader takes relative entries too; the answer must hold after a chdir.
  char here[PATH_MAX] = "";
  if (directory[0] != '/' && getcwd(here, sizeof(here) - 1) == nullptr) return false;
  if (here[0] != '\0') strcat(here, "/");
  const int written =
      snprintf(path, size, "%s%.*s/%s", here, static_cast<int>(length), directory, kSoname);
  return written > 0 && static_cast<size_t>(written) < size && Accept(search, path);
}

bool TryLibraryPath(const DriverSearch& search, char* path, size_t size) {
  if (search.library_path == nullptr) return false;
  for (const char* entry = search.library_path;;) {
    const size_t length = strcspn(entry, ":;");
    if (TryDirectory(search, entry, length, path, size)) return true;
    if (entry[length] == '\0') return false;
    entry += length + 1;
  }
}

bool TryDirectories(const DriverSearch& search, char* path, size_t size) {
  if (search.directories == nullptr) return false;
  for (const char* const* entry = search.directories; *entry != nullptr; ++entry) {
    if (TryDirectory(search, *entry, strlen(*entry), path, size)) return true;
  }
  return false;
}

// ldconfig's file, glibc 2.2 and later; an older header may come before this one.
constexpr char kCacheMagic[] = "glibc-ld.so.cache1.1";
struct CacheHeader {
  char magic[sizeof(kCacheMagic) - 1];
  uint32_t entries;
  uint32_t string_bytes;
  uint32_t reserved[5];
};
struct CacheEntry {
  int32_t flags;
  uint32_t name;  // offsets from the header
  uint32_t path;
  uint32_t os_version;
  uint64_t hardware;
};
static_assert(sizeof(CacheHeader) == 48 && sizeof(CacheEntry) == 24);

// The string at `offset`, or null when it does not end inside the `bytes` bytes at `data`.
const char* StringAt(const char* data, size_t bytes, uint32_t offset) {
  if (offset >= bytes || memchr(data + offset, 0, bytes - offset) == nullptr) return nullptr;
  return data + offset;
}

bool FindInCache(const DriverSearch& search, const char* data, size_t bytes, char* path,
                 size_t size) {
  const void* start = memmem(data, bytes, kCacheMagic, sizeof(kCacheMagic) - 1);
  if (start == nullptr) return false;
  const char* header_bytes = static_cast<const char*>(start);
  bytes -= header_bytes - data;
  CacheHeader header;
  if (bytes < sizeof(header)) return false;
  memcpy(&header, header_bytes, sizeof(header));
  for (uint64_t i = 0; i < header.entries; ++i) {
    const uint64_t at = sizeof(header) + i * sizeof(CacheEntry);
    CacheEntry entry;
    if (at + sizeof(entry) > bytes) return false;
    memcpy(&entry, header_bytes + at, sizeof(entry));
    const char* name = StringAt(header_bytes, bytes, entry.name);
    const char* value = StringAt(header_bytes, bytes, entry.path);
    if (name == nullptr || value == nullptr || strcmp(name, kSoname) != 0) continue;
    if (strlen(value) >= size || !Accept(search, value)) continue;
    memcpy(path, value, strlen(value) + 1);
    return true;
  }
  return false;
}

bool TryCache(const DriverSearch& search, char* path, size_t size) {
  if (search.cache_file == nullptr) return false;
  const int fd = open(search.cache_file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat status;
  void* data = MAP_FAILED;
  if (fstat(fd, &status) == 0 && status.st_size > 0) {
    data = mmap(nullptr, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  }
  close(fd);
  if (data == MAP_FAILED) return false;
  const bool found = FindInCache(search, static_cast<char*>(data), status.st_size, path, size);
  munmap(data, status.st_size);
  return found;
}

}  // namespace

bool SearchDriver(const DriverSearch& search, char* path, size_t size) {
  const char* named = search.explicit_path;
  if (named != nullptr && named[0] != '\0' && !IsSameFile(named, search.skip)) {
    const size_t length = strlen(named);
    if (length >= size) return false;
    memcpy(path, named, length + 1);
    return true;
  }
  return TryLibraryPath(search, path, size) || TryDirectories(search, path, size) ||
         TryCache(search, path, size);
}

}  // namespace tidemark::kernels
