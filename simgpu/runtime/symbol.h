// A part of a registered variable, for copies and graph nodes that name it by its host shadow.
// Threads: any.

#ifndef SIMGPU_RUNTIME_SYMBOL_H_
#define SIMGPU_RUNTIME_SYMBOL_H_

#include "simgpu/runtime/registry.h"

namespace simgpu::runtime {

struct SymbolRange {
  size_t offset;
  size_t bytes;
};

// The device address of `range` of `symbol`; cudaErrorInvalidValue when it reaches past the end.
int FindRange(const Driver& d, const void* symbol, const SymbolRange& range, void** address);

bool IsToSymbolKind(cudaMemcpyKind kind);
bool IsFromSymbolKind(cudaMemcpyKind kind);

}  // namespace simgpu::runtime

#endif  // SIMGPU_RUNTIME_SYMBOL_H_
