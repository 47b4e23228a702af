// Tables of the software GPU's runtime: stubs of every public function, names of the errors.

#include <set>

#include "cmake/tables/scan.h"
#include "cmake/tables/tables.h"

namespace tables {
namespace {

constexpr size_t kFewestFunctions = 300;
constexpr size_t kFewestErrors = 80;

// Declared for Windows only.
constexpr std::string_view kNotHere = "cudaWGLGetDevice";
// Exported by NVIDIA's runtime, declared in no public header, called by nobody but itself.
constexpr std::string_view kUndeclared[] = {
    "__cudaGetProcAddress", "__cudaRegisterHostVar", "__cudaRegisterUnifiedTable",
    "cudaDeviceGetTexture1DLinearMaxWidth", "cudaEGLStreamConsumerConnectWithFlags"};

// `CUDARTAPI cudaName(`, with stars of a pointer type in between where there are any.
void AddDeclared(std::string_view text, std::set<std::string>* names) {
  for (const size_t at : PlacesOf("CUDARTAPI", text)) {
    Cursor cursor(text, at + std::string_view("CUDARTAPI").size());
    cursor.SkipSpaces();
    while (cursor.Literal("*")) {
    }
    cursor.SkipSpaces();
    const auto name = cursor.NameWithPrefix("cuda");
    cursor.SkipSpaces();
    if (name && cursor.Literal("(")) names->emplace(*name);
  }
}

// `#define cudaName __CUDART_API_PTSZ(cudaName)`: the form for per-thread default streams exists
// too.
void AddPerThread(std::string_view text, std::set<std::string>* names) {
  for (const size_t at : PlacesOf("define", text)) {
    Cursor cursor(text, at + std::string_view("define").size());
    if (!cursor.Spaces()) continue;
    const std::string name(cursor.Word());
    if (name.substr(0, 4) != "cuda" || !cursor.Spaces()) continue;
    const std::string_view macro = cursor.Word();
    if (macro == "__CUDART_API_PTDS") names->insert(name + "_ptds");
    if (macro == "__CUDART_API_PTSZ") names->insert(name + "_ptsz");
  }
}

}  // namespace

std::string RuntimeStubs(const std::vector<std::string>& headers) {
  std::set<std::string> names(std::begin(kUndeclared), std::end(kUndeclared));
  for (const std::string& text : headers) {
    AddDeclared(text, &names);
    AddPerThread(text, &names);
  }
  names.erase(std::string(kNotHere));
  if (names.size() < kFewestFunctions) {
    throw BadInput("only " + std::to_string(names.size()) +
                   " runtime functions found, expected at least 300: not CUDA 13 headers");
  }
  std::string out = "int simgpu_runtime_stub(const char* name, char* said);\n";
  for (const std::string& name : names) {
    out += "__attribute__((weak, visibility(\"default\"))) int " + name +
           "(void) { static char said; return simgpu_runtime_stub(\"" + name + "\", &said); }\n";
  }
  return out;
}

std::string RuntimeErrorNames(std::string_view preprocessed) {
  std::string out;
  size_t count = 0;
  for (const size_t at : PlacesOf("cuda", preprocessed)) {
    Cursor cursor(preprocessed, at);
    const std::string_view name = cursor.Word();
    if (name != "cudaSuccess" && (name.substr(0, 9) != "cudaError" || name.size() == 9)) continue;
    cursor.SkipSpaces();
    if (!cursor.Literal("=")) continue;
    cursor.SkipSpaces();
    if (cursor.Digits().empty()) continue;
    out += "SIMGPU_RUNTIME_ERROR(" + std::string(name) + ")\n";
    ++count;
  }
  if (count < kFewestErrors) {
    throw BadInput("only " + std::to_string(count) +
                   " runtime errors found, expected at least 80: not the text of driver_types.h");
  }
  return out;
}

}  // namespace tables
