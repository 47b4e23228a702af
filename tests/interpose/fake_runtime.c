/* A libcudart.so.13 as far as the runtime seam needs one: it finds its driver as NVIDIA's does
 * (dlopen, then cuGetProcAddress), says what it was asked, and keeps a last error. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
static int last_error;

static void Record(const char* name) {
  char line[128];
  int bytes = snprintf(line, sizeof(line), "runtime:%s\n", name);
  int fd = open(getenv("FAKE_DRIVER_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, line, (size_t)bytes) != bytes) abort();
  close(fd);
}

static void* Driver(const char* symbol) {
  static int (*lookup)(const char*, void**, int, uint64_t, int*);
  static int (*init)(unsigned);
  void* found = NULL;
  int status = 0;
  if (lookup == NULL) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    lookup =
        (int (*)(const char*, void**, int, uint64_t, int*))dlsym(library, "cuGetProcAddress_v2");
    lookup("cuInit", (void**)&init, 13000, 0, &status);
    init(0);
  }
  lookup(symbol, &found, 13000, 0, &status);
  return found;
}

static int Keep(int error) {
  if (error != 0) last_error = error;
  return error;
}

EXPORT int cudaMalloc(void** address, size_t bytes) {
  Record("cudaMalloc");
  return Keep(((int (*)(void**, size_t))Driver("cuMemAlloc"))(address, bytes));
}
EXPORT int cudaFree(void* address) {
  Record("cudaFree");
  return Keep(((int (*)(void*))Driver("cuMemFree"))(address));
}
EXPORT int cudaMallocAsync(void** address, size_t bytes, void* stream) {
  (void)stream;
  Record("cudaMallocAsync");
  return Keep(((int (*)(void**, size_t))Driver("cuMemAlloc"))(address, bytes));
}
EXPORT int cudaFreeAsync(void* address, void* stream) {
  (void)stream;
  Record("cudaFreeAsync");
  return Keep(((int (*)(void*))Driver("cuMemFree"))(address));
}
EXPORT int cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  Record("cudaMemGetInfo");
  *free_bytes = 1, *total_bytes = 2;
  return 0;
}
EXPORT int cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return 0;
}
EXPORT int cudaGetLastError(void) {
  int error = last_error;
  last_error = 0;
  return error;
}
