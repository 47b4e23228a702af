#include "tests/step/transformer_step.h"

#include <algorithm>
#include <random>

#include "tests/step/step_builder.h"

namespace tidemark::steps {
namespace {

using core::BufferIndex;
using core::Bytes;
using Buffers = StepBuilder::Buffers;

// The weights of one matrix: what an optimizer pass and a backward pass need to know of it.
struct Weight {
  Bytes elements = 0;
  BufferIndex stored = 0;    // persistent: the whole, or this rank's shard
  BufferIndex gradient = 0;  // transient: from the first backward pass to the optimizer
  BufferIndex state = 0;     // persistent, if there is an optimizer state
};

struct LayerWeights {
  Weight qkv, projection, up, down;
};

// What the forward pass of one layer leaves for its backward pass.
struct Saved {
  BufferIndex input, norm1, qkv, scores, context, middle, norm2, up, gelu;
};

class Writer {
 public:
  explicit Writer(const TransformerShape& shape) : shape_(shape), random_(shape.seed) {}

  NamedStep Write() {
    out_.name = shape_.name;
    for (uint32_t l = 0; l < shape_.layers; ++l) {
      const Bytes h = shape_.width;
      layers_.push_back(
          {NewWeight(3 * h * h), NewWeight(h * h), NewWeight(4 * h * h), NewWeight(4 * h * h)});
    }
    head_ = NewWeight(Bytes{shape_.vocabulary} * shape_.width);
    for (uint32_t m = 0; m < shape_.micro_batches; ++m) MicroBatch(m);
    if (shape_.frozen) {
      out_.step = steps_.Take();
      return std::move(out_);
    }
    for (const LayerWeights& w : layers_) {
      for (const Weight* weight : {&w.qkv, &w.projection, &w.up, &w.down}) Optimize(*weight);
    }
    Optimize(head_);
    out_.step = steps_.Take();
    return std::move(out_);
  }

 private:
  Weight NewWeight(Bytes elements) {
    Weight w;
    w.elements = elements;
    const Bytes kept = (elements + shape_.ranks - 1) / shape_.ranks;
    w.stored = steps_.Persistent(2 * kept);
    if (shape_.frozen) return w;
    w.gradient = steps_.Transient(2 * kept);
    if (shape_.optimizer != OptimizerState::kNone) {
      w.state = steps_.Persistent(12 * kept);
      steps_.step().buffers[w.state].movable = shape_.optimizer == OptimizerState::kMovable;
    }
    return w;
  }

  void MicroBatch(uint32_t number) {
    sequence_ = shape_.sequence;
    if (shape_.variable_length) {
      sequence_ = shape_.sequence / 16 * (4 + static_cast<uint32_t>(random_() % 13));
    }
    tokens_ = Bytes{sequence_} * shape_.batch;
    first_ = number == 0;
    BufferIndex x = Activation(1);
    Emit("embed", 0, {head_.stored}, {x});
    std::vector<Saved> saved;
    for (const LayerWeights& layer : layers_) {
      Saved s{};
      const BufferIndex next = Activation(1);
      Forward(layer, x, next, &s);
      saved.push_back(s);
      x = next;
    }
    BufferIndex gradient = Head(x);
    for (size_t l = layers_.size(); l-- > 0;) gradient = Backward(layers_[l], saved[l], gradient);
    if (!shape_.frozen) {
      Emit("embed_backward", 0, {gradient, head_.gradient}, GradientOf(head_));
    }
  }

  // Bytes per token: `widths` times the width, two bytes an element.
  BufferIndex Activation(Bytes widths) {
    return steps_.Transient(2 * tokens_ * shape_.width * widths);
  }

  void Emit(const char* name, double flops, const Buffers& reads, const Buffers& writes) {
    double bytes = 0;
    for (const Buffers* list : {&reads, &writes}) {
      for (BufferIndex b : *list) bytes += static_cast<double>(steps_.step().buffers[b].bytes);
    }
    EmitFor(name, std::max(flops / shape_.flops_rate, bytes / shape_.memory_rate), reads, writes);
  }

  void EmitFor(const char* name, double seconds, const Buffers& reads, const Buffers& writes) {
    steps_.Op(shape_.launch_ns + static_cast<int64_t>(seconds * 1e9), reads, writes);
    out_.op_names.emplace_back(name);
  }

  double MatrixFlops(const Weight& w) const {
    return 2.0 * static_cast<double>(tokens_) * static_cast<double>(w.elements);
  }

  // Scores and context: two products of sequence x sequence x width, the causal half of each.
  double AttentionFlops() const {
    return 2.0 * static_cast<double>(tokens_) * sequence_ * shape_.width;
  }

  Bytes ScoreBytes() const {
    return shape_.fused_attention ? 8 * tokens_ * shape_.heads
                                  : 2 * tokens_ * sequence_ * shape_.heads;
  }

  // The matrix an operation reads: as stored, or gathered from all ranks for the pass.
  BufferIndex Whole(const Weight& w) {
    if (shape_.ranks == 1) return w.stored;
    const BufferIndex whole = steps_.Transient(2 * w.elements);
    EmitFor("gather", 2 * static_cast<double>(w.elements) / shape_.network_rate, {w.stored},
            {whole});
    return whole;
  }

  // The first backward pass writes a gradient, later ones add to it.
  Buffers GradientOf(const Weight& w) const { return {w.gradient}; }

  void Product(const char* name, const Weight& w, BufferIndex in, BufferIndex out) {
    Emit(name, MatrixFlops(w), {in, Whole(w)}, {out});
  }

  void ProductBackward(const char* name, const Weight& w, BufferIndex in, BufferIndex gradient_out,
                       BufferIndex gradient_in) {
    Emit(name, MatrixFlops(w), {gradient_out, Whole(w)}, {gradient_in});
    if (shape_.frozen) return;
    Buffers reads = {gradient_out, in};
    if (!first_) reads.push_back(w.gradient);
    if (shape_.ranks == 1) {
      Emit(name, MatrixFlops(w), reads, GradientOf(w));
      return;
    }
    const BufferIndex whole = steps_.Transient(2 * w.elements);
    Emit(name, MatrixFlops(w), {gradient_out, in}, {whole});
    EmitFor("reduce", 2 * static_cast<double>(w.elements) / shape_.network_rate, {whole},
            GradientOf(w));
  }

  void Attention(const Saved& s, BufferIndex scores) {
    if (shape_.fused_attention) {
      Emit("attention", AttentionFlops(), {s.qkv}, {scores, s.context});
      return;
    }
    Emit("scores", AttentionFlops() / 2, {s.qkv}, {scores});
    Emit("context", AttentionFlops() / 2, {scores, s.qkv}, {s.context});
  }

  // Up to the layer's output if `next` is given; without it, for a backward pass that recomputes.
  void Forward(const LayerWeights& w, BufferIndex x, const BufferIndex next, Saved* s) {
    Inner(w, x, s);
    const BufferIndex down = Activation(1);
    Product("down", w.down, s->gelu, down);
    Emit("add", 0, {s->middle, down}, {next});
  }

  void Inner(const LayerWeights& w, BufferIndex x, Saved* s) {
    s->input = x;
    s->norm1 = Activation(1);
    s->qkv = Activation(3);
    s->context = Activation(1);
    s->scores = steps_.Transient(ScoreBytes());
    s->middle = Activation(1);
    s->norm2 = Activation(1);
    s->up = Activation(4);
    s->gelu = Activation(4);
    const BufferIndex projected = Activation(1);
    Emit("norm", 0, {x}, {s->norm1});
    Product("qkv", w.qkv, s->norm1, s->qkv);
    Attention(*s, s->scores);
    Product("projection", w.projection, s->context, projected);
    Emit("add", 0, {x, projected}, {s->middle});
    Emit("norm", 0, {s->middle}, {s->norm2});
    Product("up", w.up, s->norm2, s->up);
    Emit("gelu", 0, {s->up}, {s->gelu});
  }

  BufferIndex Head(BufferIndex x) {
    const BufferIndex logits = steps_.Transient(2 * tokens_ * shape_.vocabulary);
    const BufferIndex gradient = Activation(1);
    Product("head", head_, x, logits);
    Emit("loss", 0, {logits}, {logits});
    ProductBackward("head_backward", head_, x, logits, gradient);
    return gradient;
  }

  BufferIndex Backward(const LayerWeights& w, Saved s, BufferIndex gradient) {
    if (shape_.recompute == Recompute::kFull) Inner(w, s.input, &s);
    const BufferIndex d_gelu = Activation(4), d_up = Activation(4), d_norm2 = Activation(1);
    ProductBackward("down_backward", w.down, s.gelu, gradient, d_gelu);
    Emit("gelu_backward", 0, {s.up, d_gelu}, {d_up});
    ProductBackward("up_backward", w.up, s.norm2, d_up, d_norm2);
    const BufferIndex d_middle = Activation(1);
    Emit("norm_backward", 0, {s.middle, d_norm2, gradient}, {d_middle});
    const BufferIndex d_context = Activation(1), d_qkv = Activation(3), d_norm1 = Activation(1);
    ProductBackward("projection_backward", w.projection, s.context, d_middle, d_context);
    AttentionBackward(s, d_context, d_qkv);
    ProductBackward("qkv_backward", w.qkv, s.norm1, d_qkv, d_norm1);
    const BufferIndex d_input = Activation(1);
    Emit("norm_backward", 0, {s.input, d_norm1, d_middle}, {d_input});
    return d_input;
  }

  void AttentionBackward(const Saved& s, BufferIndex d_context, BufferIndex d_qkv) {
    if (shape_.fused_attention) {
      Emit("attention_backward", 2.5 * AttentionFlops(), {s.scores, s.qkv, s.context, d_context},
           {d_qkv});
      return;
    }
    BufferIndex scores = s.scores;
    if (shape_.recompute == Recompute::kSelective) {
      scores = steps_.Transient(ScoreBytes());
      Emit("scores_again", AttentionFlops() / 2, {s.qkv}, {scores});
    }
    const BufferIndex d_scores = steps_.Transient(ScoreBytes());
    Emit("scores_backward", AttentionFlops(), {scores, s.qkv, d_context}, {d_scores});
    Emit("qkv_gradient", AttentionFlops(), {d_scores, s.qkv}, {d_qkv});
  }

  void Optimize(const Weight& w) {
    Buffers touched = {w.stored};
    if (shape_.optimizer != OptimizerState::kNone) touched.push_back(w.state);
    Buffers reads = touched;
    reads.push_back(w.gradient);
    Emit("optimizer", 0, reads, touched);
  }

  const TransformerShape& shape_;
  NamedStep out_;
  StepBuilder steps_;
  std::mt19937_64 random_;
  std::vector<LayerWeights> layers_;
  Weight head_;
  uint32_t sequence_ = 0;
  Bytes tokens_ = 0;
  bool first_ = true;
};

}  // namespace

NamedStep TransformerStep(const TransformerShape& shape) { return Writer(shape).Write(); }

std::vector<TransformerShape> ScoreboardShapes() {
  return {
      {.name = "gpt-saves-scores", .sequence = 1024, .batch = 16, .recompute = Recompute::kNone},
      {.name = "gpt-selective"},
      {.name = "gpt-full-recompute",
       .layers = 32,
       .width = 4096,
       .heads = 32,
       .sequence = 4096,
       .batch = 4,
       .fused_attention = true,
       .recompute = Recompute::kFull},
      {.name = "gpt-adam-small-batch",
       .batch = 4,
       .fused_attention = true,
       .optimizer = OptimizerState::kMovable},
      {.name = "gpt-adam-resident",
       .fused_attention = true,
       .optimizer = OptimizerState::kResident},
      {.name = "gpt-sharded-gathers",
       .layers = 32,
       .width = 4096,
       .heads = 32,
       .sequence = 4096,
       .batch = 1,
       .fused_attention = true,
       .optimizer = OptimizerState::kMovable,
       .ranks = 8},
      {.name = "gpt-variable-length",
       .layers = 16,
       .batch = 4,
       .fused_attention = true,
       .optimizer = OptimizerState::kMovable,
       .micro_batches = 4,
       .variable_length = true},
      {.name = "gpt-accumulates",
       .layers = 12,
       .width = 4096,
       .heads = 32,
       .batch = 1,
       .fused_attention = true,
       .optimizer = OptimizerState::kMovable,
       .micro_batches = 8},
      {.name = "gpt-long-context",
       .layers = 16,
       .width = 4096,
       .heads = 32,
       .sequence = 32768,
       .batch = 1,
       .fused_attention = true},
      {.name = "gpt-slow-device",
       .fused_attention = true,
       .flops_rate = 30e12,
       .memory_rate = 0.6e12},
      {.name = "gpt-frozen-weights",
       .layers = 32,
       .width = 4096,
       .heads = 32,
       .batch = 2,
       .fused_attention = true,
       .frozen = true},
  };
}

}  // namespace tidemark::steps
