// What a job notices of chunks that come back with those a launch waits for: fewer pauses, and
// nothing else. Its bytes are right too when it does not go on as it did.

#include "tests/interpose/device_memory_fixture.h"

namespace tidemark::interpose {
namespace {

constexpr int kLayers = 16;
constexpr core::Bytes kEach = 2 * kMiB;

// A step as in training: a buffer born in each layer, all of them used and freed in reverse.
class Foreseen : public DeviceMemoryFixture {
 protected:
  void SetUp() override {
    DeviceMemoryFixture::SetUp();
    Start(kLayers / 2 * kEach, 2 * kLayers * kEach);
    record_ = memory_->streams.Find(CU_STREAM_LEGACY, context_);
  }

  // As the gate does for a launch that touches the buffer.
  void Launch(int layer) {
    MutexLock lock(&memory_->mutex);
    core::Block* block = memory_->Find(layers_[layer]);
    memory_->StartCopies();
    const core::LaunchNumber launch = memory_->NextLaunch(static_cast<uint64_t>(layer) + 1);
    memory_->Touch(block, launch);
    memory_->ShieldCopies(block, record_);
    memory_->EndLaunch();
    if (memory_->OnHost(block)) memory_->MakeResident(&block, 1, launch);
    StreamBook::NoteWork(record_);
  }
  void Forward(int step) {
    for (int layer = 0; layer < kLayers; ++layer) {
      layers_[layer] = Allocate(kEach);
      ASSERT_NE(layers_[layer], 0u);
      Launch(layer);
      Fill(layers_[layer], kEach, step * kLayers + layer);
    }
  }
  void UseAndFree(int step, int layer) {
    Launch(layer);
    EXPECT_TRUE(Holds(layers_[layer], kEach, step * kLayers + layer)) << step << ' ' << layer;
    MutexLock lock(&memory_->mutex);
    ASSERT_TRUE(memory_->Free(layers_[layer]));
  }
  void Step(int step) {
    Forward(step);
    for (int layer = kLayers; layer-- > 0;) UseAndFree(step, layer);
  }
  // Backward as before, until chunks come ahead or two layers are left; returns the layers left.
  int GoUntilSomethingCame(int step) {
    const uint64_t before = counters().brought_ahead;
    Forward(step);
    int layer = kLayers;
    while (layer > 2 && counters().brought_ahead == before) UseAndFree(step, --layer);
    return layer;
  }
  const MoveCounters& counters() const { return memory_->move_counters(); }
  void ExpectSoundBooks() {
    EXPECT_TRUE(memory_->Validate());
    EXPECT_LE(Counters().peak_reserved_bytes, kLayers / 2 * kEach);
    EXPECT_EQ(Counters().hash_mismatches_total, 0u);
    EXPECT_LE(counters().brought_used + counters().brought_wasted, counters().brought_ahead);
  }

  StreamRecord* record_ = nullptr;
  CUdeviceptr layers_[kLayers] = {};
};

TEST_F(Foreseen, WhatTheNextLaunchesAskForComesInOnePause) {
  Step(0);
  const MoveCounters first = counters();
  for (int step = 1; step < 5; ++step) Step(step);
  const MoveCounters learned = counters();
  Step(5);
  const MoveCounters last = counters();
  EXPECT_EQ(first.brought_ahead, 0u) << "nothing is known of the first step";
  const uint64_t ahead = last.brought_ahead - learned.brought_ahead;
  EXPECT_GT(ahead, 0u);
  EXPECT_EQ(last.brought_used - learned.brought_used, ahead) << "all of them were used";
  EXPECT_LT(last.returned - learned.returned, first.returned) << "fewer launches waited";
  EXPECT_LE(last.moved_in - learned.moved_in, first.moved_in) << "nothing came twice";
  EXPECT_LE(last.moved_out - learned.moved_out, first.moved_out) << "nothing left for it";
  ExpectSoundBooks();
}

TEST_F(Foreseen, AJobThatGoesOnOtherwiseHasItsBytes) {
  for (int step = 0; step < 5; ++step) Step(step);
  const MoveCounters learned = counters();
  // Used as before up to where some came ahead; then new bytes, other buffers and another order.
  const int layer = GoUntilSomethingCame(5);
  ASSERT_GT(counters().brought_ahead, learned.brought_ahead);
  for (int i = 0; i < layer; ++i) Fill(layers_[i], kEach, 1000 + i);
  CUdeviceptr others[kLayers] = {};
  for (int i = 0; i < kLayers; ++i) {
    others[i] = Allocate(kEach);
    ASSERT_NE(others[i], 0u);
    Fill(others[i], kEach, 2000 + i);
  }
  for (int i = 0; i < layer; ++i) {
    Launch(i);
    EXPECT_TRUE(Holds(layers_[i], kEach, 1000 + i)) << i;
  }
  for (int i = 0; i < kLayers; ++i) EXPECT_TRUE(Holds(others[i], kEach, 2000 + i)) << i;
  ExpectSoundBooks();
}

TEST_F(Foreseen, WhatIsFreedUnusedCountsAsWasted) {
  for (int step = 0; step < 5; ++step) Step(step);
  const MoveCounters learned = counters();
  const int layer = GoUntilSomethingCame(5);
  const uint64_t ahead = counters().brought_ahead - learned.brought_ahead;
  ASSERT_GT(ahead, 0u);
  for (int i = 0; i < layer; ++i) {
    MutexLock lock(&memory_->mutex);
    ASSERT_TRUE(memory_->Free(layers_[i]));
  }
  EXPECT_EQ(counters().brought_wasted - learned.brought_wasted, ahead);
  ExpectSoundBooks();
}

}  // namespace
}  // namespace tidemark::interpose
