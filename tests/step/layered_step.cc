// Steps of model_step.h that are stacks of equal transformer layers, trained in other ways than
// transformer_step.h has.

#include <deque>
#include <utility>
#include <vector>

#include "tests/step/model_step.h"
#include "tests/step/step_writer.h"

namespace tidemark::steps {
namespace {

using core::BufferIndex;
using core::Bytes;
using Buffers = StepWriter::Buffers;

struct LayerWeights {
  BufferIndex attention, mlp;
};

// What a layer's backward pass reads.
struct Saved {
  BufferIndex x, qkv, attended, y, hidden, active;
};

class Layers {
 public:
  Layers(StepWriter* out, Bytes width, Bytes tokens)
      : out_(*out),
        width_(width),
        row_(2 * tokens * width),
        flops_(2.0 * static_cast<double>(tokens * width * width)),
        score_flops_(4.0 * 1024 * static_cast<double>(tokens * width)) {}

  Bytes row() const { return row_; }
  Bytes weight_bytes() const { return 24 * width_ * width_; }
  LayerWeights Weights() {
    return {out_.Kept(8 * width_ * width_), out_.Kept(16 * width_ * width_)};
  }

  BufferIndex Forward(BufferIndex x, LayerWeights w, Saved* saved) {
    Saved s;
    s.x = x;
    s.qkv = Write("qkv", 3 * flops_, {x, w.attention}, 3 * row_);
    s.attended = Write("attention", score_flops_, {s.qkv}, row_);
    s.y = Write("project", flops_, {s.attended, w.attention, x}, row_);
    s.hidden = Write("mlp_up", 4 * flops_, {s.y, w.mlp}, 4 * row_);
    s.active = Write("gelu", 0, {s.hidden}, 4 * row_);
    *saved = s;
    return Write("mlp_down", 4 * flops_, {s.active, w.mlp, s.y}, row_);
  }

  // Adds to gradients of the weights; returns that of the layer's input.
  BufferIndex Backward(const Saved& s, LayerWeights w, LayerWeights gradients, BufferIndex d) {
    const BufferIndex active = Write("mlp_down_backward", 4 * flops_, {d, w.mlp}, 4 * row_);
    Add("mlp_down_gradient", 4 * flops_, {d, s.active}, gradients.mlp);
    const BufferIndex hidden = Write("gelu_backward", 0, {active, s.hidden}, 4 * row_);
    const BufferIndex y = Write("mlp_up_backward", 4 * flops_, {hidden, w.mlp, d}, row_);
    Add("mlp_up_gradient", 4 * flops_, {hidden, s.y}, gradients.mlp);
    const BufferIndex attended = out_.Passing(row_);
    out_.Emit("project_backward", 2 * flops_, {y, s.attended, w.attention},
              {attended, gradients.attention});
    const BufferIndex qkv =
        Write("attention_backward", 2.5 * score_flops_, {attended, s.qkv}, 3 * row_);
    const BufferIndex x = out_.Passing(row_);
    out_.Emit("qkv_backward", 6 * flops_, {qkv, s.x, w.attention, y}, {x, gradients.attention});
    return x;
  }

 private:
  BufferIndex Write(const char* name, double flops, const Buffers& reads, Bytes bytes) {
    const BufferIndex to = out_.Passing(bytes);
    out_.Emit(name, flops, reads, {to});
    return to;
  }
  void Add(const char* name, double flops, const Buffers& reads, BufferIndex to) {
    out_.Emit(name, flops, reads, {to});
  }

  StepWriter& out_;
  const Bytes width_;
  const Bytes row_;  // of one number per token and channel
  const double flops_, score_flops_;
};

// Moments and a master copy in 4 bytes.
Buffers AdamState(StepWriter* out, Bytes weight_bytes) {
  Buffers state;
  for (int k = 0; k < 3; ++k) state.push_back(out->Kept(2 * weight_bytes));
  return state;
}

}  // namespace

NamedStep PipelineStageStep() {
  constexpr int kLayers = 6, kMicroBatches = 8, kInFlight = 4;
  constexpr double kNetworkTime = 10;  // device memory time for the same bytes
  StepWriter out("pipeline-stage");
  Layers layers(&out, 4096, 2048);
  std::vector<LayerWeights> weights, gradients;
  for (int l = 0; l < kLayers; ++l) weights.push_back(layers.Weights());
  for (int l = 0; l < kLayers; ++l) gradients.push_back(layers.Weights());
  const auto row_time = kNetworkTime * static_cast<double>(layers.row());
  std::deque<std::vector<Saved>> in_flight;
  const auto forward = [&] {
    BufferIndex x = out.Passing(layers.row());
    out.EmitTouching("receive", 0, row_time, {}, {x});
    std::vector<Saved> saved(kLayers);
    for (int l = 0; l < kLayers; ++l) x = layers.Forward(x, weights[l], &saved[l]);
    out.EmitTouching("send", 0, row_time, {x}, {});
    in_flight.push_back(std::move(saved));
  };
  const auto backward = [&] {
    BufferIndex d = out.Passing(layers.row());
    out.EmitTouching("receive_gradient", 0, row_time, {}, {d});
    for (int l = kLayers; l-- > 0;) {
      d = layers.Backward(in_flight.front()[l], weights[l], gradients[l], d);
    }
    out.EmitTouching("send_gradient", 0, row_time, {d}, {});
    in_flight.pop_front();
  };
  for (int m = 0; m < kMicroBatches; ++m) {
    forward();
    if (m + 1 >= kInFlight) backward();
  }
  while (!in_flight.empty()) backward();
  for (int l = 0; l < kLayers; ++l) {
    for (const auto part : {&LayerWeights::attention, &LayerWeights::mlp}) {
      Buffers writes = AdamState(&out, out.bytes(weights[l].*part));
      writes.push_back(weights[l].*part);
      Buffers reads = writes;
      reads.push_back(gradients[l].*part);
      out.Emit("adam", 0, reads, writes);
    }
  }
  return out.Take();
}

NamedStep OptimizerBucketsStep() {
  constexpr int kLayers = 24, kInBucket = 4;
  StepWriter out("optimizer-buckets");
  Layers layers(&out, 2048, 8192);
  std::vector<LayerWeights> weights;
  Buffers gradients, inputs;
  for (int l = 0; l < kLayers; ++l) weights.push_back(layers.Weights());
  for (int b = 0; b < kLayers / kInBucket; ++b) {
    gradients.push_back(out.Kept(kInBucket * layers.weight_bytes()));
  }
  BufferIndex x = out.Passing(layers.row());
  out.Emit("embed", 0, {}, {x});
  Saved saved;
  for (const LayerWeights w : weights) {
    inputs.push_back(x);
    x = layers.Forward(x, w, &saved);
  }
  BufferIndex d = out.Passing(layers.row());
  out.Emit("loss", 0, {x}, {d});
  for (int l = kLayers; l-- > 0;) {
    layers.Forward(inputs[l], weights[l], &saved);  // again: only inputs were kept
    const BufferIndex gradient = gradients[l / kInBucket];
    d = layers.Backward(saved, weights[l], {gradient, gradient}, d);
  }
  for (int b = 0; b < kLayers / kInBucket; ++b) {
    Buffers writes = AdamState(&out, kInBucket * layers.weight_bytes());
    for (int l = b * kInBucket; l < (b + 1) * kInBucket; ++l) {
      writes.push_back(weights[l].attention);
      writes.push_back(weights[l].mlp);
    }
    Buffers reads = writes;
    reads.push_back(gradients[b]);
    out.Emit("adam", 0, reads, writes);
  }
  return out.Take();
}

}  // namespace tidemark::steps
