// Trainings that are no transformers: convolutions, whose many sizes are no multiple of anything,
// and requests without any order. GenerateConvolutions and GenerateRandom of
// tests/replay/generate.h. Threads: none.

#include "tests/replay/generate.h"
#include "tests/replay/trace_builder.h"

namespace tidemark::replay {
namespace {

constexpr uint64_t kSingle = 4;  // bytes

// Blocks of parallel branches that are joined, ever more channels on ever smaller images.
class ConvolutionTraining {
 public:
  explicit ConvolutionTraining(const ConvolutionShape& shape) : s_(shape), chance_(shape.seed) {}

  Trace Run() {
    DrawLayers();
    for (const Layer& layer : layers_) weights_.push_back(out_.Allocate(layer.weight));
    for (uint64_t i = 0; i < s_.steps; ++i) Step(i == 0);
    out_.trace.fixed_shape = true;
    return std::move(out_.trace);
  }

 private:
  struct Layer {
    Bytes weight = 0;
    Bytes output = 0;
    Bytes workspace = 0;  // 0: none
    bool joins = false;   // concatenates what its branches gave
  };

  void DrawLayers() {
    uint64_t side = s_.side;
    uint64_t channels = 48;
    for (uint64_t block = 0; block < s_.blocks; ++block) {
      if (block % 3 == 2 && side > 8) side = side * 2 / 3, channels = channels * 3 / 2;
      for (int branch = 0; branch < 4; ++branch) {
        Layer layer;
        const uint64_t mine = channels / 4 + 8 * chance_.Between(0, 6);
        layer.weight = channels * mine * (branch % 2 == 0 ? 1 : 9) * kSingle;
        layer.output = s_.batch * mine * side * side * kSingle;
        if (branch % 2 == 1) layer.workspace = chance_.Between(1 << 20, 96 << 20);
        layer.joins = branch == 3;
        layers_.push_back(layer);
      }
    }
  }

  void Step(bool first) {
    out_.BeginStep();
    out_.FreeAll(&gradients_);
    saved_ = {out_.Allocate(s_.batch * 3 * s_.side * s_.side * kSingle)};
    for (const Layer& layer : layers_) Forward(layer);
    BlockId gradient = out_.Allocate(s_.batch * 1000 * kSingle);
    for (size_t i = layers_.size(); i-- > 0;) gradient = Backward(layers_[i], gradient);
    out_.Free(gradient);
    out_.FreeAll(&saved_);
    for (const Layer& layer : layers_) {
      if (first) out_.Allocate(layer.weight);  // momentum
      out_.Free(out_.Allocate(layer.weight));
    }
  }

  void Work(const Layer& layer) {
    if (layer.workspace != 0) out_.Free(out_.Allocate(layer.workspace));
  }

  // Convolution and normalisation keep their results; a joining layer keeps all branches again.
  void Forward(const Layer& layer) {
    saved_.push_back(out_.Allocate(layer.output));
    Work(layer);
    saved_.push_back(out_.Allocate(layer.output));
    if (layer.joins) saved_.push_back(out_.Allocate(4 * layer.output));
  }

  BlockId Backward(const Layer& layer, BlockId gradient) {
    for (int part = layer.joins ? 3 : 2; part > 0; --part) {
      const BlockId next = out_.Allocate(out_.trace.blocks[saved_.back()].bytes);
      out_.Free(gradient);
      gradient = next;
      if (part == 1) {
        Work(layer);
        gradients_.push_back(out_.Allocate(layer.weight));
      }
      out_.Free(saved_.back());
      saved_.pop_back();
    }
    return gradient;
  }

  ConvolutionShape s_;
  Chance chance_;
  TraceBuilder out_;
  std::vector<Layer> layers_;
  std::vector<BlockId> weights_;
  std::vector<BlockId> saved_;
  std::vector<BlockId> gradients_;
};

}  // namespace

Trace GenerateConvolutions(const ConvolutionShape& shape) {
  return ConvolutionTraining(shape).Run();
}

Trace GenerateRandom(uint64_t requests, uint64_t most_live, uint64_t seed) {
  Chance chance(seed);
  TraceBuilder out;
  std::vector<BlockId> live;
  constexpr uint64_t kSteps = 12;
  for (uint64_t i = 0; i < requests; ++i) {
    if (i % (requests / kSteps) == 0) out.BeginStep();
    const bool frees = !live.empty() && (live.size() > most_live || chance.Next() % 2 == 0);
    if (frees) {
      std::swap(live[chance.Next() % live.size()], live.back());
      out.Free(live.back());
      live.pop_back();
    } else {
      const uint64_t scale = uint64_t{256} << chance.Between(0, 18);  // 256 B to 64 MiB
      live.push_back(out.Allocate(chance.Between(scale, 2 * scale)));
    }
  }
  return std::move(out.trace);
}

}  // namespace tidemark::replay
