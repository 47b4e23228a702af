// Variables by their host shadow: address, size, copies. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"
#include "simgpu/runtime/copy.h"
#include "simgpu/runtime/symbol.h"

namespace simgpu::runtime {

int FindRange(const Driver& d, const void* symbol, const SymbolRange& range, void** address) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (int code = FindSymbol(d, symbol, &base, &bytes)) return code;
  if (range.offset > bytes || range.bytes > bytes - range.offset) return cudaErrorInvalidValue;
  *address = reinterpret_cast<void*>(base + range.offset);
  return cudaSuccess;
}

bool IsToSymbolKind(cudaMemcpyKind kind) {
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

bool IsFromSymbolKind(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
         kind == cudaMemcpyDefault;
}

namespace {

int SymbolAddress(const Driver& d, void** address, const void* symbol) {
  if (address == nullptr) return cudaErrorInvalidValue;
  return FindRange(d, symbol, {0, 0}, address);
}

int SymbolSize(const Driver& d, size_t* bytes, const void* symbol) {
  CUdeviceptr base = 0;
  if (bytes == nullptr) return cudaErrorInvalidValue;
  return FindSymbol(d, symbol, &base, bytes);
}

int ToSymbol(const Driver& d, const void* symbol, const void* source, const SymbolRange& range,
             cudaMemcpyKind kind) {
  void* target = nullptr;
  if (!IsToSymbolKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (int code = FindRange(d, symbol, range, &target)) return code;
  return CopyRun(d, target, source, range.bytes, kind);
}

int FromSymbol(const Driver& d, void* target, const void* symbol, const SymbolRange& range,
               cudaMemcpyKind kind) {
  void* source = nullptr;
  if (!IsFromSymbolKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (int code = FindRange(d, symbol, range, &source)) return code;
  return CopyRun(d, target, source, range.bytes, kind);
}

struct Queued {
  cudaMemcpyKind kind;
  cudaStream_t stream;
};

int ToSymbolAsync(const Driver& d, const void* symbol, const void* source, const SymbolRange& range,
                  Queued how) {
  void* target = nullptr;
  if (!IsToSymbolKind(how.kind)) return cudaErrorInvalidMemcpyDirection;
  if (int code = FindRange(d, symbol, range, &target)) return code;
  return CopyRunAsync(d, target, source, range.bytes, how.kind, how.stream);
}

int FromSymbolAsync(const Driver& d, void* target, const void* symbol, const SymbolRange& range,
                    Queued how) {
  void* source = nullptr;
  if (!IsFromSymbolKind(how.kind)) return cudaErrorInvalidMemcpyDirection;
  if (int code = FindRange(d, symbol, range, &source)) return code;
  return CopyRunAsync(d, target, source, range.bytes, how.kind, how.stream);
}

}  // namespace

SIMGPU_CALL(cudaGetSymbolAddress, (void** address, const void* symbol),
            SymbolAddress(d, address, symbol))
SIMGPU_CALL(cudaGetSymbolSize, (size_t * bytes, const void* symbol), SymbolSize(d, bytes, symbol))
SIMGPU_CALL_TWINS(cudaMemcpyToSymbol, _ptds,
                  (const void* symbol, const void* source, size_t bytes, size_t offset,
                   cudaMemcpyKind kind),
                  ToSymbol(d, symbol, source, {offset, bytes}, kind))
SIMGPU_CALL_TWINS(cudaMemcpyFromSymbol, _ptds,
                  (void* target, const void* symbol, size_t bytes, size_t offset,
                   cudaMemcpyKind kind),
                  FromSymbol(d, target, symbol, {offset, bytes}, kind))
SIMGPU_CALL_TWINS(cudaMemcpyToSymbolAsync, _ptsz,
                  (const void* symbol, const void* source, size_t bytes, size_t offset,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  ToSymbolAsync(d, symbol, source, {offset, bytes}, {kind, stream}))
SIMGPU_CALL_TWINS(cudaMemcpyFromSymbolAsync, _ptsz,
                  (void* target, const void* symbol, size_t bytes, size_t offset,
                   cudaMemcpyKind kind, cudaStream_t stream),
                  FromSymbolAsync(d, target, symbol, {offset, bytes}, {kind, stream}))

}  // namespace simgpu::runtime
