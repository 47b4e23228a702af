// Kernels of the contract suite, for nvcc and as host twins. Each is small enough that a test can
// state what every byte must be afterwards.

#include "kernels/host_twin.h"

using FourWords = unsigned[4];
#define CONTRACT_VARIABLES(VARIABLE)                      \
  VARIABLE(kTwinDevice, FourWords, contract_cells)        \
  VARIABLE(kTwinDevice, unsigned, contract_total, = 1000) \
  VARIABLE(kTwinConstant, FourWords, contract_weights, = {1, 2, 3, 4})
TIDEMARK_TWIN_VARIABLES(CONTRACT_VARIABLES);

TIDEMARK_DEVICE int Linear() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

TIDEMARK_KERNEL void ContractNothing() {}

TIDEMARK_KERNEL void ContractFill(unsigned* out, unsigned value, int count) {
  const int i = Linear();
  if (i < count) out[i] = value;
}

// Applied in a wrong order, two of these give another result.
TIDEMARK_KERNEL void ContractAffine(unsigned* data, unsigned factor, unsigned term, int count) {
  const int i = Linear();
  if (i < count) data[i] = data[i] * factor + term;
}

TIDEMARK_KERNEL void ContractAdd(const unsigned* a, const unsigned* b, unsigned* out, int count) {
  const int i = Linear();
  if (i < count) out[i] = a[i] + b[i];
}

// Parameters of mixed sizes, so that their layout has holes.
TIDEMARK_KERNEL void ContractMixed(char sign, const double* in, short shift, float* out, int count,
                                   double scale) {
  const int i = Linear();
  if (i < count) out[i] = static_cast<float>(sign * in[i] * scale + shift);
}

// Every thread of a 3D grid of 3D blocks writes its own global number at its own place.
TIDEMARK_KERNEL void ContractIndex(unsigned* out) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
  const unsigned at = (z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x;
  out[at] = at + 1;
}

// Each block reverses its own blockDim.x words through static and dynamic shared memory.
TIDEMARK_KERNEL void ContractReverse(unsigned* data) {
  __shared__ unsigned mirror[256];
  TIDEMARK_DYNAMIC_SHARED(unsigned, copy);
  unsigned* mine = data + blockIdx.x * blockDim.x;
  copy[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mirror[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = mirror[threadIdx.x];
}

TIDEMARK_KERNEL void ContractCount(unsigned* counter) { atomicAdd(counter, 1u); }

// Thread i of one block adds its weighted number to cell i, and to the total.
TIDEMARK_KERNEL void ContractWeigh(unsigned factor) {
  const unsigned i = threadIdx.x;
  contract_cells[i] += contract_weights[i] * factor;
  atomicAdd(&contract_total, contract_weights[i] * factor);
}

#if !defined(TIDEMARK_TWIN_TRACED)
extern "C" const void* ContractCells() { return TIDEMARK_TWIN_SYMBOL(contract_cells); }
extern "C" const void* ContractTotal() { return TIDEMARK_TWIN_SYMBOL(contract_total); }
extern "C" const void* ContractWeights() { return TIDEMARK_TWIN_SYMBOL(contract_weights); }
#endif

#define CONTRACT_KERNELS(KERNEL)               \
  KERNEL(ContractNothing, kNoBarrier, nullptr) \
  KERNEL(ContractFill, kNoBarrier, nullptr)    \
  KERNEL(ContractAffine, kNoBarrier, nullptr)  \
  KERNEL(ContractAdd, kNoBarrier, nullptr)     \
  KERNEL(ContractMixed, kNoBarrier, nullptr)   \
  KERNEL(ContractIndex, kNoBarrier, nullptr)   \
  KERNEL(ContractReverse, kBarrier, nullptr)   \
  KERNEL(ContractCount, kNoBarrier, nullptr)   \
  KERNEL(ContractWeigh, kNoBarrier, nullptr)
TIDEMARK_TWIN_REGISTER_WITH(contract, CONTRACT_KERNELS, CONTRACT_VARIABLES);
