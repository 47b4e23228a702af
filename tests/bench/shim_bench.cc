// Nanoseconds that the memory side adds to a job's calls: an allocate/free pair and the launch
// gate, beside the bare driver's calls in the same run. Over the software GPU the bare figures are
// the simulator's; over a real driver (TIDEMARK_LIBCUDA) they are the hardware's. Prints a table;
// asserts nothing.
//
// Threads: one.

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "interpose/futex.h"
#include "interpose/manager.h"
#include "interpose/process_memory.h"
#include "kernels/driver.h"
#include "kernels/hash.h"

namespace {

using tidemark::interpose::GatePass;
using tidemark::interpose::GateSpan;
using tidemark::interpose::Guard;
using tidemark::interpose::NowNs;

tidemark::kernels::Driver driver;

[[noreturn]] void Die(const char* what) {
  fprintf(stderr, "shim_bench: %s\n", what);
  exit(1);
}
void Check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) Die(what);
}

struct Figures {
  double median;
  double p99;
};

// `action` runs in batches; figures are nanoseconds per run, over batches.
template <typename Action>
Figures Measure(int batches, int runs, const Action& action) {
  std::vector<double> each;
  for (int i = 0; i < batches; ++i) {
    const int64_t start = NowNs();
    for (int k = 0; k < runs; ++k) action(k);
    each.push_back(static_cast<double>(NowNs() - start) / runs);
  }
  std::sort(each.begin(), each.end());
  return {each[each.size() / 2], each[each.size() * 99 / 100]};
}

void Print(const char* name, Figures figures) {
  printf("%-48s %10.0f %10.0f\n", name, figures.median, figures.p99);
}

// As in a training step: few distinct sizes, small to large.
constexpr size_t kSizes[] = {512, 4096, 65536, 786432, 3 << 20, 8 << 20, 3 << 20, 65536};

void MeasureAllocation() {
  Print("allocate + free, Tidemark", Measure(500, 64, [](int k) {
          Guard guard;
          CUdeviceptr address = 0;
          CUresult result = CUDA_ERROR_UNKNOWN;
          ManagerAlloc(guard, &address, kSizes[k % 8], &result);
          Check(result, "an allocation failed");
          ManagerFree(guard, address, &result);
        }));
  Print("allocate + free, bare driver", Measure(50, 8, [](int k) {
          CUdeviceptr address = 0;
          Check(driver.cuMemAlloc(&address, kSizes[k % 8]), "cuMemAlloc failed");
          driver.cuMemFree(address);
        }));
}

void MeasureGate(CUstream stream, CUfunction function) {
  Guard guard;
  CUdeviceptr data = 0, result_word = 0;
  CUresult result = CUDA_ERROR_UNKNOWN;
  ManagerAlloc(guard, &data, 4 << 20, &result);
  Check(result, "an allocation failed");
  ManagerAlloc(guard, &result_word, 512, &result);
  Check(result, "an allocation failed");
  uint64_t words[2] = {64, 0};
  void* params[] = {&data, &words[0], &words[1], &result_word, &words[1], &words[1], &words[1]};
  Print("launch gate, kernel",
        Measure(500, 256, [&](int) { GatePass pass(guard, stream, function, params, nullptr); }));
  const GateSpan spans[] = {{data, 4 << 20, true}, {result_word, 512, false}};
  Print("launch gate, copy of two spans",
        Measure(500, 256, [&](int) { GatePass pass(guard, stream, spans, 2); }));
  Print("bare submission: cuMemsetD8Async of 512 bytes",
        Measure(50, 16, [&](int) { driver.cuMemsetD8Async(result_word, 0, 512, stream); }));
  driver.cuStreamSynchronize(stream);
}

}  // namespace

int main() {
  char path[4096];
  if (!tidemark::kernels::FindDriver("", path, sizeof(path))) Die("there is no libcuda.so.1");
  if (const char* why = tidemark::kernels::OpenDriver(path, &driver)) Die(why);
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  tidemark::kernels::HashModule hash;
  Check(driver.cuInit(0), "cuInit failed");
  Check(driver.cuDevicePrimaryCtxRetain(&context, 0), "no primary context");
  Check(driver.cuCtxSetCurrent(context), "no current context");
  Check(driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "no stream");
  Check(tidemark::kernels::LoadHash(driver, &hash), "no kernel could be loaded");
  {
    Guard guard;
    ManagerStart(guard, driver);
    if (!tidemark::interpose::ManagerActive()) Die("the memory side did not start");
    ManagerStreamCreated(guard, stream);
  }
  printf("driver: %s\n%-48s %10s %10s\n", path, "nanoseconds per call", "median", "p99");
  MeasureAllocation();
  MeasureGate(stream, hash.function);
  const auto* process = tidemark::interpose::GetProcessMemory();
  printf("daemon round trips: %llu\n",
         static_cast<unsigned long long>(process->session.round_trips()));
  return 0;
}
