// Where the parts of Tidemark lie, seen from this command: in a build tree or installed.
// Threads: stateless.

#ifndef TIDEMARK_CLIENT_CLI_INSTALL_H_
#define TIDEMARK_CLIENT_CLI_INSTALL_H_

#include <string>

namespace tidemark::client {

// Absolute paths; "" when there is none.
std::string PreloadLibrary();   // libtidemark_preload.so
std::string AliasLibrary();     // libtidemark_alias.so, for programs that open "libcuda.so"
std::string SimgpuDirectory();  // holds libcuda.so.1 and libcudart.so.13 of the software GPU
// The real driver that the loader would find, "" if none; looks where the preloaded library looks.
std::string RealDriver(const std::string& library_path);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_INSTALL_H_
