// See fiber.h. The context switch saves what the platform's calling convention says a callee keeps.

#include "simgpu/driver/fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "simgpu/driver/state.h"

#if defined(__SANITIZE_ADDRESS__)
#define SIMGPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMGPU_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SIMGPU_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIMGPU_TSAN 1
#endif
#endif

#ifdef SIMGPU_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIMGPU_TSAN
#include <sanitizer/tsan_interface.h>
#endif

// Saves the callee-saved registers on the stack, stores the stack pointer to *save, and continues
// where `load` was saved.
extern "C" void simgpu_switch_stack(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
.text
.local simgpu_switch_stack
.type simgpu_switch_stack, @function
simgpu_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simgpu_switch_stack, .-simgpu_switch_stack
)");
#elif defined(__aarch64__)
asm(R"(
.text
.local simgpu_switch_stack
.type simgpu_switch_stack, %function
simgpu_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size simgpu_switch_stack, .-simgpu_switch_stack
)");
#else
#error "simgpu runs kernels with barriers on x86-64 and aarch64 only"
#endif

namespace simgpu {
namespace {

constexpr size_t kStackBytes = 64 * 1024;
constexpr size_t kGuardBytes = 4096;
constexpr uint32_t kMaxFibers = 1024;
constexpr uint32_t kHome = ~uint32_t{0};
// Stacks at the same offset of every 64 KiB would share their cache sets.
constexpr size_t kColours = 16;
constexpr size_t kColourBytes = 192;

}  // namespace

Fibers*& Fibers::OfThisThread() {
  static thread_local Fibers* fibers = nullptr;
  return fibers;
}

Fibers& Fibers::ForThisThread() {
  // Leaked with the thread: a kernel may run while thread-local objects are destroyed.
  Fibers*& fibers = OfThisThread();
  if (fibers == nullptr) fibers = new Fibers;
  return *fibers;
}

unsigned char* Fibers::StackOf(uint32_t index) const {
  return stacks_ + size_t{index} * kStackBytes;
}

void Fibers::Grow(uint32_t count) {
  if (stacks_ == nullptr) {
    void* memory = mmap(nullptr, kStackBytes * kMaxFibers, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      LogAlways("no address space for the %zu MiB of stacks of a block's threads",
                kStackBytes * kMaxFibers >> 20);
      abort();
    }
    stacks_ = static_cast<unsigned char*>(memory);
  }
  for (uint32_t i = static_cast<uint32_t>(fibers_.size()); i < count; ++i) {
    mprotect(StackOf(i), kGuardBytes, PROT_NONE);
    fibers_.emplace_back();
#ifdef SIMGPU_TSAN
    fibers_.back().tsan = __tsan_create_fiber(0);
#endif
  }
}

// Lays out a stack so that the first switch to it "returns" into Entry.
void Fibers::Prepare(uint32_t index) {
  unsigned char* top = StackOf(index) + kStackBytes - index % kColours * kColourBytes;
  auto* frame = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
  // At Entry's first instruction the stack is 8 off a multiple of 16, as after a call.
  frame -= 2;
  frame[0] = reinterpret_cast<void*>(&Fibers::Entry);
  frame[1] = nullptr;
  frame -= 6;
  memset(static_cast<void*>(frame), 0, 6 * sizeof(void*));
#else
  frame -= 20;
  memset(static_cast<void*>(frame), 0, 20 * sizeof(void*));
  frame[11] = reinterpret_cast<void*>(&Fibers::Entry);  // x30
#endif
  fibers_[index].stack_pointer = frame;
}

void Fibers::SwitchTo(uint32_t from, uint32_t to) {
  Fiber& out = from == kHome ? home_ : fibers_[from];
  Fiber& in = to == kHome ? home_ : fibers_[to];
#ifdef SIMGPU_ASAN
  __sanitizer_start_switch_fiber(&out.asan_fake_stack,
                                 to == kHome ? home_bottom_ : StackOf(to) + kGuardBytes,
                                 to == kHome ? home_size_ : kStackBytes - kGuardBytes);
#endif
#ifdef SIMGPU_TSAN
  __tsan_switch_to_fiber(in.tsan, 0);
#endif
  simgpu_switch_stack(&out.stack_pointer, in.stack_pointer);
#ifdef SIMGPU_ASAN
  __sanitizer_finish_switch_fiber(out.asan_fake_stack, nullptr, nullptr);
#endif
}

void Fibers::Entry() {
  Fibers& self = ForThisThread();
#ifdef SIMGPU_ASAN
  const void* bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);
  if (self.home_bottom_ == nullptr) {
    self.home_bottom_ = bottom;
    self.home_size_ = size;
  }
#endif
  self.body_(self.argument_, self.current_);
  self.Finish();
}

// Leaves the ring for good.
void Fibers::Finish() {
  const uint32_t mine = current_;
  const Fiber& fiber = fibers_[mine];
  fibers_[fiber.previous].next = fiber.next;
  fibers_[fiber.next].previous = fiber.previous;
  const uint32_t to = --left_ == 0 ? kHome : fiber.next;
  if (to != kHome) current_ = to;
  SwitchTo(mine, to);
  abort();  // nothing switches to a finished fiber
}

void Fibers::Run(uint32_t count, void (*body)(void*, uint32_t), void* argument) {
  if (count > kMaxFibers) count = kMaxFibers;
  if (count > fibers_.size()) Grow(count);
  body_ = body;
  argument_ = argument;
  left_ = count;
  for (uint32_t i = 0; i < count; ++i) {
    Prepare(i);
    fibers_[i].next = i + 1 == count ? 0 : i + 1;
    fibers_[i].previous = i == 0 ? count - 1 : i - 1;
  }
#ifdef SIMGPU_TSAN
  home_.tsan = __tsan_get_current_fiber();
#endif
#ifdef SIMGPU_ASAN
  home_bottom_ = nullptr;  // learned by the first fiber: a launch may come from any stack
#endif
  current_ = 0;
  SwitchTo(kHome, 0);
}

void Fibers::Barrier() {
  if (left_ <= 1) return;
  const uint32_t mine = current_;
  current_ = fibers_[mine].next;
  SwitchTo(mine, current_);
}

void Fibers::Abandon() {
  Fibers* self = OfThisThread();
  if (self == nullptr || self->left_ == 0) return;
#ifdef SIMGPU_ASAN
  __sanitizer_start_switch_fiber(nullptr, self->home_bottom_, self->home_size_);
#endif
#ifdef SIMGPU_TSAN
  __tsan_switch_to_fiber(self->home_.tsan, 0);
#endif
  self->left_ = 0;
  self->abandoned_ = true;
}

void Fibers::ArriveHome() {
  Fibers* self = OfThisThread();
  if (self == nullptr || !self->abandoned_) return;
  self->abandoned_ = false;
#ifdef SIMGPU_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace simgpu
