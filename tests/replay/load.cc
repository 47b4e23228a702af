// Implementation of tests/replay/load.h. Threads: none.

#include "tests/replay/load.h"

#include <algorithm>
#include <filesystem>

#include "tests/replay/csv_trace.h"
#include "tests/replay/file_text.h"
#include "tests/replay/rmm_log.h"
#include "tests/replay/torch_snapshot.h"

namespace tidemark::replay {
namespace {

bool ReadAny(const std::string& text, std::vector<Trace>* traces, std::string* error) {
  if (LooksLikePickle(text)) return ReadTorchSnapshot(text, traces, error);
  traces->resize(1);
  if (LooksLikeCsvTrace(text)) return ReadCsvTrace(text, &traces->front(), error);
  if (LooksLikeRmmLog(text)) return ReadRmmLog(text, &traces->front(), error);
  *error =
      "is neither an allocation trace (v1), nor an RMM log, nor a memory snapshot of PyTorch "
      "(a pickle of protocol 2 to 5)";
  return false;
}

// No sum wraps around: that many events of that many bytes are less than 2^64.
static_assert(kMostEvents <= ~Bytes{0} / kLargestBlock);

bool HoldsTooMuch(const std::vector<Trace>& traces, std::string* error) {
  for (const Trace& trace : traces) {
    const Bytes held = PeakRequested(trace).requested;
    if (held <= kMostHeld) continue;
    *error = "holds " + std::to_string(held) + " bytes at once; at most " +
             std::to_string(kMostHeld) + " are accepted";
    return true;
  }
  return false;
}

}  // namespace

bool LoadFile(const std::string& path, std::vector<Trace>* traces, std::string* error) {
  std::string text;
  if (!ReadFileText(path, kLargestFile, &text, error)) return false;
  std::vector<Trace> read;
  if (!ReadAny(text, &read, error) || HoldsTooMuch(read, error)) {
    *error = path + ": " + *error;
    return false;
  }
  std::string name = std::filesystem::path(path).filename().string();
  name = name.substr(0, name.find('.'));
  for (Trace& trace : read) {
    trace.name = read.size() == 1 ? name : name + " " + trace.name;
    traces->push_back(std::move(trace));
  }
  return true;
}

bool LoadFolder(const std::string& folder, std::vector<Trace>* traces,
                std::vector<std::string>* errors) {
  std::error_code code;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator it(folder + "/alloc", code), end; !code && it != end;
       it.increment(code)) {
    const std::string path = it->path().string();
    if (path.ends_with(".csv") || path.ends_with(".csv.gz")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::string error;
    if (!LoadFile(path, traces, &error)) errors->push_back(error);
  }
  return errors->empty();
}

}  // namespace tidemark::replay
