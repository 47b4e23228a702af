// Malformed steps and machines are refused with a sentence, and the offender is named.

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/step.h"
#include "tests/core/chain_step.h"

namespace tidemark::core {
namespace {

class StepValidateTest : public testing::Test {
 protected:
  void ExpectRefused(const char* sentence, size_t at) {
    size_t offender = 0;
    const char* wrong = step_.Validate(&offender);
    ASSERT_NE(wrong, nullptr);
    EXPECT_STREQ(wrong, sentence);
    EXPECT_EQ(offender, at);
  }
  Step step_ = ChainStep(4, 64 * kMiB, 1'000'000);
};

TEST_F(StepValidateTest, AcceptsASoundStep) {
  size_t at = 0;
  EXPECT_EQ(step_.Validate(&at), nullptr);
}

TEST_F(StepValidateTest, RefusesAStepWithoutOperations) {
  step_.ops.Clear();
  ExpectRefused("the step has no operations", 0);
}

TEST_F(StepValidateTest, RefusesWrongOperations) {
  step_.ops[3].duration = -1;
  ExpectRefused("an operation has a negative duration", 3);
  step_.ops[3].duration = INT64_MAX;
  ExpectRefused("the step takes longer than 2^52 ns", 3);
  step_.ops[3].duration = 1;
  step_.ops[2].access_count = 1000;
  ExpectRefused("an operation's accesses lie outside the list of accesses", 2);
  step_.ops[2].first_access = UINT32_MAX;
  ExpectRefused("an operation's accesses lie outside the list of accesses", 2);
}

TEST_F(StepValidateTest, RefusesWrongAccesses) {
  step_.accesses[0].read = step_.accesses[0].write = false;
  ExpectRefused("an access neither reads nor writes", 0);
  step_.accesses[0] = step_.accesses[1];
  ExpectRefused("an operation names a buffer twice", 0);
}

TEST_F(StepValidateTest, RefusesWrongBuffers) {
  const BufferIndex last = static_cast<BufferIndex>(step_.buffers.size() - 1);
  step_.buffers[last].freed = 100;
  ExpectRefused("a buffer is freed after the last operation", last);
  step_.buffers[last].freed = 0;
  ExpectRefused("a buffer is freed before it is born", last);
  step_.buffers[last].born = 0;
  ExpectRefused("an operation uses a buffer outside its life", 3);
  step_.buffers[last].bytes = ~Bytes{0};
  ExpectRefused("the buffers hold more than 2^60 bytes in all", last);
}

TEST(MachineValidateTest, RefusesWhatNoMachineHas) {
  const auto refuses = [](Machine machine) { return machine.Validate() != nullptr; };
  EXPECT_FALSE(refuses(Machine()));
  for (const double rate : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_TRUE(refuses({.out_rate = rate}));
    EXPECT_TRUE(refuses({.in_rate = rate}));
    EXPECT_TRUE(refuses({.out_rate_duplex = rate}));
  }
  EXPECT_TRUE(refuses({.in_rate = 1e9, .in_rate_duplex = 2e9}));
  EXPECT_TRUE(refuses({.safepoint = -1}));
  EXPECT_TRUE(refuses({.chunk_bytes = 0}));
}

}  // namespace
}  // namespace tidemark::core
