/* Every allocation family of a shared runtime, once, with sizes that a test can recognise. */

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void) {
  void *plain = NULL, *ordered = NULL, *pitched = NULL, *managed = NULL, *pooled = NULL;
  size_t pitch = 0;
  cudaMemPool_t pool = NULL;
  cudaFree(NULL);
  int plain_result = cudaMalloc(&plain, 5000);
  int ordered_result = cudaMallocAsync(&ordered, 6000, NULL);
  int pitched_result = cudaMallocPitch(&pitched, &pitch, 7000, 3);
  int managed_result = cudaMallocManaged(&managed, 8000, cudaMemAttachGlobal);
  cudaDeviceGetDefaultMemPool(&pool, 0);
  int pooled_result = cudaMallocFromPoolAsync(&pooled, 9000, pool, NULL);
  printf("plain=%d ordered=%d pitched=%d managed=%d pooled=%d\n", plain_result, ordered_result,
         pitched_result, managed_result, pooled_result);
  int freed = cudaFree(plain) + cudaFreeAsync(ordered, NULL) + cudaFree(pitched) +
              cudaFree(managed) + cudaFreeAsync(pooled, NULL);
  void* entry = NULL;
  enum cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  int found =
      cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 13000, cudaEnableDefault, &status);
  printf("freed=%d entry=%d,%d,hook=%d\n", freed, found, status, entry == (void*)&cuMemAlloc);
  return 0;
}
