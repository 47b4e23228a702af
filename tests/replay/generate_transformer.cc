// One transformer's training as allocations: GenerateTransformer of tests/replay/generate.h.
// 16-bit weights and activations, 32-bit optimizer state. Threads: none.

#include <algorithm>

#include "tests/replay/generate.h"
#include "tests/replay/trace_builder.h"

namespace tidemark::replay {
namespace {

constexpr uint64_t kHalf = 2;    // bytes
constexpr uint64_t kSingle = 4;  // bytes
constexpr uint64_t kChosenExperts = 2;
constexpr uint32_t kComputeStream = 0;
constexpr uint32_t kGatherStream = 1;

class Training {
 public:
  explicit Training(const TransformerShape& shape) : s_(shape), chance_(shape.seed) {}

  Trace Run() {
    MakeWeights();
    for (uint64_t i = 0; i < s_.steps; ++i) Step(i == 0);
    out_.trace.fixed_shape = s_.shortest == s_.longest && s_.experts == 0;
    return std::move(out_.trace);
  }

 private:
  using Ids = std::vector<BlockId>;

  struct Layer {
    std::vector<Bytes> weights;  // whole, of one copy in half precision
    std::vector<Bytes> trained;  // elements of what has gradients and optimizer state
    Ids gathered;
    Ids saved;      // kept for the backward pass
    BlockId input;  // of the layer, kept in any case
  };

  BlockId Make(Bytes bytes) { return out_.Allocate(std::max<Bytes>(bytes, 1), kComputeStream); }

  void MakeWeights() {
    const uint64_t w = s_.width;
    Make(s_.vocabulary * w * kHalf);
    Make(s_.vocabulary * w * kHalf);
    const std::vector<uint64_t> dense = {3 * w * w, w * w, w * s_.inner, w * s_.inner};
    layers_.resize(s_.layers);
    for (Layer& layer : layers_) {
      for (size_t i = 0; i < dense.size(); ++i) {
        const uint64_t copies = i >= 2 && s_.experts != 0 ? s_.experts : 1;
        for (uint64_t c = 0; c < copies; ++c) layer.weights.push_back(dense[i] * kHalf);
        if (s_.rank != 0) {
          layer.trained.push_back(w * s_.rank);
          layer.trained.push_back(dense[i] / w * s_.rank);
        } else {
          layer.trained.insert(layer.trained.end(), copies, dense[i]);
        }
      }
      layer.trained.insert(layer.trained.end(), {w, w});  // norms
      for (const Bytes bytes : layer.weights) Make(Share(bytes));
      if (s_.rank != 0) {
        for (const uint64_t elements : layer.trained) Make(elements * kHalf);
      }
    }
  }

  Bytes Share(Bytes bytes) const { return (bytes + s_.shards - 1) / s_.shards; }

  void Step(bool first) {
    out_.BeginStep();
    out_.FreeAll(&gradients_);
    sequence_ = chance_.Between(s_.shortest, s_.longest);
    tokens_ = sequence_ * s_.batch;
    Ids data = {Make(tokens_ * 8), Make(tokens_ * 8)};
    BlockId hidden = Make(tokens_ * s_.width * kHalf);
    Gather(0);
    for (uint64_t i = 0; i < s_.layers; ++i) hidden = Forward(i, hidden);
    BlockId gradient = Loss(hidden);
    Gather(s_.layers - 1);
    for (uint64_t i = s_.layers; i-- > 0;) gradient = Backward(i, gradient);
    out_.Free(gradient);
    out_.FreeAll(&data);
    Update(first);
  }

  // Whole weights of a layer, where only a share is held.
  void Gather(uint64_t index) {
    Layer& layer = layers_[index];
    if (s_.shards == 1 || !layer.gathered.empty()) return;
    for (const Bytes bytes : layer.weights) {
      layer.gathered.push_back(out_.Allocate(bytes, kGatherStream));
    }
  }

  BlockId Forward(uint64_t index, BlockId input) {
    Layer& layer = layers_[index];
    if (index + 1 < s_.layers) Gather(index + 1);
    layer.input = input;
    const BlockId output = Compute(&layer);
    if (s_.recompute) out_.FreeAll(&layer.saved);
    // The last layer is needed again at once.
    if (index + 1 < s_.layers) out_.FreeAll(&layer.gathered);
    return output;
  }

  // The layer's operations; what the backward pass needs goes to `saved`.
  BlockId Compute(Layer* layer) {
    const Bytes narrow = tokens_ * s_.width * kHalf;
    Ids& saved = layer->saved;
    saved.push_back(Make(narrow));             // norm
    saved.push_back(Make(tokens_ * kSingle));  // its deviation
    saved.push_back(MakeAdapted(layer, 3 * narrow));
    if (s_.attention_scores) {
      const Bytes scores = s_.batch * s_.heads * sequence_ * sequence_ * kHalf;
      const BlockId raw = Make(scores);
      saved.push_back(Make(scores));
      out_.Free(raw);
    } else {
      saved.push_back(Make(s_.batch * s_.heads * sequence_ * kSingle));
    }
    saved.push_back(Make(narrow));
    const BlockId projected = MakeAdapted(layer, narrow);
    saved.push_back(Make(narrow / kHalf));  // dropout's mask
    saved.push_back(Make(narrow));
    out_.Free(projected);
    saved.push_back(Make(narrow));  // norm
    saved.push_back(Make(tokens_ * kSingle));
    if (s_.experts != 0) {
      Experts(layer);
    } else {
      saved.push_back(MakeAdapted(layer, tokens_ * s_.inner * kHalf));
      saved.push_back(Make(tokens_ * s_.inner * kHalf));
    }
    const BlockId down = MakeAdapted(layer, narrow);
    const BlockId output = Make(narrow);
    out_.Free(down);
    return output;
  }

  // The result of a matrix product, through an adapter where there are adapters.
  BlockId MakeAdapted(Layer* layer, Bytes bytes) {
    const BlockId result = Make(bytes);
    if (s_.rank == 0) return result;
    layer->saved.push_back(Make(tokens_ * s_.rank * kHalf));
    const BlockId delta = Make(bytes);
    const BlockId sum = Make(bytes);
    out_.Free(delta);
    out_.Free(result);
    return sum;
  }

  void Experts(Layer* layer) {
    Ids& saved = layer->saved;
    saved.push_back(Make(tokens_ * s_.experts * kSingle));
    saved.push_back(Make(tokens_ * kChosenExperts * 8));
    uint64_t left = tokens_ * kChosenExperts;
    for (uint64_t e = 0; e < s_.experts; ++e) {
      const uint64_t mean = left / (s_.experts - e);
      const uint64_t most = std::min(left, 2 * mean);
      const uint64_t mine = e + 1 == s_.experts ? left : chance_.Between(mean / 2, most);
      left -= mine;
      if (mine == 0) continue;
      saved.push_back(Make(mine * s_.width * kHalf));
      saved.push_back(Make(mine * s_.inner * kHalf));
      saved.push_back(Make(mine * s_.inner * kHalf));
      saved.push_back(Make(mine * s_.width * kHalf));
    }
  }

  // Returns the gradient of the last hidden state.
  BlockId Loss(BlockId hidden) {
    const Bytes logits = tokens_ * s_.vocabulary;
    const BlockId half = Make(logits * kHalf);
    const BlockId single = Make(logits * kSingle);
    const BlockId scaled = Make(logits * kSingle);
    out_.Free(single);
    const BlockId loss = Make(kSingle);
    const BlockId gradient = Make(logits * kHalf);
    out_.Free(scaled);
    out_.Free(half);
    const BlockId result = Make(tokens_ * s_.width * kHalf);
    if (s_.rank == 0) gradients_.push_back(Make(Share(s_.vocabulary * s_.width * kHalf)));
    out_.Free(gradient);
    out_.Free(loss);
    out_.Free(hidden);
    return result;
  }

  BlockId Backward(uint64_t index, BlockId gradient) {
    Layer& layer = layers_[index];
    if (index > 0) Gather(index - 1);
    if (s_.recompute) out_.Free(Compute(&layer));
    size_t parameter = layer.trained.size();
    while (!layer.saved.empty()) {
      const BlockId saved = layer.saved.back();
      layer.saved.pop_back();
      const Bytes bytes = out_.trace.blocks[saved].bytes;
      if (bytes >= tokens_ * s_.width) {
        const BlockId next = Make(bytes);  // gradient of what was saved
        if (parameter > 0) WeightGradient(layer.trained[--parameter]);
        out_.Free(gradient);
        gradient = next;
      }
      out_.Free(saved);
    }
    while (parameter > 0) WeightGradient(layer.trained[--parameter]);
    const BlockId result = Make(tokens_ * s_.width * kHalf);
    out_.Free(gradient);
    out_.Free(layer.input);
    out_.FreeAll(&layer.gathered);
    return result;
  }

  void WeightGradient(uint64_t elements) {
    if (s_.shards == 1 || s_.rank != 0) {
      gradients_.push_back(Make(elements * kHalf));
      return;
    }
    const BlockId whole = Make(elements * kHalf);
    gradients_.push_back(out_.Allocate(Share(elements * kHalf), kComputeStream));
    out_.Free(whole);
  }

  // Adam over all layers' parameters, with a temporary per parameter of a group.
  void Update(bool first) {
    Ids temporary;
    for (const Layer& layer : layers_) {
      for (const uint64_t elements : layer.trained) {
        const Bytes bytes = (s_.rank != 0 ? elements : Share(elements)) * kSingle;
        if (first) {
          for (int state = 0; state < 3; ++state) Make(bytes);  // master copy and two moments
        }
        temporary.push_back(Make(bytes));
      }
      if (temporary.size() > kGroup) out_.FreeAll(&temporary);
    }
    out_.FreeAll(&temporary);
  }

  static constexpr size_t kGroup = 32;

  TransformerShape s_;
  Chance chance_;
  TraceBuilder out_;
  std::vector<Layer> layers_;
  Ids gradients_;
  uint64_t sequence_ = 0;
  uint64_t tokens_ = 0;
};

}  // namespace

Trace GenerateTransformer(const TransformerShape& shape) { return Training(shape).Run(); }

}  // namespace tidemark::replay
