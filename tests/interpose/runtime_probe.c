/* A program with a shared runtime: each allocation of the runtime seam once. Usage: runtime_probe
 * [BYTES]. */

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : 4096;
  void* plain = NULL;
  void* ordered = NULL;
  size_t free_bytes = 0, total_bytes = 0;
  int first = cudaMalloc(&plain, bytes);
  int second = cudaMallocAsync(&ordered, bytes, 0);
  int info = cudaMemGetInfo(&free_bytes, &total_bytes);
  printf("malloc=%d async=%d info=%d,%zu,%zu last=%d\n", first, second, info, free_bytes,
         total_bytes, cudaGetLastError());
  int freed = -1, freed_async = -1;
  if (first == 0) freed = cudaFree(plain);
  if (second == 0) freed_async = cudaFreeAsync(ordered, 0);
  printf("free=%d free_async=%d\n", freed, freed_async);
  return 0;
}
