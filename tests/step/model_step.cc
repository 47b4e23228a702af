#include "tests/step/model_step.h"

#include <string>
#include <utility>

#include "tests/step/expert_step.h"
#include "tests/step/step_writer.h"

namespace tidemark::steps {
namespace {

using core::BufferIndex;
using core::Bytes;
using Buffers = StepWriter::Buffers;

constexpr Bytes kMiB = Bytes{1} << 20;
// A convolution of 3 x 3 or a function of single elements, for the backward pass.
struct Layer {
  Buffers inputs;
  BufferIndex output = 0;
  BufferIndex weight = 0;
  bool has_weight = false;
  double flops = 0;
};

struct Level {
  BufferIndex image;
  Bytes side, channels;
};

class Unet {
 public:
  Unet(StepWriter* out, Bytes batch) : out_(*out), batch_(batch) {}

  void Run(Bytes levels, Bytes channels, Bytes side) {
    BufferIndex x = Image(4, side);
    out_.Emit("noise", 0, {}, {x});
    std::vector<Level> skips;
    for (Bytes level = 0; level < levels; ++level) {
      x = Convolve({x}, channels, side);
      x = Convolve({x}, channels, side);
      skips.push_back({x, side, channels});
      if (level + 1 == levels) break;
      side /= 2;
      x = Resize("pool", x, Image(channels, side));
      channels *= 2;
    }
    for (size_t k = skips.size() - 1; k-- > 0;) {
      const Level& skip = skips[k];
      x = Resize("up", x, Image(skip.channels, skip.side));
      x = Convolve({x, skip.image}, skip.channels, skip.side);
      x = Convolve({x}, skip.channels, skip.side);
    }
    gradient_.resize(x + 1, kNone);
    gradient_[x] = out_.Passing(out_.bytes(x));
    out_.Emit("loss", 0, {x}, {gradient_[x]});
    for (size_t l = layers_.size(); l-- > 0;) Backward(layers_[l]);
  }

  // Moments and a master copy in 4 bytes.
  void Adam() {
    for (const auto& [weight, gradient] : trained_) {
      Buffers state = {weight};
      for (int k = 0; k < 3; ++k) state.push_back(out_.Kept(2 * out_.bytes(weight)));
      Buffers reads = state;
      reads.push_back(gradient);
      out_.Emit("adam", 0, reads, state);
    }
  }

  void Average() {
    for (const auto& [weight, gradient] : trained_) {
      const BufferIndex average = out_.Kept(2 * out_.bytes(weight));
      out_.Emit("average", 0, {weight, average}, {average});
    }
  }

 private:
  static constexpr BufferIndex kNone = ~BufferIndex{0};

  BufferIndex Image(Bytes channels, Bytes side) {
    return out_.Passing(2 * batch_ * channels * side * side);
  }

  BufferIndex Convolve(const Buffers& inputs, Bytes channels, Bytes side) {
    Bytes from = 0;
    for (BufferIndex b : inputs) from += out_.bytes(b) / (2 * batch_ * side * side);
    Layer layer{inputs, Image(channels, side), out_.Kept(2 * 9 * from * channels), true, 0};
    layer.flops = 2.0 * 9 * static_cast<double>(batch_ * side * side * from * channels);
    Buffers reads = inputs;
    reads.push_back(layer.weight);
    out_.Emit("convolution", layer.flops, reads, {layer.output});
    layers_.push_back(layer);
    return Resize("silu", layer.output, Image(channels, side));
  }

  BufferIndex Resize(const char* name, BufferIndex from, BufferIndex to) {
    out_.Emit(name, 0, {from}, {to});
    layers_.push_back({{from}, to, 0, false, 0});
    return to;
  }

  // Adds to the gradient of an input that has one already.
  void Backward(const Layer& layer) {
    Buffers reads = layer.inputs, writes;
    reads.push_back(gradient_[layer.output]);
    for (BufferIndex b : layer.inputs) {
      const bool adds = gradient_[b] != kNone;
      if (!adds) gradient_[b] = out_.Passing(out_.bytes(b));
      if (adds) reads.push_back(gradient_[b]);
      writes.push_back(gradient_[b]);
    }
    reads.push_back(layer.has_weight ? layer.weight : layer.output);
    if (layer.has_weight) {
      trained_.push_back({layer.weight, out_.Kept(out_.bytes(layer.weight))});
      writes.push_back(trained_.back().second);
    }
    out_.Emit("backward", 2 * layer.flops, reads, writes);
  }

  StepWriter& out_;
  const Bytes batch_;
  std::vector<Layer> layers_;
  std::vector<BufferIndex> gradient_;                         // per buffer
  std::vector<std::pair<BufferIndex, BufferIndex>> trained_;  // weights and their gradients
};

}  // namespace

NamedStep EmbeddingTablesStep() {
  constexpr Bytes kTable = 400 * kMiB, kRows = 32 * kMiB;
  StepWriter out("embedding-tables");
  Buffers tables, rows, weights;
  for (int k = 0; k < 26; ++k) tables.push_back(out.Kept(kTable));
  for (int k = 0; k < 8; ++k) weights.push_back(out.Kept(20 * kMiB));
  for (BufferIndex table : tables) {
    rows.push_back(out.Passing(kRows));
    out.EmitTouching("look_up", 0, 4 * kRows, {table}, {rows.back()});
  }
  BufferIndex x = out.Passing(2 * kRows);
  out.Emit("interact", 0, rows, {x});
  std::vector<BufferIndex> saved;
  for (BufferIndex weight : weights) {
    saved.push_back(x);
    x = out.Passing(kRows);
    out.Emit("layer", 50e9, {saved.back(), weight}, {x});
  }
  for (size_t k = weights.size(); k-- > 0;) {
    const BufferIndex gradient = out.Passing(out.bytes(saved[k]));
    out.Emit("layer_backward", 100e9, {x, saved[k], weights[k]}, {gradient, weights[k]});
    x = gradient;
  }
  Buffers gradients;
  for (size_t k = 0; k < rows.size(); ++k) gradients.push_back(out.Passing(kRows));
  Buffers reads = rows;
  reads.push_back(x);
  out.Emit("interact_backward", 0, reads, gradients);
  for (size_t k = tables.size(); k-- > 0;) {
    out.EmitTouching("update", 0, 8 * kRows, {tables[k], gradients[k]}, {tables[k]});
  }
  return out.Take();
}

NamedStep AveragedUnetStep() {
  StepWriter out("unet-adam-average");
  Unet unet(&out, 16);
  unet.Run(4, 256, 64);
  unet.Adam();
  unet.Average();
  return out.Take();
}

NamedStep WholeGraphStep() {
  constexpr Bytes kFeatures = 300 * kMiB;
  struct Hop {
    BufferIndex in, gathered, out;
  };
  StepWriter out("whole-graph");
  Buffers features;
  for (int k = 0; k < 4; ++k) features.push_back(out.Kept(kFeatures));
  const BufferIndex graph = out.Kept(3 * kFeatures);
  std::vector<Hop> hops;
  Buffers now = features;
  for (int layer = 0; layer < 6; ++layer) {
    for (BufferIndex& x : now) {
      const Hop hop{x, out.Passing(kFeatures), out.Passing(kFeatures)};
      out.Emit("gather", 600e9, {graph, hop.in}, {hop.gathered});
      out.Emit("linear", 450e9, {hop.gathered}, {hop.out});
      hops.push_back(hop);
      x = hop.out;
    }
  }
  Buffers gradients;
  for (BufferIndex x : now) {
    gradients.push_back(out.Passing(kFeatures));
    out.Emit("loss", 0, {x}, {gradients.back()});
  }
  for (size_t k = hops.size(); k-- > 0;) {
    BufferIndex& gradient = gradients[k % gradients.size()];
    const BufferIndex gathered = out.Passing(kFeatures);
    out.Emit("linear_backward", 900e9, {gradient, hops[k].gathered}, {gathered});
    gradient = out.Passing(kFeatures);
    out.Emit("gather_backward", 600e9, {graph, gathered}, {gradient});
  }
  return out.Take();
}

NamedStep StreamedWeightsStep() {
  constexpr Bytes kWeight = 30 * kMiB, kActivation = 4 * kMiB;
  StepWriter out("streamed-weights");
  BufferIndex x = out.Passing(kActivation);
  out.Emit("embed", 0, {}, {x});
  for (int layer = 0; layer < 60; ++layer) {
    const BufferIndex weight = out.Kept(kWeight), next = out.Passing(kActivation);
    out.Emit("layer", 150e9, {x, weight}, {next});
    x = next;
  }
  return out.Take();
}

NamedStep SkewedExpertsStep() {
  core::Step step = ExpertStep(/*layers=*/12, /*experts=*/16);
  std::vector<std::string> names(step.ops.size(), "op");
  return {"skewed-experts", std::move(step), std::move(names)};
}

std::vector<NamedStep> ModelSteps() {
  std::vector<NamedStep> steps;
  steps.push_back(EmbeddingTablesStep());
  steps.push_back(AveragedUnetStep());
  steps.push_back(WholeGraphStep());
  steps.push_back(StreamedWeightsStep());
  steps.push_back(PipelineStageStep());
  steps.push_back(OptimizerBucketsStep());
  steps.push_back(SkewedExpertsStep());
  return steps;
}

}  // namespace tidemark::steps
