// One allocator in the speed table. All hand out addresses (or, for mimalloc, memory) for the same
// sequence of calls; none is asked to touch a device. Implementations lie in a file each, so that a
// missing package drops one row and nothing else.
//
// Threads: `shared` ones lock for themselves; the others are used by one thread.

#ifndef TIDEMARK_TESTS_BENCH_ALLOC_SPEED_CONTENDER_H_
#define TIDEMARK_TESTS_BENCH_ALLOC_SPEED_CONTENDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tidemark::bench {

inline constexpr uint32_t kMostStreams = 64;

class Contender {
 public:
  virtual ~Contender() = default;
  // Null: refused. Streams count from 0.
  virtual void* Allocate(size_t bytes, uint32_t stream) = 0;
  virtual void Free(void* address, size_t bytes, uint32_t stream) = 0;
};

// `shared`: several threads will call. `capacity`: bytes of the device that is pretended.
std::unique_ptr<Contender> MakeNothing(bool shared, size_t capacity);
std::unique_ptr<Contender> MakeTidemark(bool shared, size_t capacity);
std::unique_ptr<Contender> MakeRmmPool(bool shared, size_t capacity);
std::unique_ptr<Contender> MakeRmmArena(bool shared, size_t capacity);
std::unique_ptr<Contender> MakeMimalloc(bool shared, size_t capacity);
std::unique_ptr<Contender> MakeTlsf(bool shared, size_t capacity);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOC_SPEED_CONTENDER_H_
