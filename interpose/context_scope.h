// Makes a context current on the calling thread for as long as it lives. Threads: each its own.

#ifndef TIDEMARK_INTERPOSE_CONTEXT_SCOPE_H_
#define TIDEMARK_INTERPOSE_CONTEXT_SCOPE_H_

#include "kernels/driver.h"

namespace tidemark::interpose {

class ContextScope {
 public:
  ContextScope(const kernels::Driver& driver, CUcontext context) : driver_(driver) {
    CUcontext current = nullptr;
    ok_ = driver_.cuCtxGetCurrent(&current) == CUDA_SUCCESS;
    if (!ok_ || current == context) return;
    ok_ = pushed_ = driver_.cuCtxPushCurrent(context) == CUDA_SUCCESS;
  }
  ~ContextScope() {
    CUcontext popped;
    if (pushed_) driver_.cuCtxPopCurrent(&popped);
  }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  bool ok() const { return ok_; }

 private:
  const kernels::Driver& driver_;
  bool ok_ = false;
  bool pushed_ = false;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_CONTEXT_SCOPE_H_
