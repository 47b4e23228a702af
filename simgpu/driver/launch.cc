// See launch.h: arguments, checks, modelled time.

#include "simgpu/driver/launch.h"

#include <cstring>
#include <utility>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/race.h"
#include "simgpu/driver/state.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

// A kernel nobody knows is taken to do this much work per thread.
constexpr double kFlopsPerThread = 64;
constexpr double kBytesPerThread = 16;

TwinLaunch TwinLaunchOf(const Launch& launch) {
  TwinLaunch twin{};
  memcpy(twin.grid, launch.grid, sizeof(twin.grid));
  memcpy(twin.block, launch.block, sizeof(twin.block));
  twin.params = launch.params.data();
  twin.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  return twin;
}

// The share of a kernel's bytes that goes over the link: that of its pointer arguments that lead to
// host-backed memory.
double LinkShare(const Operation& op) {
  if (op.mentions.empty()) return 0;
  size_t over_link = 0;
  for (const CUdeviceptr at : op.mentions) {
    const Place place = PlaceOf(at);
    if (place.host_backed || place.space == Space::kPinned) ++over_link;
  }
  return static_cast<double>(over_link) / static_cast<double>(op.mentions.size());
}

double KernelSeconds(const Launch& launch, const Operation& op) {
  const Config& config = GetConfig();
  const double threads = static_cast<double>(launch.Blocks() * launch.Threads());
  double flops = threads * kFlopsPerThread;
  double bytes = threads * kBytesPerThread;
  const TwinKernel* twin = launch.function->kernel->twin;
  if (twin != nullptr && twin->cost != nullptr) {
    const TwinLaunch as_twin = TwinLaunchOf(launch);
    twin->cost(&as_twin, &flops, &bytes);
  }
  const double share = LinkShare(op);
  const double compute =
      std::max(flops / config.flops, (1 - share) * bytes / config.memory_bytes_per_second);
  return std::max(compute, share * bytes / config.h2d_bytes_per_second);
}

// Pointer-like values of the parameter block: all aligned words for a kernel without types.
void FindPointers(const Launch& launch, Operation* op) {
  const Kernel& kernel = *launch.function->kernel;
  const auto word = [&](size_t offset) {
    uint64_t value = 0;
    memcpy(&value, launch.block_of_params.data() + offset, sizeof(value));
    return value;
  };
  for (const KernelParam& param : kernel.params) {
    if (kernel.twin != nullptr && param.size == 8 && (param.flags & kTwinPointer) != 0) {
      const uint64_t value = word(param.offset);
      if (value == 0) continue;
      op->mentions.push_back(value);
      // A pointer the twin may leave alone: only what it could reach and must not is refused here.
      // The rest faults when it is used.
      if (PlaceOf(value).space != Space::kHole) {
        op->touches.push_back({value, 1, (param.flags & kTwinConstPointee) == 0});
      }
      continue;
    }
    for (size_t at = (param.offset + 7) / 8 * 8; at + 8 <= param.offset + param.size; at += 8) {
      const uint64_t value = word(at);
      if (!LooksLikeDeviceAddress(value)) continue;
      op->mentions.push_back(value);
      if (kernel.twin == nullptr) op->touches.push_back({value, 1, false});
    }
  }
}

CUresult FillFromExtra(const Kernel& kernel, void** extra, Launch* launch) {
  const void* buffer = nullptr;
  const size_t* size = nullptr;
  for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[i + 1];
    } else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = static_cast<const size_t*>(extra[i + 1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (kernel.param_bytes == 0) return CUDA_SUCCESS;
  if (buffer == nullptr || size == nullptr || *size < kernel.param_bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  memcpy(launch->block_of_params.data(), buffer, kernel.param_bytes);
  return CUDA_SUCCESS;
}

CUresult CheckLimits(const Launch& launch) {
  const Kernel& kernel = *launch.function->kernel;
  static constexpr uint64_t kGridLimit[] = {0x7fffffff, 65535, 65535};
  static constexpr uint64_t kBlockLimit[] = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] == 0 || launch.grid[i] > kGridLimit[i]) return CUDA_ERROR_INVALID_VALUE;
    if (launch.block[i] == 0 || launch.block[i] > kBlockLimit[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  if (launch.Threads() > 1024) return CUDA_ERROR_INVALID_VALUE;
  if (launch.Threads() > static_cast<uint64_t>(kernel.max_threads)) {
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  if (launch.dynamic_shared_bytes > static_cast<uint32_t>(launch.function->max_dynamic_shared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult RunKernel(const Launch& launch, const VariableAddresses& variables, const Operation& op) {
  Kernel& kernel = *launch.function->kernel;
  TwinRun run;
  run.twin = kernel.twin;
  run.launch = TwinLaunchOf(launch);
  run.launch.variables = variables.data();
  const RaceAccess access = Engine::Get().RunningAccess();
  const bool traceable = kernel.twin->uses_barrier != 0 ? kernel.twin->run_thread_traced != nullptr
                                                        : kernel.twin->run_traced != nullptr;
  run.traced = access.actor != nullptr && traceable;
  if (access.actor != nullptr && !traceable && !kernel.said_untraced) {
    kernel.said_untraced = true;
    LogAlways("race=1 cannot see what kernel %s touches: its twin has no traced variant",
              kernel.name.c_str());
  }
  TouchLog log;
  if (run.traced) {
    run.launch.touch = TouchLog::Callback;
    run.launch.touch_context = &log;
  }
  const CUresult result = RunTwin(&run);
  if (run.traced) log.Flush(access, &RaceDetector::Get());
  if (result != CUDA_SUCCESS) {
    std::string why;
    if (CheckSpan(op.device, {run.fault, 1, false}, true, &why) == CUDA_SUCCESS) {
      why = "it may be read but not written, or it is the host's";
    }
    LogAlways("kernel %s: illegal access to 0x%llx: %s", kernel.name.c_str(),
              static_cast<unsigned long long>(run.fault), why.c_str());
  }
  return result;
}

}  // namespace

CUresult FillLaunch(CUfunction function, void** kernel_params, void** extra, Launch* launch) {
  const Kernel& kernel = *function->kernel;
  launch->function = function;
  if (const CUresult bad = CheckLimits(*launch); bad != CUDA_SUCCESS) return bad;
  if (kernel_params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Eight spare bytes: words are read at any parameter's offset.
  launch->block_of_params.assign(kernel.param_bytes + 8, 0);
  launch->params.resize(kernel.params.size());
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    launch->params[i] = launch->block_of_params.data() + kernel.params[i].offset;
  }
  if (extra != nullptr) return FillFromExtra(kernel, extra, launch);
  if (kernel.params.empty()) return CUDA_SUCCESS;
  if (kernel_params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    if (kernel_params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    memcpy(launch->params[i], kernel_params[i], kernel.params[i].size);
  }
  return CUDA_SUCCESS;
}

Operation MakeLaunchOperation(std::shared_ptr<const Launch> launch, int device) {
  Operation op;
  op.name = launch->function->kernel->name;
  op.unit = Unit::kCompute;
  op.device = device;
  op.from_kernel = true;
  FindPointers(*launch, &op);
  op.seconds = KernelSeconds(*launch, op);
  const Kernel& kernel = *launch->function->kernel;
  if (kernel.twin == nullptr) return op;
  VariableAddresses variables;
  const CUresult placed = AddressesFor(*kernel.image, launch->function->module, device, &variables);
  for (const void* at : variables) op.mentions.push_back(reinterpret_cast<CUdeviceptr>(at));
  op.run = [launch = std::move(launch), variables = std::move(variables),
            placed](Operation& running) {
    return placed != CUDA_SUCCESS ? placed : RunKernel(*launch, variables, running);
  };
  return op;
}

}  // namespace simgpu
