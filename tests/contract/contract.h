// What every contract test uses: the driver API by name, checks, buffers, launches, children.
// Nothing here knows which driver is below: the suite is built with CUDA's public headers alone.
//
// Threads: Cu() lookups may happen on any thread.

#ifndef TIDEMARK_TESTS_CONTRACT_CONTRACT_H_
#define TIDEMARK_TESTS_CONTRACT_CONTRACT_H_

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "kernels/launch.h"
#include "tests/contract/contract_kernels.h"

namespace contract {

// The driver library that answers to its soname; a machine without one cannot run the suite.
inline void* DriverLibrary() {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "contract: libcuda.so.1 cannot be opened: %s\n", dlerror());
    exit(2);
  }
  return library;
}

// The exported function `name`, as the headers' macros spell it.
template <typename Function>
Function DriverFunction(const char* name) {
  void* function = dlsym(DriverLibrary(), name);
  if (function == nullptr) {
    fprintf(stderr, "contract: libcuda.so.1 does not export %s\n", name);
    exit(2);
  }
  return reinterpret_cast<Function>(function);
}

#define CONTRACT_TEXT_(name) #name
#define CONTRACT_TEXT(name) CONTRACT_TEXT_(name)
// CU(cuMemAlloc)(&address, bytes): the version that cuda.h means, found by dlsym.
#define CU(name) (::contract::DriverFunction<decltype(&::name)>(CONTRACT_TEXT(name)))

#define CU_OK(call) ASSERT_EQ(int{(call)}, int{CUDA_SUCCESS})
#define RT_OK(call) ASSERT_EQ(int{(call)}, int{cudaSuccess})
#define EXPECT_CU(code, call) EXPECT_EQ(int{(call)}, int{code})
#define EXPECT_RT(code, call) EXPECT_EQ(int{(call)}, int{code})

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// A test with device 0's primary context current and no old error.
class ContractTest : public ::testing::Test {
 public:
  void SetUp() override {
    ASSERT_EQ(int{cudaSetDevice(0)}, int{cudaSuccess});
    cudaGetLastError();
  }
  // What a test leaves queued must still succeed.
  void TearDown() override {
    EXPECT_EQ(int{cudaDeviceSynchronize()}, int{cudaSuccess});
    cudaGetLastError();
  }
};

// `count` words of device memory.
class DeviceWords {
 public:
  explicit DeviceWords(size_t count) : count_(count) {
    if (cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(unsigned)) != cudaSuccess) {
      fprintf(stderr, "contract: no device memory for %zu words\n", count);
      exit(2);
    }
  }
  explicit DeviceWords(const std::vector<unsigned>& words) : DeviceWords(words.size()) {
    Write(words);
  }
  ~DeviceWords() { cudaFree(data_); }
  DeviceWords(const DeviceWords&) = delete;
  DeviceWords& operator=(const DeviceWords&) = delete;

  unsigned* get() const { return data_; }
  size_t bytes() const { return count_ * sizeof(unsigned); }
  int count() const { return static_cast<int>(count_); }
  // A copy from pageable memory may return before the bytes have arrived; streams that do not wait
  // for the legacy stream could overtake it.
  void Write(const std::vector<unsigned>& words) {
    EXPECT_EQ(int{cudaMemcpy(data_, words.data(), bytes(), cudaMemcpyHostToDevice)}, 0);
    EXPECT_EQ(int{cudaStreamSynchronize(cudaStreamLegacy)}, 0);
  }
  std::vector<unsigned> Read() const {
    std::vector<unsigned> words(count_, 0xdeadbeef);
    EXPECT_EQ(int{cudaMemcpy(words.data(), data_, bytes(), cudaMemcpyDeviceToHost)}, 0);
    return words;
  }

 private:
  size_t count_;
  unsigned* data_ = nullptr;
};

// `count` objects of pinned host memory.
template <typename T>
class Pinned {
 public:
  explicit Pinned(size_t count) {
    if (cudaMallocHost(reinterpret_cast<void**>(&data_), count * sizeof(T)) != cudaSuccess) {
      fprintf(stderr, "contract: no pinned memory for %zu objects\n", count);
      exit(2);
    }
  }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* get() const { return data_; }
  T& operator[](size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
};

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) {
    EXPECT_EQ(int{cudaStreamCreateWithFlags(&stream_, flags)}, 0);
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) {
    EXPECT_EQ(int{cudaEventCreateWithFlags(&event_, flags)}, 0);
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

constexpr unsigned kBlock = 128;

inline tidemark::kernels::LaunchShape ShapeFor(int count, cudaStream_t stream = nullptr) {
  const unsigned blocks = (static_cast<unsigned>(count) + kBlock - 1) / kBlock;
  return {dim3(blocks), dim3(kBlock), stream, 0};
}

inline cudaError_t Fill(unsigned* out, unsigned value, int count, cudaStream_t stream = nullptr) {
  return tidemark::kernels::Launch(ContractFill, ShapeFor(count, stream), out, value, count);
}
inline cudaError_t Affine(unsigned* data, unsigned factor, unsigned term, int count,
                          cudaStream_t stream = nullptr) {
  return tidemark::kernels::Launch(ContractAffine, ShapeFor(count, stream), data, factor, term,
                                   count);
}

inline std::vector<unsigned> Counting(size_t count, unsigned first = 0) {
  std::vector<unsigned> words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}
inline std::vector<unsigned> Same(size_t count, unsigned value) {
  return std::vector<unsigned>(count, value);
}

inline int DeviceCount() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

inline int DeviceAttribute(CUdevice_attribute attribute, int device = 0) {
  int value = 0;
  EXPECT_EQ(int{CU(cuDeviceGetAttribute)(&value, attribute, device)}, 0);
  return value;
}

inline CUmemLocation Location(CUmemLocationType type, int id) {
  CUmemLocation location = {};
  location.type = type;
  location.id = id;
  return location;
}
inline CUmemLocation OnDevice() { return Location(CU_MEM_LOCATION_TYPE_DEVICE, 0); }

}  // namespace contract

#endif  // TIDEMARK_TESTS_CONTRACT_CONTRACT_H_
