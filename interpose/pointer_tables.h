// Buffers whose bytes are pointers to other buffers (arrays of pointers for batched kernels): for
// each, the addresses that a host-to-device copy put there. A hint for the launch gate; what is
// forgotten here costs time, never correctness. Threads: the device's lock is held.

#ifndef TIDEMARK_INTERPOSE_POINTER_TABLES_H_
#define TIDEMARK_INTERPOSE_POINTER_TABLES_H_

#include <cuda.h>
#include <stdint.h>

namespace tidemark::interpose {

class PointerTables {
 public:
  static constexpr int kTables = 64;
  static constexpr int kTargets = 512;

  // The buffer at `table` now holds `count` addresses (more than kTargets are forgotten); 0 drops
  // it.
  void Set(CUdeviceptr table, const CUdeviceptr* targets, int count);
  void Drop(CUdeviceptr table) {
    if (used_ != 0) Set(table, nullptr, 0);
  }
  // The targets of `table`, or null.
  const CUdeviceptr* Targets(CUdeviceptr table, int* count) const;
  bool empty() const { return used_ == 0; }

 private:
  struct Table {
    CUdeviceptr base = 0;
    int count = 0;
    CUdeviceptr targets[kTargets];
  };
  Table tables_[kTables];
  int used_ = 0;
  int next_ = 0;  // overwritten next when all are taken
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_POINTER_TABLES_H_
