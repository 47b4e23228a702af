// Where the parameters of a kernel lie, asked from the driver once per function and kept. A reader
// takes no lock. What was learned is forgotten as a whole when functions may have changed (module
// unload).
//
// Threads: any.

#ifndef TIDEMARK_INTERPOSE_FUNCTION_INFO_H_
#define TIDEMARK_INTERPOSE_FUNCTION_INFO_H_

#include <stdint.h>

#include "kernels/driver.h"

namespace tidemark::interpose {

struct FunctionInfo {
  CUfunction function = nullptr;
  uint32_t generation = 0;
  uint32_t count = 0;
  bool known = false;  // false: the driver cannot tell, assume anything
  struct Parameter {
    uint32_t offset;
    uint32_t size;
  } parameters[];
};

// Null: no memory, or the table is full.
const FunctionInfo* GetFunctionInfo(const kernels::Driver& driver, CUfunction function);
void ForgetFunctions();

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_FUNCTION_INFO_H_
