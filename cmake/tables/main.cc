// The table maker: a program of the build, run before anything else is compiled. It needs nothing
// but the C++ standard library, so that a machine with a compiler and CMake alone can build the
// tree. Thread rule: one thread.

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>

#include "cmake/tables/tables.h"

namespace {

using tables::BadInput;

constexpr char kUsage[] =
    "usage: tidemark_tables COMMAND OUTPUT-FOLDER INPUT...\n"
    "  api FOLDER PREPROCESSED...            cuda_api.txt, from preprocessed driver headers\n"
    "  simgpu FOLDER cuda_api.txt INCLUDE    stubs.c, proc_table.inc, error_table.inc\n"
    "  runtime FOLDER PREPROCESSED INCLUDE   stubs.c, error_names.inc\n"
    "  seam FOLDER cuda_api.txt INCLUDE hooks.def\n"
    "                                        forward_table.inc, forward_names.inc, hook_calls.h, "
    "exports.map\n"
    "  fake FOLDER cuda_api.txt fake_driver.c\n"
    "                                        fake_names.inc\n";

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw BadInput("cannot read " + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The texts of those headers that the folder has.
std::vector<std::string> ReadThere(const std::string& include,
                                   const std::vector<std::string>& headers) {
  std::vector<std::string> texts;
  for (const std::string& header : headers) {
    if (std::ifstream(include + "/" + header)) texts.push_back(Read(include + "/" + header));
  }
  return texts;
}

void Write(const std::string& folder, const std::string& name, const std::string& text) {
  const std::string path = folder + "/" + name;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw BadInput("cannot write " + path);
}

void Api(const std::string& out, const std::vector<std::string>& inputs) {
  std::vector<std::string> texts;
  texts.reserve(inputs.size());
  for (const std::string& path : inputs) texts.push_back(Read(path));
  Write(out, "cuda_api.txt", tables::WriteApi(tables::ReadDriverApi(texts)));
}

void Simgpu(const std::string& out, const std::vector<std::string>& inputs) {
  const tables::DriverApi api = tables::ParseApi(Read(inputs.at(0)));
  Write(out, "stubs.c", tables::DriverStubs(api));
  Write(out, "proc_table.inc", tables::ProcTable(api, Read(inputs.at(1) + "/cudaTypedefs.h")));
  Write(out, "error_table.inc", tables::ErrorTable(Read(inputs.at(1) + "/cuda.h")));
}

void Runtime(const std::string& out, const std::vector<std::string>& inputs) {
  const auto headers =
      ReadThere(inputs.at(1), {"cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h",
                               "cuda_egl_interop.h", "cuda_vdpau_interop.h"});
  Write(out, "stubs.c", tables::RuntimeStubs(headers));
  Write(out, "error_names.inc", tables::RuntimeErrorNames(Read(inputs.at(0))));
}

void MakeSeam(const std::string& out, const std::vector<std::string>& inputs) {
  const tables::DriverApi api = tables::ParseApi(Read(inputs.at(0)));
  // By their text, because what they include may be absent.
  const auto interop = ReadThere(inputs.at(1), {"cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"});
  const tables::Seam seam = tables::MakeSeam(api, Read(inputs.at(2)), interop);
  Write(out, "forward_table.inc", seam.table);
  Write(out, "forward_names.inc", seam.names);
  Write(out, "hook_calls.h", seam.calls);
  Write(out, "exports.map", seam.exports);
}

void Fake(const std::string& out, const std::vector<std::string>& inputs) {
  Write(out, "fake_names.inc",
        tables::FakeNames(tables::ParseApi(Read(inputs.at(0))), Read(inputs.at(1))));
}

struct Command {
  const char* name;
  size_t fewest_inputs;
  void (*run)(const std::string& out, const std::vector<std::string>& inputs);
};

constexpr Command kCommands[] = {
    {"api", 1, Api},       {"simgpu", 2, Simgpu}, {"runtime", 2, Runtime},
    {"seam", 3, MakeSeam}, {"fake", 2, Fake},
};

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  for (const Command& command : kCommands) {
    if (words.size() < 2 + command.fewest_inputs || words[0] != command.name) continue;
    try {
      command.run(words[1], {words.begin() + 2, words.end()});
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "tidemark_tables %s: %s\n", command.name, error.what());
      return 1;
    }
  }
  std::fputs(kUsage, stderr);
  return 2;
}
