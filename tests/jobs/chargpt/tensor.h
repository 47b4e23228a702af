// Device and pinned host arrays, one CUDA allocation each, freed when they go out of scope. Device
// bytes are counted as requested. Threads: the counters are not synchronised; one thread trains.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_TENSOR_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_TENSOR_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "tests/jobs/chargpt/check.h"

namespace chargpt {

struct RequestedBytes {
  size_t current = 0;
  size_t peak = 0;
};
inline RequestedBytes requested_bytes;

// Move-only owner of `count` elements of device memory, uninitialised.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  explicit DeviceArray(size_t count) : count_(count) {
    Check(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()), "cudaMalloc", bytes());
    requested_bytes.current += bytes();
    requested_bytes.peak = std::max(requested_bytes.peak, requested_bytes.current);
  }
  DeviceArray(DeviceArray&& other) noexcept { *this = std::move(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceArray() { Free(); }

  // cudaFree waits for the work that uses the array, so callers may free at once.
  void Free() {
    if (data_ == nullptr) return;
    requested_bytes.current -= bytes();
    Check(cudaFree(data_), "cudaFree");
    data_ = nullptr;
    count_ = 0;
  }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_ = nullptr;
  size_t count_ = 0;
};

using Tensor = DeviceArray<float>;

// Move-only owner of `count` elements of pinned host memory.
template <typename T>
class PinnedArray {
 public:
  explicit PinnedArray(size_t count) : count_(count) {
    Check(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes()), "cudaMallocHost", bytes());
  }
  PinnedArray(PinnedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  PinnedArray& operator=(PinnedArray&&) = delete;
  ~PinnedArray() {
    if (data_ != nullptr) cudaFreeHost(data_);
  }

  T* data() const { return data_; }
  size_t size() const { return count_; }
  size_t bytes() const { return count_ * sizeof(T); }
  T& operator[](size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  size_t count_;
};

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_TENSOR_H_
