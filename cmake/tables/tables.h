// The tables that the build makes from the installed CUDA headers, as functions from text to text.
// They read and write no files; main.cc does. A text that is not what it should be throws BadInput.
// Thread rule: none needed, they keep no state.

#ifndef CMAKE_TABLES_TABLES_H_
#define CMAKE_TABLES_TABLES_H_

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tables {

class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Exported name -> parameter list, of every driver function; sorted by name.
using DriverApi = std::map<std::string, std::string>;

// From preprocessed cuda.h texts (default stream legacy, per thread, superseded versions visible);
// the first text that declares a name says its parameters.
DriverApi ReadDriverApi(const std::vector<std::string>& preprocessed);
// A line a function: `name<TAB>CUresult<TAB>parameters`.
std::string WriteApi(const DriverApi& api);
DriverApi ParseApi(std::string_view text);

// simgpu: a weak definition of every driver name, which a real one replaces; it answers
// CUDA_ERROR_NOT_SUPPORTED.
std::string DriverStubs(const DriverApi& api);
// simgpu: PROC("cuMemAlloc", 3020, 0, cuMemAlloc_v2) for cuGetProcAddress. The version in which
// each form of a function appeared comes from the PFN_..._vNNNN names of cudaTypedefs.h; forms are
// paired with exported names in order of age.
std::string ProcTable(const DriverApi& api, std::string_view typedefs);
// simgpu: ERROR(code, "CUDA_ERROR_...", "sentence") from cuda.h as it stands.
std::string ErrorTable(std::string_view cuda_h);

// simgpu's runtime: a weak stub for every public function of the header texts; and the names of the
// errors, from preprocessed driver_types.h.
std::string RuntimeStubs(const std::vector<std::string>& headers);
std::string RuntimeErrorNames(std::string_view preprocessed);

// The preloaded library's driver seam: one entry for each name of cuda.h, of the graphics interop
// headers beside it, and of hooks.def.
struct Seam {
  std::string table;    // assembler macro calls for forward_entry.S
  std::string names;    // the names in slot order, one string literal each
  std::string calls;    // slot numbers; declarations of hooks and of the real calls behind them
  std::string exports;  // the linker's version script: these names and no others
};
Seam MakeSeam(const DriverApi& api, std::string_view hooks,
              const std::vector<std::string>& interop_headers);

// tests/interpose: FAKE(name) for each driver function that the C source does not write by hand.
std::string FakeNames(const DriverApi& api, std::string_view handwritten);

}  // namespace tables

#endif  // CMAKE_TABLES_TABLES_H_
