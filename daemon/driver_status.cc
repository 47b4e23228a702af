#include "daemon/driver_status.h"

#include "absl/strings/str_cat.h"

namespace tidemark::daemon {

absl::Status DriverStatus(const kernels::Driver& driver, CUresult result, absl::string_view what) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  const char* sentence = nullptr;
  if (driver.cuGetErrorName != nullptr) driver.cuGetErrorName(result, &name);
  if (driver.cuGetErrorString != nullptr) driver.cuGetErrorString(result, &sentence);
  std::string text =
      absl::StrCat(what, ": ", sentence != nullptr ? sentence : "unknown driver result", " (",
                   name != nullptr ? name : "unnamed", " ", static_cast<int>(result), ")");
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return absl::ResourceExhaustedError(text);
  if (result == CUDA_ERROR_NOT_SUPPORTED) return absl::UnimplementedError(text);
  return absl::InternalError(text);
}

}  // namespace tidemark::daemon
