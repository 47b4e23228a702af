/* A second preloaded library, of the kind that wraps malloc and cudaMalloc and counts. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
static int device_calls;
static long host_calls;

void* malloc(size_t bytes) {
  __atomic_fetch_add(&host_calls, 1, __ATOMIC_RELAXED);
  return __libc_malloc(bytes);
}

int cudaMalloc(void** address, size_t bytes) {
  ++device_calls;
  int (*next)(void**, size_t) = (int (*)(void**, size_t))dlsym(RTLD_NEXT, "cudaMalloc");
  return next(address, bytes);
}

__attribute__((destructor)) static void Report(void) {
  char line[64];
  int bytes = snprintf(line, sizeof(line), "wrapped=%d host=%d\n", device_calls, host_calls > 0);
  if (write(1, line, (size_t)bytes) != bytes) abort();
}
