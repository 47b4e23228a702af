/* A program that the linker bound to libcuda.so.1, as CUDA samples are. */

#include <cuda.h>
#include <stdio.h>

int main(void) {
  CUdeviceptr address = 0;
  int init = cuInit(0);
  int alloc = cuMemAlloc(&address, 4096);
  int copy = cuMemcpyHtoD(address, &address, sizeof(address));
  int set = cuMemsetD32(address, 7, 16);
  int freed = cuMemFree(address);
  printf("init=%d alloc=%d copy=%d set=%d free=%d\n", init, alloc, copy, set, freed);
  return init | alloc | copy | set | freed;
}
