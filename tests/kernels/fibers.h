// The device's side of a barrier, for tests: runs the threads of one block as fibers of the calling
// thread, each up to its next barrier in turn.

#ifndef TIDEMARK_TESTS_KERNELS_FIBERS_H_
#define TIDEMARK_TESTS_KERNELS_FIBERS_H_

#include <ucontext.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/host_twin_abi.h"

namespace tidemark::kernels {

class Fibers {
 public:
  using Entry = void (*)(const tm_twin_launch*, uint64_t, uint32_t);

  void RunBlock(Entry entry, tm_twin_launch launch, uint64_t block) {
    entry_ = entry;
    block_ = block;
    launch.barrier = [](void* self) { static_cast<Fibers*>(self)->Yield(); };
    launch.barrier_context = this;
    launch_ = &launch;
    const uint32_t threads = launch.block[0];
    contexts_.assign(threads, {});
    stacks_.assign(threads, std::vector<char>(64 << 10));
    done_ = 0;
    current_fibers = this;
    for (current_ = 0; current_ < threads; ++current_) Start(current_);
    while (done_ < threads) {
      for (current_ = 0; current_ < threads; ++current_) {
        if (!stacks_[current_].empty()) swapcontext(&main_, &contexts_[current_]);
      }
    }
  }

 private:
  void Start(uint32_t thread) {
    getcontext(&contexts_[thread]);
    contexts_[thread].uc_stack.ss_sp = stacks_[thread].data();
    contexts_[thread].uc_stack.ss_size = stacks_[thread].size();
    contexts_[thread].uc_link = nullptr;
    makecontext(&contexts_[thread], &Fibers::Body, 0);
  }
  static void Body() {
    Fibers* self = current_fibers;
    self->entry_(self->launch_, self->block_, self->current_);
    ++self->done_;
    self->finished_.push_back(std::move(self->stacks_[self->current_]));
    self->stacks_[self->current_].clear();
    self->Yield();
  }
  void Yield() { swapcontext(&contexts_[current_], &main_); }

  static inline Fibers* current_fibers = nullptr;
  Entry entry_ = nullptr;
  const tm_twin_launch* launch_ = nullptr;
  uint64_t block_ = 0;
  uint32_t current_ = 0;
  uint32_t done_ = 0;
  ucontext_t main_ = {};
  std::vector<ucontext_t> contexts_;
  std::vector<std::vector<char>> stacks_, finished_;
};

}  // namespace tidemark::kernels

#endif  // TIDEMARK_TESTS_KERNELS_FIBERS_H_
