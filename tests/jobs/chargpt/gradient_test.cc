// The model's gradients against finite differences of its loss, and its kernels against plain
// formulas. Runs on the instant runtime, where device memory is host memory.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/jobs/chargpt/elementwise.h"
#include "tests/jobs/chargpt/loss.h"
#include "tests/jobs/chargpt/model.h"
#include "tests/jobs/chargpt/random.h"

namespace chargpt {
namespace {

constexpr ModelShape kSmall = {2, 12, 3, 9, 2, 7};

std::vector<int> RandomSymbols(int count, int symbols, uint64_t seed) {
  Random random(seed);
  std::vector<int> all(count);
  for (int& symbol : all) symbol = static_cast<int>(random.Below(symbols));
  return all;
}

class Gradients : public ::testing::Test {
 protected:
  float Loss() {
    float loss = 0;
    model_.ForwardBackward(tokens_.data(), targets_.data(), &loss);
    return loss;
  }

  // Slope of the loss along `direction`, which has the shape of `value`, by central differences.
  double Slope(Tensor& value, const std::vector<float>& direction) {
    const std::vector<float> before(value.data(), value.data() + value.size());
    const float step = 2e-3f;
    double losses[2];
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < value.size(); ++i) {
        value.data()[i] = before[i] + (side == 0 ? -step : step) * direction[i];
      }
      losses[side] = Loss();
    }
    std::copy(before.begin(), before.end(), value.data());
    return (losses[1] - losses[0]) / (2 * step);
  }

  Model model_{kSmall, 3, nullptr};
  std::vector<int> tokens_ = RandomSymbols(kSmall.rows(), kSmall.symbols, 5);
  std::vector<int> targets_ = RandomSymbols(kSmall.rows(), kSmall.symbols, 6);
};

TEST_F(Gradients, OfEveryParameterMatchFiniteDifferences) {
  size_t index = 0;
  for (Parameter* parameter : model_.Parameters()) {
    Loss();
    const std::vector<float> gradient(parameter->gradient.data(),
                                      parameter->gradient.data() + parameter->value.size());
    // Along the gradient itself the slope is its norm; along a random direction, their product.
    for (uint64_t seed = 0; seed < 3; ++seed) {
      Random random(seed + 100 * index);
      std::vector<float> direction = gradient;
      double length = 0;
      for (float& d : direction) {
        if (seed != 0) d = random.Normal();
        length += static_cast<double>(d) * d;
      }
      if (length == 0) continue;
      double expected = 0;
      for (size_t i = 0; i < direction.size(); ++i) {
        direction[i] /= static_cast<float>(std::sqrt(length));
        expected += static_cast<double>(gradient[i]) * direction[i];
      }
      EXPECT_NEAR(Slope(parameter->value, direction), expected, 2e-3 * std::abs(expected) + 3e-4)
          << "parameter " << index << " seed " << seed;
    }
    ++index;
  }
}

TEST_F(Gradients, CausalityHoldsInTheForwardPass) {
  // The loss of the first position alone depends on the first token only: change the later tokens
  // of both sequences and the gradient of their embeddings must still be found, but position 0's
  // prediction stays. Seen through targets that only differ there.
  targets_[0] = 1;
  const float first = Loss();
  targets_[0] = 2;
  const float second = Loss();
  const float difference = first - second;
  for (int i = 1; i < kSmall.rows(); ++i) {
    if (i != kSmall.context) tokens_[i] = (tokens_[i] + 1) % kSmall.symbols;
  }
  targets_[0] = 1;
  const float third = Loss();
  targets_[0] = 2;
  const float fourth = Loss();
  EXPECT_NEAR(third - fourth, difference, 1e-5);
}

TEST_F(Gradients, UpdateFollowsAdamWAndFreesTheGradients) {
  Loss();
  Parameter* parameter = model_.Parameters()[0];
  const float before = parameter->value.data()[0];
  const float gradient = parameter->gradient.data()[0];
  const size_t held = requested_bytes.current;
  model_.Update(0.01f);
  EXPECT_LT(requested_bytes.current, held);
  EXPECT_EQ(parameter->gradient.data(), nullptr);
  // In the first step both corrected moments are the gradient's own.
  const float direction = gradient / (std::abs(gradient) + 1e-8f);
  EXPECT_NEAR(parameter->value.data()[0], before - 0.01f * (direction + 0.01f * before), 1e-6);
}

TEST_F(Gradients, StepsLeaveNothingAllocated) {
  Loss();
  model_.Update(0.01f);
  const size_t held = requested_bytes.current;
  for (int i = 0; i < 3; ++i) {
    Loss();
    model_.Update(0.01f);
    EXPECT_EQ(requested_bytes.current, held);
  }
}

TEST(Kernels, LossAgreesWithTheFormulaOverTheWholeRange) {
  const int rows = 9, symbols = 5;
  Tensor logits(rows * symbols);
  std::vector<int> targets(rows);
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < symbols; ++i) {
      logits.data()[row * symbols + i] =
          static_cast<float>((i * 7 % 5 - 2) * std::pow(3.0, row - 4));
    }
    targets[row] = row % symbols;
  }
  double expected = 0;
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int i = 0; i < symbols; ++i) sum += std::exp(double{logits.data()[row * symbols + i]});
    expected += std::log(sum) - logits.data()[row * symbols + targets[row]];
  }
  float mean = 0;
  Ops(nullptr).LossForward(logits, targets.data(), &mean, rows);
  EXPECT_NEAR(mean, expected / rows, 1e-5 * expected / rows);
}

TEST(Kernels, GeluAgreesWithTheFormulaOverTheWholeRange) {
  const int count = 1001;
  Tensor in(count), out(count);
  for (int i = 0; i < count; ++i) in.data()[i] = (i - 500) * 0.1f;
  Ops(nullptr).GeluForward(in, out);
  for (int i = 0; i < count; ++i) {
    const double x = in.data()[i];
    const double expected =
        0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    EXPECT_NEAR(out.data()[i], expected, 1e-6 * std::max(1.0, std::abs(x))) << x;
  }
}

}  // namespace
}  // namespace chargpt
