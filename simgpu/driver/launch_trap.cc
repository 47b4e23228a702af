// Faults inside twin kernels: a SIGSEGV or SIGBUS there becomes an error of the device. Faults
// anywhere else go to whoever handled them before us, untouched.
//
// Thread rule: any thread; the handler touches only its thread's trap.

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include <cstring>
#include <mutex>

#include "simgpu/driver/fiber.h"
#include "simgpu/driver/launch.h"

namespace simgpu {
namespace {

struct Trap {
  sigjmp_buf environment;
  uint64_t address = 0;
};

// Initial-exec, so that a fault on a thread that never ran a kernel needs no allocation here.
__attribute__((tls_model("initial-exec"))) thread_local Trap* the_trap = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local bool chaining = false;

constexpr int kSignals[] = {SIGSEGV, SIGBUS};
struct sigaction previous[2];

void OnFault(int signal, siginfo_t* info, void* context);

struct sigaction OurAction() {
  struct sigaction action {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return action;
}

void Die(int signal) {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  // Returning runs the faulting instruction again, which now ends the process as if we were not
  // here.
}

void Chain(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = previous[signal == SIGSEGV ? 0 : 1];
  // `chaining`: the handler before us hands on to us, so nobody wants it.
  if (chaining || before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    Die(signal);
    return;
  }
  chaining = true;
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
  chaining = false;
}

void OnFault(int signal, siginfo_t* info, void* context) {
  Trap* trap = the_trap;
  // A positive code is a fault of this thread's own; kill() and the like are not.
  if (trap == nullptr || info->si_code <= 0) {
    Chain(signal, info, context);
    return;
  }
  the_trap = nullptr;
  trap->address = reinterpret_cast<uint64_t>(info->si_addr);
  Fibers::Abandon();
  siglongjmp(trap->environment, 1);
}

// Others install handlers too, some of them late; ours has to be there whenever a kernel runs.
void Install() {
  static std::mutex mutex;
  for (int i = 0; i < 2; ++i) {
    struct sigaction current {};
    sigaction(kSignals[i], nullptr, &current);
    if ((current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == OnFault) continue;
    const std::lock_guard<std::mutex> lock(mutex);
    const struct sigaction ours = OurAction();
    sigaction(kSignals[i], &ours, &current);
    if ((current.sa_flags & SA_SIGINFO) == 0 || current.sa_sigaction != OnFault) {
      previous[i] = current;
    }
  }
}

void Unblock() {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int signal : kSignals) sigaddset(&faults, signal);
  pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

}  // namespace

bool CallTrapped(void (*body)(void*), void* argument, uint64_t* fault) {
  Install();
  Trap trap;
  // Without the mask, which would cost a system call a launch; it is mended after a fault instead.
  if (sigsetjmp(trap.environment, 0) != 0) {
    Fibers::ArriveHome();
    Unblock();
    *fault = trap.address;
    return false;
  }
  the_trap = &trap;
  body(argument);
  the_trap = nullptr;
  return true;
}

}  // namespace simgpu
