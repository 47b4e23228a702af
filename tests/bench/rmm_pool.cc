// Nanoseconds of an allocate/free pair of RMM's pool resource, with the sizes of shim_bench.cc, for
// the table beside it. Compiled by rmm_pool.py against RMM's own headers, where its wheel can be
// had; not part of the build. Threads: one.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

namespace {

constexpr std::size_t kSizes[] = {512, 4096, 65536, 786432, 3 << 20, 8 << 20, 3 << 20, 65536};
constexpr int kBatches = 500;
constexpr int kPairs = 64;

double Nanoseconds(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main() {
  rmm::mr::cuda_memory_resource device;
  rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource> pool(&device, 256u << 20,
                                                                    512u << 20);
  std::vector<double> each;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int pair = 0; pair < kPairs; ++pair) {
      const std::size_t bytes = kSizes[pair % 8];
      void* address = pool.allocate(bytes, rmm::cuda_stream_default);
      pool.deallocate(address, bytes, rmm::cuda_stream_default);
    }
    each.push_back(Nanoseconds(start) / kPairs);
  }
  std::sort(each.begin(), each.end());
  std::printf("%-48s %10.0f %10.0f\n", "allocate + free, RMM pool resource", each[each.size() / 2],
              each[each.size() * 99 / 100]);
  return 0;
}
