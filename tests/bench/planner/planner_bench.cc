// The planner scoreboard: prints its tables and asserts nothing. Usage is in Help() and in
// docs/scoreboard.md. Threads: works on all cores.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "tests/bench/planner/cell.h"
#include "tests/bench/planner/in_parallel.h"
#include "tests/bench/planner/modes.h"
#include "tests/bench/planner/more.h"
#include "tests/bench/planner/nets.h"
#include "tests/bench/planner/picture.h"
#include "tests/bench/planner/plan_time.h"
#include "tests/bench/planner/published.h"
#include "tests/bench/planner/robustness.h"
#include "tests/bench/planner/short_host.h"
#include "tests/bench/planner/tables.h"
#include "tests/bench/progress.h"

namespace tidemark::bench {
namespace {

struct Options {
  std::string traces;
  std::string csv;
  std::string only;     // nets whose name contains this
  std::string picture;  // path of an SVG
  bool full = false;
  bool help = false;
};

void Help() {
  std::printf(
      "usage: planner_bench [--traces DIR] [--net TEXT] [--full] [--csv FILE] [--picture FILE]\n"
      "Scores Tidemark's offload planner beside a lower bound and other policies. Takes minutes;\n"
      "docs/scoreboard.md says how to read the tables. Exit status: 0; 1 for a file that cannot "
      "be\n"
      "written; 2 for bad arguments, or traces that were left out because they are damaged.\n"
      "  --traces DIR  folder with step/*.csv[.gz]; default $TIDEMARK_TRACES, else "
      "../shared/traces\n"
      "  --net TEXT    only nets whose name contains TEXT\n"
      "  --full        print every cell of table 1\n"
      "  --csv FILE    write every cell and policy of table 1 to FILE\n"
      "  --picture FILE  where the picture of one plan goes (SVG); default planner_plan.svg in the "
      "build folder\n");
}

bool Parse(int argc, char** argv, Options* options) {
  const char* folder = std::getenv("TIDEMARK_TRACES");
  options->picture =
      std::filesystem::path(argv[0]).parent_path().parent_path() / "planner_plan.svg";
  const bool is_named = folder != nullptr && folder[0] != '\0';
  options->traces = is_named ? folder : "../shared/traces";
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    std::string* value = flag == "--traces"    ? &options->traces
                         : flag == "--csv"     ? &options->csv
                         : flag == "--net"     ? &options->only
                         : flag == "--picture" ? &options->picture
                                               : nullptr;
    if (value != nullptr && i + 1 < argc) {
      *value = argv[++i];
    } else if (flag == "--full") {
      options->full = true;
    } else if (flag == "--help" || flag == "-h") {
      options->help = true;
    } else {
      std::fprintf(stderr, "planner_bench: '%s' is not a flag, or lacks its value; see --help\n",
                   flag.c_str());
      return false;
    }
  }
  return true;
}

// Said before minutes of work, not after them.
bool CanBeWritten(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path parent = fs::path(path).parent_path();
  const bool exists = fs::exists(path, ignored);
  if (exists ? !fs::is_directory(path, ignored) && access(path.c_str(), W_OK) == 0
             : access(parent.empty() ? "." : parent.c_str(), W_OK | X_OK) == 0) {
    return true;
  }
  std::fprintf(stderr, "planner_bench: %s cannot be written\n", path.c_str());
  return false;
}

std::vector<Net> Nets(const Options& options, size_t* left_out) {
  std::vector<Net> nets = TracedNets(options.traces, left_out);
  if (nets.empty() && *left_out == 0) {
    std::printf("No step traces in %s/step: generated steps only.\n", options.traces.c_str());
  }
  for (Net& net : GeneratedNets()) nets.push_back(std::move(net));
  std::vector<Net> kept;
  for (Net& net : nets) {
    if (net.named.name.find(options.only) != std::string::npos) kept.push_back(std::move(net));
  }
  return kept;
}

void ScoreNet(const Net& net, std::vector<Cell>* cells) {
  const std::vector<Policy> policies(std::begin(kPolicies), std::end(kPolicies));
  Progress("planner", "table 1, " + net.named.name);
  for (int cap : kCapsPercent) {
    for (double rate : kRatesGb) {
      const core::Bytes budget = net.live_peak / 100 * static_cast<core::Bytes>(cap);
      cells->push_back(ScoreCell(net, MachineWith(budget, rate), policies));
      cells->back().cap_percent = cap;
    }
  }
}

std::vector<Cell> Table1(const std::vector<Net>& nets) {
  std::vector<std::vector<Cell>> of_net(nets.size());
  InParallel(nets.size(), [&](size_t i) { ScoreNet(nets[i], &of_net[i]); });
  std::vector<Cell> cells;
  for (std::vector<Cell>& some : of_net)
    std::move(some.begin(), some.end(), std::back_inserter(cells));
  return cells;
}

// The net whose plan shows most: recorded, with both links busy and some stalls; else the first.
void Draw(const std::vector<Net>& nets, const std::string& path) {
  const Net* net = &nets.front();
  for (const Net& candidate : nets) {
    if (candidate.named.name == "VIT_b1280") net = &candidate;
  }
  std::string why_not;
  if (DrawPlan(*net, 40, 12, path, &why_not)) {
    std::printf("\nPicture of %s at 40 %% and 12 GB/s: %s\n", net->named.name.c_str(),
                path.c_str());
  } else {
    std::printf("\nNo picture: %s\n", why_not.c_str());
  }
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, &options)) return 2;
  if (options.help) {
    Help();
    return 0;
  }
  if (!options.csv.empty() && !CanBeWritten(options.csv)) return 1;
  if (!CanBeWritten(options.picture)) return 1;
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);  // each line is seen at once, in a pipe as well
  size_t left_out = 0;
  const std::vector<Net> nets = Nets(options, &left_out);
  if (nets.empty()) {
    std::fprintf(stderr, "planner_bench: no net's name contains '%s'\n", options.only.c_str());
    return 2;
  }
  PrintNets(nets);
  const std::vector<Cell> cells = Table1(nets);
  PrintByNet(cells);
  PrintByCapAndRate(cells);
  PrintWorst(cells, 15);
  PrintBeaten(cells, 10);
  if (options.full) PrintEvery(cells);
  PrintSummary(cells);
  PrintPublished(nets);
  PrintRobustness(nets);
  PrintModes(nets);
  PrintMore(cells);
  PrintShortHost(nets);
  PrintPlanTime(nets);
  Draw(nets, options.picture);
  if (!options.csv.empty() && !WriteCsv(cells, options.csv)) {
    std::fprintf(stderr, "planner_bench: %s cannot be written\n", options.csv.c_str());
    return 1;
  }
  std::printf("\nProcessor time of this run, all cores: %.0f s\n",
              static_cast<double>(std::clock()) / CLOCKS_PER_SEC);
  if (left_out == 0) return 0;
  std::fprintf(stderr, "planner_bench: %zu traces were left out, see above the tables\n", left_out);
  return 2;
}

}  // namespace
}  // namespace tidemark::bench

int main(int argc, char** argv) { return tidemark::bench::Main(argc, argv); }
