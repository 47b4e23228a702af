/* Preprocessed, not compiled: everything that declares driver functions. */
#include <cuda.h>
#if __has_include(<cudaProfiler.h>)
#include <cudaProfiler.h>
#endif
