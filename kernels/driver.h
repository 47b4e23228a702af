// The device layer's table of driver functions: every call that Tidemark itself makes to a CUDA
// driver goes through one of these pointers, looked up by exported name in a driver that was opened
// by path. Nothing here links to libcuda, and nothing here knows which driver is below.
//
// Threads: Open is called once, before use from several threads; the table is constant afterwards.

#ifndef TIDEMARK_KERNELS_DRIVER_H_
#define TIDEMARK_KERNELS_DRIVER_H_

#include <cuda.h>

namespace tidemark::kernels {

struct Driver {
#define TIDEMARK_DRIVER_REQUIRED(name, exported) decltype(&::name) name = nullptr;
#define TIDEMARK_DRIVER_OPTIONAL(name, exported) decltype(&::name) name = nullptr;
#include "kernels/driver_functions.def"
#undef TIDEMARK_DRIVER_REQUIRED
#undef TIDEMARK_DRIVER_OPTIONAL

  void* library = nullptr;  // dlopen handle; kept open for the life of the process
};

// Fills `driver` from the already opened library `handle`. Returns null on success, else the name
// of the first required function that the library does not export. Optional functions that are
// missing stay null: callers treat null as "not supported".
const char* LoadDriver(void* handle, Driver* driver);

// Opens the driver library at `path` (absolute) and loads the table. Returns null on success, else
// a sentence without newline in a static thread-local buffer.
const char* OpenDriver(const char* path, Driver* driver);

// The file that holds the real driver: $TIDEMARK_LIBCUDA, else libcuda.so.1 in the directories of
// $LD_LIBRARY_PATH, the usual driver directories, then the loader cache; a file named `skip` (our
// own library, under the same soname) is passed over. Writes a path of at most `size` bytes;
// returns false when there is none.
bool FindDriver(const char* skip, char* path, unsigned long size);

}  // namespace tidemark::kernels

#endif  // TIDEMARK_KERNELS_DRIVER_H_
