// A transformer whose weights are frozen in four bits, with trained adapters and an optimizer that
// keeps two bytes for each of their weights: GenerateQuantized of tests/replay/generate.h. Each
// linear layer unpacks its weight for as long as it runs; each transformer layer is run again in
// the backward pass. Much of what lasts is made in pieces of 256 to 700 KiB at the end of the first
// step, between gradients that do not last. Threads: none.

#include "tests/replay/generate.h"
#include "tests/replay/trace_builder.h"

namespace tidemark::replay {
namespace {

constexpr uint64_t kHalf = 2;  // bytes
constexpr uint64_t kSingle = 4;
constexpr uint64_t kAtOnce = 40;  // parameters that the optimizer updates together

class QuantizedTraining {
 public:
  explicit QuantizedTraining(const QuantizedShape& shape) : s_(shape), chance_(shape.seed) {
    const Matrix attention = {s_.width, s_.width};
    matrices_ = {attention,
                 attention,
                 attention,
                 attention,
                 {s_.width, s_.inner},
                 {s_.width, s_.inner},
                 {s_.inner, s_.width}};
  }

  Trace Run() {
    MakeWeights();
    for (uint64_t i = 0; i < s_.steps; ++i) Step(i == 0);
    return std::move(out_.trace);
  }

 private:
  struct Matrix {
    uint64_t in = 0;
    uint64_t out = 0;
  };
  using Blocks = std::vector<BlockId>;

  BlockId New(Bytes bytes) { return out_.Allocate(bytes); }
  void Briefly(Bytes bytes) { out_.Free(New(bytes)); }
  Bytes SizeOf(BlockId block) const { return out_.trace.blocks[block].bytes; }
  Bytes Tokens(uint64_t width) const { return tokens_ * width * kHalf; }
  void Replace(BlockId* old, Bytes bytes) {
    const BlockId block = New(bytes);
    out_.Free(*old);
    *old = block;
  }

  // Four bits each, a scale for every 64, and a scale of the scales.
  void MakeWeights() {
    New(s_.vocabulary * s_.width * kHalf);
    New(s_.vocabulary * s_.width * kHalf);
    for (uint64_t layer = 0; layer < s_.layers; ++layer) {
      for (const Matrix& m : matrices_) {
        const uint64_t weights = m.in * m.out;
        New(weights / 2);
        New(weights / 64);
        New(weights / 64 / 256 * kSingle);
        for (const uint64_t adapter : {m.in * s_.rank, s_.rank * m.out}) {
          trained_.push_back(adapter);
          New(adapter * kSingle);
        }
      }
      New(s_.width * kHalf);
      New(s_.width * kHalf);
    }
  }

  void Step(bool first) {
    out_.BeginStep();
    tokens_ = 2 * chance_.Between(s_.shortest, s_.longest);
    out_.FreeAll(&gradients_);
    Blocks inputs = {New(tokens_ * 8), New(tokens_ * 8), New(tokens_ * 8)};
    Blocks kept;
    BlockId x = New(Tokens(s_.width));
    for (uint64_t layer = 0; layer < s_.layers; ++layer) {
      kept.push_back(x);
      Blocks inside;
      x = Forward(&inside);
      out_.FreeAll(&inside);
    }
    BlockId gradient = Loss();
    out_.Free(x);
    for (uint64_t layer = s_.layers; layer-- > 0;) Backward(kept[layer], &gradient);
    out_.Free(gradient);
    out_.FreeAll(&inputs);
    Update(first);
  }

  BlockId Linear(const Matrix& m, Blocks* inside) {
    const BlockId weight = New(m.in * m.out * kHalf);
    BlockId y = New(Tokens(m.out));
    out_.Free(weight);
    inside->push_back(New(Tokens(s_.rank)));
    BlockId adapted = New(Tokens(m.out));
    Replace(&adapted, Tokens(m.out));
    const BlockId sum = New(Tokens(m.out));
    out_.Free(adapted);
    out_.Free(y);
    return sum;
  }

  void Normalise(Blocks* inside) {
    const BlockId wide = New(tokens_ * s_.width * kSingle);
    inside->push_back(New(Tokens(s_.width)));
    out_.Free(wide);
  }

  // Its input stays. Returns its output.
  BlockId Forward(Blocks* inside) {
    Normalise(inside);
    for (int i = 0; i < 3; ++i) inside->push_back(Linear(matrices_[i], inside));
    inside->push_back(New(tokens_ * 32 * kSingle));
    inside->push_back(New(Tokens(s_.width)));
    AddTo(Linear(matrices_[3], inside), inside);
    Normalise(inside);
    inside->push_back(Linear(matrices_[4], inside));
    inside->push_back(Linear(matrices_[5], inside));
    inside->push_back(New(Tokens(s_.inner)));
    inside->push_back(New(Tokens(s_.inner)));
    const BlockId projected = Linear(matrices_[6], inside);
    const BlockId out = New(Tokens(s_.width));
    out_.Free(projected);
    return out;
  }

  void AddTo(BlockId part, Blocks* inside) {
    inside->push_back(New(Tokens(s_.width)));
    out_.Free(part);
  }

  // Logits in half and single precision; their gradient.
  BlockId Loss() {
    BlockId scores = New(Tokens(s_.vocabulary));
    Replace(&scores, tokens_ * s_.vocabulary * kSingle);
    const BlockId probabilities = New(tokens_ * s_.vocabulary * kSingle);
    const BlockId wide = New(tokens_ * s_.vocabulary * kSingle);
    out_.Free(probabilities);
    out_.Free(scores);
    const BlockId narrow = New(Tokens(s_.vocabulary));
    out_.Free(wide);
    const BlockId gradient = New(Tokens(s_.width));
    out_.Free(narrow);
    return gradient;
  }

  void Backward(BlockId input, BlockId* gradient) {
    Blocks inside;
    out_.Free(Forward(&inside));
    for (size_t i = inside.size(); i-- > 0;) {
      const Bytes size = SizeOf(inside[i]);
      if (size >= Tokens(s_.width)) {
        const bool narrow = size == Tokens(s_.width);
        const BlockId weight = New(s_.width * (narrow ? s_.width : s_.inner) * kHalf);
        const BlockId next = New(size);
        out_.Free(weight);
        out_.Free(*gradient);
        *gradient = next;
      }
      out_.Free(inside[i]);
    }
    for (const Matrix& m : matrices_) {
      for (const uint64_t adapter : {m.in * s_.rank, s_.rank * m.out}) {
        const BlockId half = New(adapter * kHalf);
        gradients_.push_back(New(adapter * kSingle));
        out_.Free(half);
      }
    }
    Replace(gradient, Tokens(s_.width));
    out_.Free(input);
  }

  void Update(bool first) {
    for (size_t i = 0; first && i < 2 * trained_.size(); ++i) New(trained_[i / 2]);
    Blocks together;
    for (const uint64_t adapter : trained_) {
      together.push_back(New(adapter));
      if (together.size() == kAtOnce) out_.FreeAll(&together);
    }
    out_.FreeAll(&together);
  }

  QuantizedShape s_;
  Chance chance_;
  TraceBuilder out_;
  std::vector<Matrix> matrices_;   // of a layer
  std::vector<uint64_t> trained_;  // weights of each adapter
  std::vector<BlockId> gradients_;
  uint64_t tokens_ = 0;
};

}  // namespace

Trace GenerateQuantized(const QuantizedShape& shape) { return QuantizedTraining(shape).Run(); }

}  // namespace tidemark::replay
