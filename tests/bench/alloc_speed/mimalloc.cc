// mimalloc: real host memory, which nobody touches. It serves blocks of megabytes from the
// operating system, which the device allocators never ask; read its column for small sizes.

#include <mimalloc.h>

#include "tests/bench/alloc_speed/contender.h"

namespace tidemark::bench {
namespace {

class Mimalloc : public Contender {
  void* Allocate(size_t bytes, uint32_t) override { return mi_malloc(bytes); }
  void Free(void* address, size_t, uint32_t) override { mi_free(address); }
};

}  // namespace

std::unique_ptr<Contender> MakeMimalloc(bool, size_t) { return std::make_unique<Mimalloc>(); }

}  // namespace tidemark::bench
