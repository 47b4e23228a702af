// cuGetProcAddress in both its versions: a name, a CUDA version and the kind of default stream lead
// to the exported function that cuda.h of that version would have meant. Thread rule: none needed;
// the table is constant.

#include "simgpu/driver/proc_table.h"

#include <cstring>

// No cuda.h here: its macros would rename the functions that the table names.
extern "C" {
#define PROC(base, version, flag, name) int name(void);
#include "proc_table.inc"
#undef PROC
}

namespace {

struct Proc {
  const char* base;
  int version;
  int per_thread;
  int (*function)();
};

#define PROC(base, version, flag, name) {base, version, flag, name},
const Proc kProcs[] = {
#include "proc_table.inc"
};
#undef PROC

// The newest form not above `version`; per-thread forms are preferred when asked for and exist.
const Proc* Choose(const char* base, int version, bool per_thread, simgpu::ProcStatus* status) {
  const Proc* best = nullptr;
  *status = simgpu::kNoSuchSymbol;
  for (const Proc& proc : kProcs) {
    if (strcmp(proc.base, base) != 0 || (proc.per_thread != 0 && !per_thread)) continue;
    if (*status == simgpu::kNoSuchSymbol) *status = simgpu::kVersionTooOld;
    if (proc.version > version) continue;
    const bool better = best == nullptr || proc.per_thread > best->per_thread ||
                        (proc.per_thread == best->per_thread && proc.version >= best->version);
    if (better) best = &proc;
  }
  if (best != nullptr) *status = simgpu::kFound;
  return best;
}

}  // namespace

namespace simgpu {

void* FindProc(const char* base, int version, bool per_thread, ProcStatus* status) {
  const Proc* proc = Choose(base, version, per_thread, status);
  return proc != nullptr ? reinterpret_cast<void*>(proc->function) : nullptr;
}

}  // namespace simgpu
