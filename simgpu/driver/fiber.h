// Fibers: the threads of one block of a kernel with a barrier, run in turn on one operating-system
// thread. Not a general coroutine library.
//
// Thread rule: one Fibers per thread; ForThisThread() gives it.

#ifndef SIMGPU_DRIVER_FIBER_H_
#define SIMGPU_DRIVER_FIBER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace simgpu {

class Fibers {
 public:
  static Fibers& ForThisThread();

  // Runs body(argument, i) for i in [0, count), each on its own stack. Returns when all have
  // returned.
  void Run(uint32_t count, void (*body)(void*, uint32_t), void* argument);

  // Called by a body: returns once every body that has not returned came to its barrier.
  void Barrier();

  // Before a fault tears the calling thread out of a fiber: forgets the unfinished ones. Does
  // nothing on a thread that runs none. Safe in a signal handler.
  static void Abandon();
  // After it, back on the thread's own stack.
  static void ArriveHome();

 private:
  struct Fiber {
    void* stack_pointer = nullptr;
    void* tsan = nullptr;
    void* asan_fake_stack = nullptr;
    uint32_t next = 0;  // ring of the unfinished
    uint32_t previous = 0;
  };
  Fibers() = default;
  static Fibers*& OfThisThread();
  void Grow(uint32_t count);
  void Prepare(uint32_t index);
  unsigned char* StackOf(uint32_t index) const;
  void SwitchTo(uint32_t from, uint32_t to);
  static void Entry();
  void Finish();

  std::vector<Fiber> fibers_;
  unsigned char* stacks_ = nullptr;
  Fiber home_;  // the thread's own stack
  uint32_t current_ = 0;
  uint32_t left_ = 0;
  bool abandoned_ = false;
  void (*body_)(void*, uint32_t) = nullptr;
  void* argument_ = nullptr;
  const void* home_bottom_ = nullptr;  // for AddressSanitizer
  size_t home_size_ = 0;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_FIBER_H_
