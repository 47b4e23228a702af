// A libnvidia-ml for tests: knows the first device of the fake driver, and says that what the
// variable FAKE_NVML_USED tells is in use; without it, it does not answer.

#include <stdlib.h>
#include <string.h>

struct memory {
  unsigned long long total, free, used;
};

int nvmlInit_v2(void) { return getenv("FAKE_NVML_BROKEN") != NULL ? 999 : 0; }
int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  static int handle;
  if (strcmp(uuid, "GPU-40404040-4040-4040-4040-404040404040") != 0) return 6;
  *device = &handle;
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  const char* used = getenv("FAKE_NVML_USED");
  (void)device;
  if (used == NULL) return 999;
  memory->used = strtoull(used, NULL, 10);
  return 0;
}
