// The allocator scoreboard as a program; kUsage says how it is called. Files given replace folder
// and generators. Exit status 0 whether targets are met or not: it measures; 2 for bad arguments or
// files; what can be read is scored all the same. Threads: none.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/allocator/score.h"
#include "tests/bench/progress.h"
#include "tests/replay/generate.h"
#include "tests/replay/load.h"

namespace tidemark::bench {
namespace {

constexpr char kUsage[] =
    "usage: allocator_score [--traces FOLDER] [--only TEXT] [--allocator TEXT] [FILE...]\n"
    "  --traces FOLDER  where alloc/*.csv[.gz] lies (default: TIDEMARK_TRACES, then "
    "../shared/traces)\n"
    "  --only TEXT      only traces whose name contains TEXT\n"
    "  --allocator TEXT only allocators whose name contains TEXT\n"
    "  FILE             an allocation trace, an RMM log or a PyTorch memory snapshot (.pickle);\n"
    "                   files replace the folder and the generators\n";

struct Arguments {
  std::string folder;
  std::string only;
  std::string allocator;
  std::vector<std::string> files;
};

// Where the value of an option goes; null: there is no such option.
std::string* Target(const std::string& option, Arguments* out) {
  if (option == "--traces") return &out->folder;
  if (option == "--only") return &out->only;
  if (option == "--allocator") return &out->allocator;
  return nullptr;
}

// -1: go on; otherwise the exit status.
int Parse(int argc, char** argv, Arguments* out) {
  const char* folder = std::getenv("TIDEMARK_TRACES");
  const bool named = folder != nullptr && folder[0] != '\0';
  out->folder = named ? folder : "../shared/traces";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (std::string* target = Target(argument, out)) {
      if (++i == argc) {
        std::fprintf(stderr, "allocator_score: %s needs a value\n", argument.c_str());
        return 2;
      }
      *target = argv[i];
    } else if (argument.starts_with("-")) {
      std::fprintf(stderr, "allocator_score: option '%s' is unknown\n%s", argument.c_str(), kUsage);
      return 2;
    } else {
      out->files.push_back(argument);
    }
  }
  return -1;
}

// What can be read; false: something could not, and stderr says what.
bool Load(const Arguments& arguments, std::vector<replay::Trace>* traces) {
  std::vector<std::string> errors;
  for (const std::string& file : arguments.files) {
    std::string error;
    if (!replay::LoadFile(file, traces, &error)) errors.push_back(error);
  }
  if (arguments.files.empty()) {
    replay::LoadFolder(arguments.folder, traces, &errors);
    if (traces->empty() && errors.empty()) {
      std::printf(
          "No recorded traces: %s/alloc holds no *.csv or *.csv.gz. Generated traces only.\n",
          arguments.folder.c_str());
    }
    for (replay::Trace& trace : replay::GeneratedTraces()) traces->push_back(std::move(trace));
  }
  for (const std::string& error : errors) {
    std::fprintf(stderr, "allocator_score: %s\n", error.c_str());
  }
  return errors.empty();
}

void KeepOnly(const std::string& text, std::vector<replay::Trace>* traces) {
  std::erase_if(*traces, [&](const replay::Trace& trace) {
    return trace.name.find(text) == std::string::npos;
  });
}

int Main(int argc, char** argv) {
  Arguments arguments;
  const int status = Parse(argc, argv, &arguments);
  if (status >= 0) return status;
  if (!HasAllocator(arguments.allocator)) {
    std::fprintf(stderr, "allocator_score: no allocator's name contains '%s'\n",
                 arguments.allocator.c_str());
    return 2;
  }
  std::vector<replay::Trace> traces;
  const bool loaded = Load(arguments, &traces);
  if (traces.empty()) return 2;
  KeepOnly(arguments.only, &traces);
  if (traces.empty()) {
    std::fprintf(stderr, "allocator_score: no trace's name contains '%s'\n",
                 arguments.only.c_str());
    return 2;
  }
  std::vector<Row> all;
  PrintHead();
  for (const replay::Trace& trace : traces) {
    Progress("allocator", trace.name);
    const std::vector<Row> rows = Score(trace, arguments.allocator);
    PrintRows(rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  PrintTargets(all);
  if (!loaded) std::fprintf(stderr, "allocator_score: files were left out, see above the table\n");
  return loaded ? 0 : 2;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) { return tidemark::bench::Main(argc, argv); }
