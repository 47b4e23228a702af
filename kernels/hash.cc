#include "kernels/hash.h"

#include <string.h>

#include "kernels/hash_mix.h"

extern "C" {
const void* tidemark_twin_image_hash();
#if defined(TIDEMARK_HASH_FATBIN)
extern const char tidemark_hash_fatbin[];
#endif
}

namespace tidemark::kernels {
namespace {
constexpr char kKernelName[] = "TidemarkHash";
}

size_t HashImageCount() {
#if defined(TIDEMARK_HASH_FATBIN)
  return 2;
#else
  return 1;
#endif
}

const void* HashImage([[maybe_unused]] size_t index) {
#if defined(TIDEMARK_HASH_FATBIN)
  if (index == 0) return tidemark_hash_fatbin;
#endif
  return tidemark_twin_image_hash();
}

CUresult LoadHash(const Driver& driver, HashModule* hash) {
  CUresult result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (size_t i = 0; i < HashImageCount(); ++i) {
    HashModule loaded;
    result = driver.cuModuleLoadData(&loaded.module, HashImage(i));
    if (result != CUDA_SUCCESS) continue;
    result = driver.cuModuleGetFunction(&loaded.function, loaded.module, kKernelName);
    if (result == CUDA_SUCCESS) {
      *hash = loaded;
      return CUDA_SUCCESS;
    }
    driver.cuModuleUnload(loaded.module);
  }
  return result;
}

CUresult UnloadHash(const Driver& driver, HashModule* hash) {
  if (hash->module == nullptr) return CUDA_SUCCESS;
  const CUresult result = driver.cuModuleUnload(hash->module);
  *hash = HashModule();
  return result;
}

CUresult LaunchHash(const Driver& driver, const HashModule& hash, const HashRange& range,
                    CUdeviceptr result, CUstream stream) {
  const bool aligned = range.data % 8 == 0 && range.position % 8 == 0 && result % 8 == 0;
  if (hash.function == nullptr || !aligned) return CUDA_ERROR_INVALID_VALUE;
  if (range.bytes == 0) return CUDA_SUCCESS;
  const uint64_t blocks = (range.bytes + kHashBlockBytes - 1) / kHashBlockBytes;
  if (blocks > 0x7fffffff) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr data = range.data;
  unsigned long long bytes = range.bytes;
  unsigned long long first_index = range.position / 8;
  void* params[] = {&data, &bytes, &first_index, &result};
  return driver.cuLaunchKernel(hash.function, static_cast<unsigned>(blocks), 1, 1, kHashThreads, 1,
                               1, 0, stream, params, nullptr);
}

uint64_t HashBytes(const void* data, size_t bytes, uint64_t position) {
  const char* cursor = static_cast<const char*>(data);
  uint64_t index = position / 8;
  uint64_t sum = 0;
  for (; bytes >= 8; bytes -= 8, cursor += 8) {
    uint64_t word;
    memcpy(&word, cursor, sizeof(word));
    sum += HashMix(word, index++);
  }
  if (bytes == 0) return sum;
  uint64_t word = 0;
  memcpy(&word, cursor, bytes);
  return sum + HashMix(word, index);
}

}  // namespace tidemark::kernels
