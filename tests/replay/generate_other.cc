// What is no transformer's training: convolutions, whose many sizes are no multiple of anything,
// caches that grow, and requests without any order. GenerateConvolutions, GenerateGrowingCaches,
// GenerateRandom and GenerateHugeAndTiny of tests/replay/generate.h. Threads: none.

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

namespace {

constexpr uint64_t kMarks = 12;  // steps of a sequence that has none

// Requests of `size()` and frees of any live block, either with equal chance.
template <typename Size>
Trace AnyOrder(uint64_t requests, uint64_t most_live, Chance* chance, const Size& size) {
  TraceBuilder out;
  std::vector<BlockId> live;
  for (uint64_t i = 0; i < requests; ++i) {
    if (i % (requests / kMarks) == 0) out.BeginStep();
    const bool frees = !live.empty() && (live.size() > most_live || chance->Next() % 2 == 0);
    if (frees) {
      std::swap(live[chance->Next() % live.size()], live.back());
      out.Free(live.back());
      live.pop_back();
    } else {
      live.push_back(out.Allocate(size()));
    }
  }
  return std::move(out.trace);
}

}  // namespace

Trace GenerateRandom(uint64_t requests, uint64_t most_live, uint64_t seed) {
  Chance chance(seed);
  return AnyOrder(requests, most_live, &chance, [&chance] {
    const uint64_t scale = uint64_t{256} << chance.Between(0, 18);  // 256 B to 64 MiB
    return chance.Between(scale, 2 * scale);
  });
}

Trace GenerateHugeAndTiny(uint64_t requests, uint64_t most_live, uint64_t seed) {
  constexpr uint64_t kKi = 1 << 10;
  constexpr uint64_t kMi = 1 << 20;
  Chance chance(seed);
  return AnyOrder(requests, most_live, &chance, [&chance] {
    const uint64_t kind = chance.Between(1, 100);
    if (kind <= 60) return chance.Between(512, 64 * kKi);
    return kind <= 95 ? chance.Between(64 * kKi, 3 * kMi) : chance.Between(64 * kMi, 400 * kMi);
  });
}

Trace GenerateGrowingCaches(const CacheShape& shape) {
  constexpr uint64_t kWeights = 200;
  Chance chance(shape.seed);
  TraceBuilder out;
  for (uint64_t i = 0; i < kWeights; ++i) out.Allocate(8 << 20);
  for (uint64_t step = 0; step < shape.steps; ++step) {
    out.BeginStep();
    std::vector<BlockId> caches;
    std::vector<uint64_t> lengths;
    for (uint64_t i = 0; i < shape.sequences * shape.layers; ++i) {
      if (i % shape.layers == 0) lengths.push_back(chance.Between(16, 256));
      caches.push_back(out.Allocate(lengths.back() * shape.token));
    }
    for (uint64_t token = 1; token <= shape.tokens; ++token) {
      for (uint64_t i = 0; i < caches.size(); ++i) {
        const uint64_t tokens = lengths[i / shape.layers] + token;
        const BlockId grown = out.Allocate(tokens * shape.token);
        const BlockId scores = out.Allocate(4 * shape.token);
        out.Free(caches[i]);
        out.Free(scores);
        caches[i] = grown;
      }
    }
    out.FreeAll(&caches);
  }
  return std::move(out.trace);
}

}  // namespace tidemark::replay
