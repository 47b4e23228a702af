// The allocator scoreboard as a program; kUsage says how it is called. Files given replace folder
// and generators. Exit status 0 whether targets are met or not: it measures; 2 for bad arguments or
// files. Threads: none.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/allocator/score.h"
#include "tests/replay/generate.h"
#include "tests/replay/load.h"

namespace tidemark::bench {
namespace {

constexpr char kUsage[] =
    "usage: allocator_score [--traces FOLDER] [--only TEXT] [--allocator TEXT] [FILE...]\n"
    "  --traces FOLDER  where alloc/*.csv.gz lies (default: TIDEMARK_TRACES, then "
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

bool Load(const Arguments& arguments, std::vector<replay::Trace>* traces) {
  std::string error;
  bool loaded = true;
  for (const std::string& file : arguments.files) {
    loaded = loaded && replay::LoadFile(file, traces, &error);
  }
  if (arguments.files.empty()) loaded = replay::LoadFolder(arguments.folder, traces, &error);
  if (!loaded) {
    std::fprintf(stderr, "allocator_score: %s\n", error.c_str());
    return false;
  }
  if (!arguments.files.empty()) return true;
  if (traces->empty()) {
    std::printf("No recorded traces: %s/alloc holds no *.csv.gz. Generated traces only.\n",
                arguments.folder.c_str());
  }
  for (replay::Trace& trace : replay::GeneratedTraces()) traces->push_back(std::move(trace));
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  const int status = Parse(argc, argv, &arguments);
  if (status >= 0) return status;
  std::vector<replay::Trace> traces;
  if (!Load(arguments, &traces)) return 2;
  std::vector<Row> all;
  PrintHead();
  for (const replay::Trace& trace : traces) {
    if (trace.name.find(arguments.only) == std::string::npos) continue;
    const std::vector<Row> rows = Score(trace, arguments.allocator);
    PrintRows(rows);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  PrintTargets(all);
  return 0;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) { return tidemark::bench::Main(argc, argv); }
