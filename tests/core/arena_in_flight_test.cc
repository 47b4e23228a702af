// What a job holds while its frees are in flight: the host runs ahead of the device, as in any
// training, so that nothing it has just freed may be moved yet.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "tests/core/counting_backend.h"
#include "tests/core/late_fences.h"

namespace tidemark::core {
namespace {

// A training whose host is so many requests ahead, on a device with plenty of memory.
class TrainingInFlight {
 public:
  explicit TrainingInFlight(uint64_t requests_late) : backend_(1 << 16), fences_(requests_late) {
    backend_.late = &fences_;
    ArenaSeam seam = backend_.FullSeam(&arena_, 0);
    seam.evict = nullptr;
    seam.map_host = nullptr;
    ok_ = arena_.Init(1 << 17, seam);
  }

  // Batches of varying length: activations kept for the way back, temporaries of other sizes.
  void VaryingStep() {
    const Bytes tokens = 4 * (256 + random_() % 800);
    std::vector<Block*> kept;
    for (int layer = 0; layer < 24; ++layer) {
      for (const Bytes width : {5120, 15360, 2560, 20480}) {
        Block* temporary = Request(tokens * width * 2 / 3);
        kept.push_back(Request(tokens * width));
        End(temporary);
      }
    }
    while (!kept.empty()) {
      Block* gradient = Request(kept.back()->requested);
      End(kept.back());
      kept.pop_back();
      End(gradient);
    }
  }

  // Weights gathered ahead of each layer and let go after it, between activations that stay for the
  // way back: what is free lies in many pieces.
  void GatheringStep() {
    std::vector<Block*> kept, gathered(2, nullptr);
    for (int layer = 0; layer < 48; ++layer) {
      Block*& weights = gathered[static_cast<size_t>(layer % 2)];
      if (weights != nullptr) End(weights);
      weights = Request((96 + random_() % 64) * kMiB);
      for (int i = 0; i < 3; ++i) {
        Block* temporary = Request((16 + random_() % 48) * kMiB);
        if (layer < 24) kept.push_back(Request((8 + random_() % 24) * kMiB));
        End(temporary);
        if (layer < 24) continue;
        End(kept.back());
        kept.pop_back();
      }
    }
    for (Block* weights : gathered) End(weights);
  }

  // Held at most, over the most that was requested at once.
  double Share() const {
    return static_cast<double>(backend_.peak_held()) * double{kChunkBytes} /
           static_cast<double>(arena_.sums().peak_requested());
  }
  const ArenaCounters& counters() const { return arena_.counters(); }
  bool Valid() const { return ok_ && arena_.Validate() && !backend_.misused(); }

 private:
  Block* Request(Bytes bytes) {
    arena_.Passed(fences_.Poll());
    return arena_.Allocate(bytes);
  }
  void End(Block* block) { arena_.Free(block, kAnyStream, fences_.open()); }

  CountingBackend backend_;
  LateFences fences_;
  Arena arena_;
  bool ok_ = false;
  std::mt19937 random_{3};
};

class InFlight : public testing::TestWithParam<uint64_t> {};

// Chunks without end, if it went elsewhere again and again while what is free waits.
TEST_P(InFlight, AJobOfVaryingSizesHoldsAlmostAsLittleAsWithoutHurry) {
  TrainingInFlight job(GetParam());
  for (int step = 0; step < 40; ++step) job.VaryingStep();
  EXPECT_LE(job.Share(), 1.03);
  EXPECT_EQ(job.counters().settled_fences, 0u) << "nobody waits on the host";
  EXPECT_TRUE(job.Valid());
}

TEST_P(InFlight, AndSoDoesOneThatGathersItsWeights) {
  TrainingInFlight job(GetParam());
  for (int step = 0; step < 40; ++step) job.GatheringStep();
  EXPECT_LE(job.Share(), 1.03);
  EXPECT_EQ(job.counters().settled_fences, 0u);
  EXPECT_GT(job.counters().aliased, 0u);
  EXPECT_TRUE(job.Valid());
}

INSTANTIATE_TEST_SUITE_P(RequestsLate, InFlight, testing::Values(20, 100, 500));

}  // namespace
}  // namespace tidemark::core
