// The race detector (race=1): who touched which bytes last, and whether the next access is ordered
// after it by streams, events or the host. Vector clocks have one component per lane; the host is
// one participant, whatever its threads. It sees what it is told: spans of copies and memsets, and
// bytes that traced twins report.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_RACE_H_
#define SIMGPU_DRIVER_RACE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "simgpu/driver/memory.h"

namespace simgpu {

// clock[lane] = number of that lane's operations that are ordered before.
using Clock = std::vector<uint64_t>;
void JoinClock(Clock* into, const Clock& from);

// Numbers for lanes; a number is used again once its lane is gone.
uint32_t TakeLaneIndex();
void GiveLaneIndex(uint32_t index);

struct RaceActor {
  std::string name;
  uint64_t stream_id = 0;
  uint64_t sequence = 0;
};

// One access as the detector sees it: made by operation number `tick` of `lane`, with everything in
// `clock` ordered before.
struct RaceAccess {
  std::shared_ptr<const RaceActor> actor;  // owners: the running operation and the shadow cells
  uint32_t lane = 0;
  uint64_t tick = 0;
  const Clock* clock = nullptr;
};

class RaceDetector {
 public:
  static RaceDetector& Get();

  void Touch(const RaceAccess& access, CUdeviceptr base, size_t bytes, bool write);
  // The memory at [base, base + bytes) goes away at the moment of `access` (its actor says how).
  void Retire(const RaceAccess& access, CUdeviceptr base, size_t bytes);

  uint64_t races() const { return races_; }
  size_t cells() const { return cells_.size(); }
  void ResetForTesting();

 private:
  struct Stamp {
    uint32_t lane = 0;
    uint64_t tick = 0;
    std::shared_ptr<const RaceActor> actor;
  };
  struct Cell {
    CUdeviceptr end = 0;
    Stamp writer;  // actor null: nobody
    std::vector<Stamp> readers;
  };
  using Cells = std::map<CUdeviceptr, Cell>;

  Cells::iterator Split(CUdeviceptr at);
  void CheckCell(const Cell& cell, CUdeviceptr at, const RaceAccess& access, bool write);
  void Report(const Stamp& earlier, bool earlier_writes, const RaceAccess& access, bool write,
              CUdeviceptr at);

  Cells cells_;
  std::set<std::string> reported_;
  uint64_t races_ = 0;
};

// Collects the bytes that one traced kernel touches, as bit maps by page, so that a million touches
// of four bytes become a few runs.
class TouchLog {
 public:
  TouchLog();
  ~TouchLog();
  TouchLog(const TouchLog&) = delete;
  TouchLog& operator=(const TouchLog&) = delete;
  void Add(const void* address, uint64_t bytes, bool write);
  // Hands the runs over, in address order, reads before writes of a page.
  void Flush(const RaceAccess& access, RaceDetector* detector);
  // What a twin calls; `context` is the TouchLog.
  static void Callback(void* context, const void* address, uint64_t bytes, int write);

 private:
  static constexpr uint64_t kPage = 4096;
  struct Page {
    bool watched = false;  // device, managed or pinned memory; not the host's own
    uint64_t read[kPage / 64] = {};
    uint64_t written[kPage / 64] = {};
  };
  // Makes one run of what touches its neighbour, over page ends too.
  struct Runs {
    const RaceAccess& access;
    RaceDetector* detector;
    bool write;
    uint64_t begin = 0;
    uint64_t end = 0;
    void Add(uint64_t from, uint64_t to);
    void Close();
  };
  Page* Find(uint64_t number);
  static std::vector<Page*>& SparePages();
  static std::unique_ptr<Page> NewPage();
  void AddInPage(uint64_t address, uint64_t bytes, bool write);
  static void AddBits(const uint64_t* bits, uint64_t base, Runs* runs);

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
  static constexpr int kRecent = 8;
  uint64_t recent_number_[kRecent] = {};
  Page* recent_[kRecent] = {};
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_RACE_H_
