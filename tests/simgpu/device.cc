// See device.h.

#include "tests/simgpu/device.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simgpu_tests {
namespace {

int failures = 0;

template <typename T>
T Param(const simgpu::TwinLaunch* launch, int index) {
  T value;
  memcpy(&value, launch->params[index], sizeof(value));
  return value;
}

void Touch(const simgpu::TwinLaunch* launch, const void* at, uint64_t bytes, bool write) {
  if (launch->touch != nullptr) launch->touch(launch->touch_context, at, bytes, write ? 1 : 0);
}

void AddTraced(const simgpu::TwinLaunch* launch, uint64_t, uint64_t) {
  auto* data = Param<uint32_t*>(launch, 0);
  const auto count = Param<uint32_t>(launch, 1);
  const auto value = Param<uint32_t>(launch, 2);
  for (uint32_t i = 0; i < count; ++i) {
    Touch(launch, data + i, 4, false);
    Touch(launch, data + i, 4, true);
    data[i] += value;
  }
}

void CopyTraced(const simgpu::TwinLaunch* launch, uint64_t, uint64_t) {
  auto* to = Param<uint32_t*>(launch, 0);
  const auto* from = Param<const uint32_t*>(launch, 1);
  const auto count = Param<uint32_t>(launch, 2);
  for (uint32_t i = 0; i < count; ++i) {
    Touch(launch, from + i, 4, false);
    Touch(launch, to + i, 4, true);
    to[i] = from[i];
  }
}

void ReverseThread(const simgpu::TwinLaunch* launch, uint64_t block, uint32_t thread) {
  auto* shared = static_cast<uint32_t*>(launch->dynamic_shared);
  auto* data = Param<uint32_t*>(launch, 0) + block * launch->block[0];
  shared[thread] = data[thread];
  launch->barrier(launch->barrier_context);
  const uint32_t mine = shared[launch->block[0] - 1 - thread];
  launch->barrier(launch->barrier_context);
  data[thread] = mine;
}

void Append(const simgpu::TwinLaunch* launch, uint64_t, uint64_t) {
  auto* cell = Param<uint32_t*>(launch, 0);
  Touch(launch, cell, 4, false);
  Touch(launch, cell, 4, true);
  *cell = *cell * 10 + Param<uint32_t>(launch, 1);
}

void Nothing(const simgpu::TwinLaunch*, uint64_t, uint64_t) {}

void OneMillisecond(const simgpu::TwinLaunch*, double* flops, double* bytes) {
  *flops = 20e12 * 1e-3;  // of the default flops=
  *bytes = 0;
}

void Untraced(const simgpu::TwinLaunch* launch, uint64_t, uint64_t) {
  auto* data = Param<uint32_t*>(launch, 0);
  const auto count = Param<uint32_t>(launch, 1);
  for (uint32_t i = 0; i < count; ++i) data[i] = i;
}

constexpr uint32_t kConst = simgpu::kTwinPointer | simgpu::kTwinConstPointee;
const simgpu::TwinParam kAddParams[] = {
    {0, 8, simgpu::kTwinPointer, 0}, {8, 4, 0, 0}, {12, 4, 0, 0}};
const simgpu::TwinParam kCopyParams[] = {
    {0, 8, simgpu::kTwinPointer, 0}, {8, 8, kConst, 0}, {16, 4, 0, 0}};

const simgpu::TwinKernel kKernels[] = {
    {"add", AddTraced, AddTraced, nullptr, nullptr, 0, 3, kAddParams, 0, 1024, nullptr},
    {"append", Append, Append, nullptr, nullptr, 0, 2, kAddParams, 0, 1024, nullptr},
    {"copy", CopyTraced, CopyTraced, nullptr, nullptr, 0, 3, kCopyParams, 0, 1024, nullptr},
    {"reverse", nullptr, nullptr, ReverseThread, nullptr, 1, 1, kAddParams, 0, 1024, nullptr},
    {"slow", Nothing, Nothing, nullptr, nullptr, 0, 1, kAddParams, 0, 1024, OneMillisecond},
    {"untraced", Untraced, nullptr, nullptr, nullptr, 0, 2, kAddParams, 0, 1024, nullptr},
};
const simgpu::TwinImage kImage = {simgpu::kTwinMagic,
                                  simgpu::kTwinVersion,
                                  sizeof(kKernels) / sizeof(kKernels[0]),
                                  kKernels,
                                  nullptr,
                                  0};

void Child(const std::string& config, const std::function<void()>& body, int output) {
  dup2(output, STDERR_FILENO);
  setenv("SIMGPU", config.c_str(), 1);
  EXPECT_CUDA(cuInit(0));
  CUdevice device = 0;
  CUcontext context = nullptr;
  EXPECT_CUDA(cuDeviceGet(&device, 0));
  EXPECT_CUDA(cuDevicePrimaryCtxRetain(&context, device));
  EXPECT_CUDA(cuCtxSetCurrent(context));
  if (failures == 0) body();
  exit(failures == 0 ? 0 : 1);  // not _exit: the report is written at exit
}

}  // namespace

void Expect(bool holds, const char* sentence, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: expected %s\n", line, sentence);
}

void ExpectCode(CUresult code, CUresult wanted, const char* call, int line) {
  if (code == wanted) return;
  ++failures;
  const char* name = "an unknown code";
  cuGetErrorName(code, &name);
  fprintf(stderr, "line %d: %s answered %s (%d), expected %d\n", line, call, name, code, wanted);
}

std::string InChild(const std::string& config, const std::function<void()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    Child(config, body, ends[1]);
  }
  close(ends[1]);
  std::string output;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) {
    output.append(buffer, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "SIMGPU=" << config << ", wait status " << status << ":\n"
      << output;
  return output;
}

const void* Image() { return &kImage; }

CUfunction Function(const char* name) {
  static CUmodule module = nullptr;
  if (module == nullptr) EXPECT_CUDA(cuModuleLoadData(&module, Image()));
  CUfunction function = nullptr;
  EXPECT_CUDA(cuModuleGetFunction(&function, module, name));
  return function;
}

CUresult LaunchOn(CUstream stream, const char* kernel, std::vector<void*> params, unsigned threads,
                  unsigned blocks) {
  return cuLaunchKernel(Function(kernel), blocks, 1, 1, threads, 1, 1, threads * 4, stream,
                        params.data(), nullptr);
}

CUresult Add(CUstream stream, CUdeviceptr data, uint32_t count, uint32_t value) {
  return LaunchOn(stream, "add", {&data, &count, &value});
}

CUdeviceptr Allocate(size_t bytes) {
  CUdeviceptr data = 0;
  EXPECT_CUDA(cuMemAlloc(&data, bytes));
  EXPECT_CUDA(cuMemsetD8(data, 0, bytes));
  EXPECT_CUDA(cuCtxSynchronize());
  return data;
}

uint32_t* AllocatePinned(size_t bytes) {
  void* data = nullptr;
  EXPECT_CUDA(cuMemHostAlloc(&data, bytes, 0));
  if (data != nullptr) memset(data, 0, bytes);
  return static_cast<uint32_t*>(data);
}

CUstream NewStream() {
  CUstream stream = nullptr;
  EXPECT_CUDA(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUevent NewEvent() {
  CUevent event = nullptr;
  EXPECT_CUDA(cuEventCreate(&event, CU_EVENT_DEFAULT));
  return event;
}

std::vector<uint32_t> Read(CUdeviceptr data, size_t count) {
  std::vector<uint32_t> words(count);
  EXPECT_CUDA(cuCtxSynchronize());
  EXPECT_CUDA(cuMemcpyDtoH(words.data(), data, count * 4));
  return words;
}

}  // namespace simgpu_tests
