// Where the real driver library lies, with every place to look given by the caller; FindDriver in
// driver.h fills in the machine's own. Reads files, opens no library, changes nothing.

#ifndef TIDEMARK_KERNELS_DRIVER_SEARCH_H_
#define TIDEMARK_KERNELS_DRIVER_SEARCH_H_

#include <stddef.h>

namespace tidemark::kernels {

struct DriverSearch {
  const char* explicit_path = nullptr;  // taken as it is, even when there is no such file
  const char* library_path = nullptr;   // as $LD_LIBRARY_PATH; relative entries count from here
  const char* const* directories = nullptr;  // ends with null
  const char* cache_file = nullptr;          // in ldconfig's format
  const char* skip = nullptr;                // this file, under any name, is never the answer
};

// First libcuda.so.1 for this machine's architecture, in the order of the fields. Passed over:
// 32-bit files, and directories called "stubs" (the toolkit's link-time stand-in, which drives no
// device).
bool SearchDriver(const DriverSearch& search, char* path, size_t size);

}  // namespace tidemark::kernels

#endif  // TIDEMARK_KERNELS_DRIVER_SEARCH_H_
