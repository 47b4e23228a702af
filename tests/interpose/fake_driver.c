/* A libcuda.so.1 that does nothing but say who called what: each function appends its exported name
 * to the file named by FAKE_DRIVER_LOG and succeeds. Look-ups answer by version as a driver does,
 * and know two functions that no cuda.h declares. Variants by macro: FAKE_OLD lacks what came with
 * CUDA 11.3.
 *
 * Threads: any; each record is one write(). */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult;
enum { kSuccess = 0, kNotFound = 500 };
#define EXPORT __attribute__((visibility("default")))

static void Record(const char* name) {
  const char* path = getenv("FAKE_DRIVER_LOG");
  if (path == NULL) return;
  char line[128];
  int bytes = snprintf(line, sizeof(line), "%s\n", name);
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, line, (size_t)bytes) != bytes) abort();
  close(fd);
}

#define FAKE(name)         \
  EXPORT CUresult name() { \
    Record(#name);         \
    return kSuccess;       \
  }
#include "fake_names.inc"

static char device_memory[1 << 16];
static uintptr_t next_address = 0x700000000000;

EXPORT CUresult cuInit(unsigned flags) {
  static int entries;
  (void)flags;
  Record("cuInit");
  /* A driver may come back to the process's cuInit while it starts. */
  if (getenv("FAKE_REENTER") == NULL || entries++ > 0) return kSuccess;
  return ((CUresult(*)(unsigned))dlsym(RTLD_DEFAULT, "cuInit"))(0);
}

EXPORT CUresult cuDriverGetVersion(int* version) {
  Record("cuDriverGetVersion");
  *version = 13000;
  return kSuccess;
}

EXPORT CUresult cuCtxGetCurrent(void** context) {
  *context = getenv("FAKE_NO_CONTEXT") != NULL ? NULL : device_memory;
  return kSuccess;
}

EXPORT CUresult cuCtxGetDevice(int* device) {
  Record("cuCtxGetDevice");
  *device = 0;
  return getenv("FAKE_NO_CONTEXT") != NULL ? 201 : kSuccess;
}

/* FAKE_BROKEN_CONTEXT: a kernel went wrong, and every wait says so. */
static CUresult Wait(const char* name) {
  Record(name);
  return getenv("FAKE_BROKEN_CONTEXT") != NULL ? 700 : kSuccess;
}
EXPORT CUresult cuCtxSynchronize(void) { return Wait("cuCtxSynchronize"); }
EXPORT CUresult cuStreamSynchronize(void* stream) {
  (void)stream;
  return Wait("cuStreamSynchronize");
}
EXPORT CUresult cuEventSynchronize(void* event) {
  (void)event;
  return Wait("cuEventSynchronize");
}

EXPORT CUresult cuMemAlloc_v2(uintptr_t* address, size_t bytes) {
  Record("cuMemAlloc_v2");
  *address = __atomic_fetch_add(&next_address, bytes + 512, __ATOMIC_RELAXED);
  return kSuccess;
}

EXPORT CUresult cuMemAlloc(uint32_t* address, unsigned bytes) {
  (void)bytes;
  Record("cuMemAlloc");
  *address = 0x1000;
  return kSuccess;
}

/* What a driver of the future has. */
EXPORT CUresult cuMemAlloc_v3(uintptr_t* address, size_t bytes, int flags) {
  (void)bytes, (void)flags;
  Record("cuMemAlloc_v3");
  *address = 0x3000;
  return kSuccess;
}

EXPORT CUresult cuBrandNewThing(int x) {
  Record("cuBrandNewThing");
  return x;
}

/* Eleven arguments of both register classes, so that a lost register shows. */
EXPORT CUresult cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                               unsigned by, unsigned bz, unsigned shared, void* stream,
                               void** params, void** extra) {
  (void)stream, (void)params, (void)extra;
  char line[160];
  snprintf(line, sizeof(line), "cuLaunchKernel %p %u %u %u %u %u %u %u", f, gx, gy, gz, bx, by, bz,
           shared);
  Record(line);
  return kSuccess;
}

EXPORT CUresult cuParamSetf(void* f, int offset, float value) {
  char line[64];
  snprintf(line, sizeof(line), "cuParamSetf %p %d %.2f", f, offset, (double)value);
  Record(line);
  return kSuccess;
}

EXPORT CUresult cuMemCreate(uint64_t* handle, size_t bytes, const void* properties,
                            unsigned long long flags) {
  (void)bytes, (void)properties, (void)flags;
  Record("cuMemCreate");
  *handle = __atomic_fetch_add(&next_address, 1, __ATOMIC_RELAXED);
  return kSuccess;
}

EXPORT CUresult cuGetExportTable(const void** table, const void* id) {
  Record("cuGetExportTable");
  *table = id;
  return kSuccess;
}

#ifndef FAKE_OLD
CUresult cuMemFree_v2();
CUresult cuMemcpyHtoDAsync_v2();
CUresult cuMemcpyHtoDAsync_v2_ptsz();
CUresult cuMemcpyHtoDAsync();
EXPORT CUresult cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);
EXPORT CUresult cuGetProcAddress(const char*, void**, int, uint64_t);

struct Version {
  const char* name;
  int since;
  int per_thread;
  void* function;
};

static CUresult Look(const char* symbol, void** function, int version, uint64_t flags,
                     int* status) {
  const struct Version versions[] = {
      {"cuMemAlloc", 2000, 0, (void*)&cuMemAlloc},
      {"cuMemAlloc", 3020, 0, (void*)&cuMemAlloc_v2},
      {"cuMemAlloc", 99000, 0, (void*)&cuMemAlloc_v3},
      {"cuMemFree", 3020, 0, (void*)&cuMemFree_v2},
      {"cuMemcpyHtoDAsync", 3020, 0, (void*)&cuMemcpyHtoDAsync_v2},
      {"cuMemcpyHtoDAsync", 7000, 1, (void*)&cuMemcpyHtoDAsync_v2_ptsz},
      {"cuLaunchKernel", 4000, 0, (void*)&cuLaunchKernel},
      {"cuInit", 2000, 0, (void*)&cuInit},
      {"cuGetProcAddress", 11030, 0, (void*)&cuGetProcAddress},
      {"cuGetProcAddress", 12000, 0, (void*)&cuGetProcAddress_v2},
      {"cuBrandNewThing", 2000, 0, (void*)&cuBrandNewThing},
  };
  void* best = NULL;
  int known = 0;
  for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); ++i) {
    if (strcmp(versions[i].name, symbol) != 0) continue;
    known = 1;
    if (versions[i].since > version) continue;
    if (versions[i].per_thread && (flags & 2) == 0) continue;
    best = versions[i].function;
  }
  *function = best;
  if (status != NULL) *status = best != NULL ? 0 : known ? 2 : 1;
  return best != NULL ? kSuccess : kNotFound;
}

EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                    uint64_t flags, int* status) {
  Record("cuGetProcAddress_v2");
  return Look(symbol, function, version, flags, status);
}

EXPORT CUresult cuGetProcAddress(const char* symbol, void** function, int version, uint64_t flags) {
  Record("cuGetProcAddress");
  return Look(symbol, function, version, flags, NULL);
}
#endif
