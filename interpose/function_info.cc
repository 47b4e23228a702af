// Implementation of interpose/function_info.h. Entries are never freed: a reader may hold one.

#include "interpose/function_info.h"

#include <stdlib.h>

#include <atomic>
#include <new>

namespace tidemark::interpose {
namespace {

constexpr uint32_t kSlots = 1 << 14;
constexpr uint32_t kProbes = 32;
constexpr uint32_t kMostParameters = 1024;  // 4 KiB of parameters is the limit of the hardware

constinit std::atomic<const FunctionInfo*> slots[kSlots];
constinit std::atomic<uint32_t> generation{1};

using Ask = CUresult (*)(const kernels::Driver&, CUfunction, size_t, size_t*, size_t*);

CUresult AskFunction(const kernels::Driver& driver, CUfunction function, size_t index,
                     size_t* offset, size_t* size) {
  if (driver.cuFuncGetParamInfo == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return driver.cuFuncGetParamInfo(function, index, offset, size);
}

// A launch accepts a CUkernel in place of a function.
CUresult AskKernel(const kernels::Driver& driver, CUfunction function, size_t index, size_t* offset,
                   size_t* size) {
  if (driver.cuKernelGetParamInfo == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return driver.cuKernelGetParamInfo(reinterpret_cast<CUkernel>(function), index, offset, size);
}

uint32_t Count(const kernels::Driver& driver, CUfunction function, Ask ask, bool* known) {
  size_t offset, size;
  uint32_t count = 0;
  CUresult result = CUDA_SUCCESS;
  while (count < kMostParameters &&
         (result = ask(driver, function, count, &offset, &size)) == CUDA_SUCCESS) {
    ++count;
  }
  *known = count != 0 || result == CUDA_ERROR_INVALID_VALUE;  // as it answers past the last one
  return count;
}

FunctionInfo* Learn(const kernels::Driver& driver, CUfunction function, uint32_t now) {
  bool known = false;
  Ask ask = AskFunction;
  uint32_t count = Count(driver, function, ask, &known);
  if (count == 0) {
    bool kernel_known = false;
    const uint32_t kernel_count = Count(driver, function, AskKernel, &kernel_known);
    if (kernel_count != 0 || !known) {
      ask = AskKernel;
      count = kernel_count;
      known = kernel_known;
    }
  }
  auto* info = static_cast<FunctionInfo*>(
      calloc(1, sizeof(FunctionInfo) + count * sizeof(FunctionInfo::Parameter)));
  if (info == nullptr) return nullptr;
  info->function = function;
  info->generation = now;
  info->count = count;
  info->known = known;
  for (uint32_t i = 0; i < count; ++i) {
    size_t offset = 0, size = 0;
    ask(driver, function, i, &offset, &size);
    info->parameters[i] = {static_cast<uint32_t>(offset), static_cast<uint32_t>(size)};
  }
  return info;
}

}  // namespace

const FunctionInfo* GetFunctionInfo(const kernels::Driver& driver, CUfunction function) {
  const uint32_t now = generation.load(std::memory_order_acquire);
  const auto hash = static_cast<uint32_t>(
      (reinterpret_cast<uintptr_t>(function) * UINT64_C(0x9e3779b97f4a7c15)) >> 40);
  for (uint32_t i = 0; i < kProbes; ++i) {
    std::atomic<const FunctionInfo*>& slot = slots[(hash + i) % kSlots];
    const FunctionInfo* info = slot.load(std::memory_order_acquire);
    if (info != nullptr && info->function == function && info->generation == now) return info;
    if (info != nullptr && info->generation == now) continue;
    const FunctionInfo* learned = Learn(driver, function, now);
    if (learned == nullptr || slot.compare_exchange_strong(info, learned)) return learned;
    free(const_cast<FunctionInfo*>(learned));
    --i;  // somebody else filled the slot: look at it again
  }
  return nullptr;
}

void ForgetFunctions() { generation.fetch_add(1, std::memory_order_release); }

}  // namespace tidemark::interpose
