// See report.h.

#include "simgpu/driver/report.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "simgpu/driver/engine_state.h"

namespace simgpu {
namespace {

struct Counts {
  bool armed = false;
  pid_t process = 0;
  uint64_t operations[kUnits] = {};
  uint64_t bytes[kUnits] = {};
  uint64_t kernels = 0;
};

Counts& TheCounts() {
  static auto* counts = new Counts;
  return *counts;
}

void WriteAtExit() {
  std::unique_lock<std::recursive_mutex> lock(DriverLock(), std::try_to_lock);
  if (TheCounts().process != getpid() || !lock.owns_lock())
    return;  // a fork's child, or an exit inside
  const std::string text = ReportText();
  const std::string& path = GetConfig().report_path;
  if (path.empty()) {
    fputs(text.c_str(), stderr);
    return;
  }
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) {
    LogAlways("the report could not be written to %s: %m", path.c_str());
    return;
  }
  fputs(text.c_str(), file);
  fclose(file);
}

void Line(std::string* text, const char* key, double value) {
  char line[96];
  snprintf(line, sizeof(line), "%s: %.9f\n", key, value);
  *text += line;
}

void Line(std::string* text, const char* key, uint64_t value) {
  *text += std::string(key) + ": " + std::to_string(value) + "\n";
}

}  // namespace

void CountOperation(const Operation& op) {
  Counts& counts = TheCounts();
  if (!counts.armed) {
    counts.armed = true;
    counts.process = getpid();
    const Config& config = GetConfig();
    if (config.report || !config.report_path.empty()) atexit(WriteAtExit);
  }
  ++counts.operations[static_cast<int>(op.unit)];
  counts.bytes[static_cast<int>(op.unit)] += op.bytes;
  if (op.from_kernel) ++counts.kernels;
}

std::string ReportText() {
  Engine& engine = Engine::Get();
  engine.FinishTime();
  const Counts& counts = TheCounts();
  const auto bytes = [&](Unit unit) { return counts.bytes[static_cast<int>(unit)]; };
  const auto operations = [&](Unit unit) { return counts.operations[static_cast<int>(unit)]; };
  std::string text = "simgpu_report: 1\n";
  Line(&text, "virtual_seconds", engine.host_seconds());
  Line(&text, "busy_seconds_compute", engine.timeline().BusySeconds(Unit::kCompute));
  Line(&text, "busy_seconds_h2d", engine.timeline().BusySeconds(Unit::kCopyToDevice));
  Line(&text, "busy_seconds_d2h", engine.timeline().BusySeconds(Unit::kCopyToHost));
  Line(&text, "busy_seconds_d2d", engine.timeline().BusySeconds(Unit::kCopyOnDevice));
  Line(&text, "bytes_h2d", bytes(Unit::kCopyToDevice));
  Line(&text, "bytes_d2h", bytes(Unit::kCopyToHost));
  Line(&text, "bytes_d2d", bytes(Unit::kCopyOnDevice));
  Line(&text, "operations_kernel", counts.kernels);
  Line(&text, "operations_h2d", operations(Unit::kCopyToDevice));
  Line(&text, "operations_d2h", operations(Unit::kCopyToHost));
  Line(&text, "operations_d2d", operations(Unit::kCopyOnDevice));
  Line(&text, "operations_host", operations(Unit::kHost));
  Line(&text, "operations_never_run", uint64_t{engine.pending()});
  Line(&text, "races", RaceDetector::Get().races());
  Line(&text, "illegal_addresses", engine.illegal_accesses());
  return text;
}

}  // namespace simgpu
