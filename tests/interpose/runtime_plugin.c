/* A plugin linked to its own runtime, loaded in a local scope as Python loads extensions. */

#include <cuda_runtime_api.h>
#include <stddef.h>

int PluginMalloc(size_t bytes) {
  void* address = NULL;
  int result = cudaMalloc(&address, bytes);
  if (result == 0) result = cudaFree(address);
  return result;
}
