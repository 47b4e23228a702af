// Look-ups of driver functions by name. The real driver is asked first, with the caller's version
// and flags; its answer is replaced only when it is a hooked function of exactly that version. A
// failure or a status word is the driver's own. A look-up starts nothing and takes no lock.

#include "interpose/hook_gate.h"
#include "interpose/options.h"
#include "interpose/resolve.h"

namespace tidemark::interpose {
namespace {

CUresult Answer(CUresult result, const char* symbol, void** function) {
  bool found = result == CUDA_SUCCESS && symbol != nullptr && function != nullptr && *function;
  if (found && !GetOptions().disable) *function = Substitute(*function, symbol);
  return result;
}

// A driver without cuGetProcAddress would have been found out by dlsym; through our export the
// caller learns it in the call.
CUresult NotFound(void** function, CUdriverProcAddressQueryResult* status) {
  if (function != nullptr) *function = nullptr;
  if (status != nullptr) *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  if (RealEntry(kSlot_cuGetProcAddress) == nullptr) return NotFound(function, nullptr);
  return Answer(tidemark_real_cuGetProcAddress(symbol, function, version, flags), symbol, function);
}

CUresult Hook_cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                  cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (RealEntry(kSlot_cuGetProcAddress_v2) == nullptr) return NotFound(function, status);
  return Answer(tidemark_real_cuGetProcAddress_v2(symbol, function, version, flags, status), symbol,
                function);
}

CUresult Hook_cuGetProcAddress_ptsz(const char* symbol, void** function, int version,
                                    cuuint64_t flags) {
  if (RealEntry(kSlot_cuGetProcAddress_ptsz) == nullptr) {
    return Hook_cuGetProcAddress(symbol, function, version,
                                 flags | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  }
  return Answer(tidemark_real_cuGetProcAddress_ptsz(symbol, function, version, flags), symbol,
                function);
}

CUresult Hook_cuGetProcAddress_v2_ptsz(const char* symbol, void** function, int version,
                                       cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  if (RealEntry(kSlot_cuGetProcAddress_v2_ptsz) == nullptr) {
    return Hook_cuGetProcAddress_v2(symbol, function, version,
                                    flags | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, status);
  }
  return Answer(tidemark_real_cuGetProcAddress_v2_ptsz(symbol, function, version, flags, status),
                symbol, function);
}
