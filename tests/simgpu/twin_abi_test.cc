// The two statements of the host twin image format agree.

#include <gtest/gtest.h>

#include <cstddef>

#include "kernels/host_twin_abi.h"
#include "simgpu/driver/twin_image.h"

namespace {

#define SAME_SIZE(ours, theirs) static_assert(sizeof(simgpu::ours) == sizeof(theirs))
#define SAME_FIELD(ours, theirs, field)                                    \
  static_assert(offsetof(simgpu::ours, field) == offsetof(theirs, field)); \
  static_assert(sizeof(simgpu::ours::field) == sizeof(theirs::field))

SAME_SIZE(TwinParam, tm_twin_param);
SAME_FIELD(TwinParam, tm_twin_param, offset);
SAME_FIELD(TwinParam, tm_twin_param, size);
SAME_FIELD(TwinParam, tm_twin_param, flags);

SAME_SIZE(TwinLaunch, tm_twin_launch);
SAME_FIELD(TwinLaunch, tm_twin_launch, grid);
SAME_FIELD(TwinLaunch, tm_twin_launch, block);
SAME_FIELD(TwinLaunch, tm_twin_launch, params);
SAME_FIELD(TwinLaunch, tm_twin_launch, dynamic_shared);
SAME_FIELD(TwinLaunch, tm_twin_launch, dynamic_shared_bytes);
SAME_FIELD(TwinLaunch, tm_twin_launch, barrier);
SAME_FIELD(TwinLaunch, tm_twin_launch, barrier_context);
SAME_FIELD(TwinLaunch, tm_twin_launch, touch);
SAME_FIELD(TwinLaunch, tm_twin_launch, touch_context);
SAME_FIELD(TwinLaunch, tm_twin_launch, variables);

SAME_SIZE(TwinKernel, tm_twin_kernel);
SAME_FIELD(TwinKernel, tm_twin_kernel, name);
SAME_FIELD(TwinKernel, tm_twin_kernel, run);
SAME_FIELD(TwinKernel, tm_twin_kernel, run_traced);
SAME_FIELD(TwinKernel, tm_twin_kernel, run_thread);
SAME_FIELD(TwinKernel, tm_twin_kernel, run_thread_traced);
SAME_FIELD(TwinKernel, tm_twin_kernel, uses_barrier);
SAME_FIELD(TwinKernel, tm_twin_kernel, param_count);
SAME_FIELD(TwinKernel, tm_twin_kernel, params);
SAME_FIELD(TwinKernel, tm_twin_kernel, static_shared_bytes);
SAME_FIELD(TwinKernel, tm_twin_kernel, max_threads_per_block);
SAME_FIELD(TwinKernel, tm_twin_kernel, cost);

SAME_SIZE(TwinImage, tm_twin_image);
SAME_FIELD(TwinImage, tm_twin_image, magic);
SAME_FIELD(TwinImage, tm_twin_image, version);
SAME_FIELD(TwinImage, tm_twin_image, kernel_count);
SAME_FIELD(TwinImage, tm_twin_image, kernels);
SAME_FIELD(TwinImage, tm_twin_image, variables);
SAME_FIELD(TwinImage, tm_twin_image, variable_count);

SAME_SIZE(TwinVariable, tm_twin_variable);
SAME_FIELD(TwinVariable, tm_twin_variable, name);
SAME_FIELD(TwinVariable, tm_twin_variable, bytes);
SAME_FIELD(TwinVariable, tm_twin_variable, initial);
SAME_FIELD(TwinVariable, tm_twin_variable, constant);

TEST(TwinAbi, MagicVersionAndFlagsAreTheSameOnBothSides) {
  EXPECT_EQ(simgpu::kTwinMagic, TIDEMARK_TWIN_MAGIC);
  EXPECT_EQ(simgpu::kTwinVersion, TIDEMARK_TWIN_VERSION);
  EXPECT_EQ(simgpu::kTwinPointer, static_cast<uint32_t>(kTwinParamPointer));
  EXPECT_EQ(simgpu::kTwinConstPointee, static_cast<uint32_t>(kTwinParamConstPointee));
}

}  // namespace
