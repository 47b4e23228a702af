// Two "layers" whose memory does not fit the budget together, and a program that says what it will
// use next. It runs the same with and without Tidemark:
//
//   tidemark run --simgpu --budget 16MiB -- hints_example
//
// Any CUDA program can do the same: include tidemark/tidemark.h, link with -ltidemark.

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tidemark/tidemark.h"

enum { kLayers = 4, kSteps = 3 };
static const size_t kBytes = (size_t)8 << 20;

static void Must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

static void Say(const char* what, int status) {
  printf("%-12s %s\n", what, tm_status_text(status));
}

static void ShowMemory(void) {
  tm_device_memory memory;
  size_t count = 0;
  const int status = tm_snapshot_devices(&memory, 1, &count);
  if (status != TM_OK) {
    Say("snapshot", status);
    return;
  }
  printf("device %u: %zu MiB of %zu MiB on the device, %zu MiB in host memory, %zu MiB moved\n",
         memory.device, (size_t)memory.reserved_bytes >> 20, (size_t)memory.budget_bytes >> 20,
         (size_t)memory.host_resident_bytes >> 20,
         (size_t)(memory.moved_in_bytes + memory.moved_out_bytes) >> 20);
}

// "Uses" a layer: every byte of it becomes `value`, or is checked to be so.
static int Check(const void* layer, int value) {
  static unsigned char bytes[1 << 16];
  Must(cudaMemcpy(bytes, (const char*)layer + kBytes - sizeof bytes, sizeof bytes,
                  cudaMemcpyDeviceToHost),
       "cudaMemcpy");
  for (size_t i = 0; i < sizeof bytes; ++i) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

int main(void) {
  void* layer[kLayers];
  printf("libtidemark %u.%u\n", tm_version() >> 16, tm_version() & 0xffff);
  for (int i = 0; i < kLayers; ++i) {
    Must(cudaMalloc(&layer[i], kBytes), "cudaMalloc");
    Must(cudaMemset(layer[i], i, kBytes), "cudaMemset");
  }
  Say("active", tm_active());
  Say("register", tm_register(layer[0], kBytes, TM_PARAMETER));
  Say("pin", tm_pin(layer[0], kBytes));
  for (int step = 0; step < kSteps; ++step) {
    const int marked = tm_mark_step();
    if (step == 0) Say("step", marked);
    for (int i = 0; i < kLayers; ++i) {
      const int coming = tm_will_use(layer[i], kBytes);
      if (!Check(layer[i], step == 0 ? i : 10 * step + i)) {
        fprintf(stderr, "layer %d lost its bytes in step %d\n", i, step);
        return 1;
      }
      Must(cudaMemset(layer[i], 10 * (step + 1) + i, kBytes), "cudaMemset");
      const int gone = tm_done_with(layer[i], kBytes);
      if (step == 0 && i == 1) Say("will use", coming), Say("done with", gone);
    }
  }
  Say("unpin", tm_unpin(layer[0], kBytes));
  ShowMemory();
  for (int i = 0; i < kLayers; ++i) Must(cudaFree(layer[i]), "cudaFree");
  return 0;
}
