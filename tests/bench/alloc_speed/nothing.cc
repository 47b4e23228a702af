// An allocator that does nothing: what the table's own clock and calls cost, in every other row as
// well.

#include "tests/bench/alloc_speed/contender.h"

namespace tidemark::bench {
namespace {

class Nothing : public Contender {
 public:
  void* Allocate(size_t, uint32_t) override { return &address_; }
  void Free(void*, size_t, uint32_t) override {}

 private:
  char address_ = 0;
};

}  // namespace

std::unique_ptr<Contender> MakeNothing(bool, size_t) { return std::make_unique<Nothing>(); }

}  // namespace tidemark::bench
