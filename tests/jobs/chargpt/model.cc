#include "tests/jobs/chargpt/model.h"

#include <cmath>
#include <utility>

#include "tests/jobs/chargpt/random.h"

namespace chargpt {
namespace {

Parameter MakeParameter(size_t count) {
  return {Tensor(count), Tensor(), Tensor(count), Tensor(count)};
}

Affine MakeLinear(int from, int to) {
  return {MakeParameter(static_cast<size_t>(from) * to), MakeParameter(to)};
}

Affine MakeNorm(int width) { return {MakeParameter(width), MakeParameter(width)}; }

}  // namespace

Model::Model(const ModelShape& shape, uint64_t seed, cudaStream_t stream)
    : shape_(shape), ops_(stream), stream_(stream) {
  const int width = shape.width;
  token_table_ = MakeParameter(static_cast<size_t>(shape.symbols) * width);
  position_table_ = MakeParameter(static_cast<size_t>(shape.context) * width);
  for (int i = 0; i < shape.layers; ++i) {
    layers_.push_back({MakeNorm(width), MakeLinear(width, 3 * width), MakeLinear(width, width),
                       MakeNorm(width), MakeLinear(width, 4 * width),
                       MakeLinear(4 * width, width)});
  }
  final_norm_ = MakeNorm(width);
  head_ = MakeLinear(width, shape.symbols);
  Initialise(seed);
}

std::vector<Parameter*> Model::Parameters() {
  std::vector<Parameter*> all = {&token_table_, &position_table_};
  const auto add = [&all](Affine& affine) {
    all.push_back(&affine.weight);
    all.push_back(&affine.bias);
  };
  for (Layer& layer : layers_) {
    for (Affine* affine : {&layer.norm1, &layer.qkv, &layer.projection, &layer.norm2, &layer.expand,
                           &layer.contract}) {
      add(*affine);
    }
  }
  add(final_norm_);
  add(head_);
  return all;
}

void Model::Initialise(uint64_t seed) {
  Random random(seed);
  const auto upload = [this](Parameter& parameter, auto next) {
    PinnedArray<float> values(parameter.value.size());
    for (size_t i = 0; i < values.size(); ++i) values[i] = next();
    Check(cudaMemcpyAsync(parameter.value.data(), values.data(), values.bytes(),
                          cudaMemcpyHostToDevice, stream_),
          "cudaMemcpyAsync", values.bytes());
    for (Tensor* moment : {&parameter.moment1, &parameter.moment2}) {
      Check(cudaMemsetAsync(moment->data(), 0, moment->bytes(), stream_), "cudaMemsetAsync",
            moment->bytes());
    }
    Check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  };
  const auto normal = [&](Parameter& parameter, float deviation) {
    upload(parameter, [&] { return deviation * random.Normal(); });
  };
  const auto constant = [&](Parameter& parameter, float value) {
    upload(parameter, [value] { return value; });
  };
  const auto linear = [&](Affine& affine, float gain) {
    const float inputs = static_cast<float>(affine.weight.value.size() / affine.bias.value.size());
    normal(affine.weight, gain / std::sqrt(inputs));
    constant(affine.bias, 0.0f);
  };
  const auto norm = [&](Affine& affine) {
    constant(affine.weight, 1.0f);
    constant(affine.bias, 0.0f);
  };
  normal(token_table_, 0.5f);
  normal(position_table_, 0.1f);
  const float into_residual = 1.0f / std::sqrt(2.0f * shape_.layers);
  for (Layer& layer : layers_) {
    norm(layer.norm1);
    linear(layer.qkv, 1.0f);
    linear(layer.projection, into_residual);
    norm(layer.norm2);
    linear(layer.expand, 1.0f);
    linear(layer.contract, into_residual);
  }
  norm(final_norm_);
  linear(head_, 0.5f);
}

AttentionShape Model::Attention() const {
  return {shape_.batch, shape_.heads, shape_.context, shape_.width};
}

Ops::EmbedShape Model::Embedding() const {
  return {shape_.batch, shape_.context, shape_.width, shape_.symbols};
}

Tensor Model::LinearForward(Affine& linear, const Tensor& in) const {
  const int rows = shape_.rows();
  Tensor out(static_cast<size_t>(rows) * linear.bias.value.size());
  ops_.Linear(in.data(), linear.weight.value, linear.bias.value, out.data(), rows);
  return out;
}

Tensor Model::LinearBackward(Affine& linear, const Tensor& in, const Tensor& d_out) const {
  linear.weight.gradient = Tensor(linear.weight.value.size());
  linear.bias.gradient = Tensor(linear.bias.value.size());
  return ops_.LinearBackward(in.data(), linear.weight.value, d_out.data(), shape_.rows(),
                             {linear.weight.gradient, linear.bias.gradient});
}

Tensor Model::NormBackward(Affine& norm, const Tensor& in, const Ops::Norm& saved,
                           const Ops::Incoming& incoming) const {
  norm.weight.gradient = Tensor(norm.weight.value.size());
  norm.bias.gradient = Tensor(norm.bias.value.size());
  return ops_.NormBackward(in.data(), norm.weight.value, saved, incoming,
                           {norm.weight.gradient, norm.bias.gradient});
}

Tensor Model::LayerForward(Layer& layer, Tensor in, Saved* saved) const {
  const int rows = shape_.rows();
  saved->in = std::move(in);
  saved->norm1 =
      ops_.NormForward(saved->in.data(), layer.norm1.weight.value, layer.norm1.bias.value, rows);
  saved->qkv = LinearForward(layer.qkv, saved->norm1.out);
  saved->probabilities = ops_.AttentionProbabilities(Attention(), saved->qkv.data());
  saved->attended = Tensor(saved->in.size());
  ops_.AttentionOutput(Attention(), saved->probabilities.data(), saved->qkv.data(),
                       saved->attended.data());
  saved->middle = Tensor(saved->in.size());
  {
    const Tensor projected = LinearForward(layer.projection, saved->attended);
    ops_.Add(saved->in, projected, saved->middle);
  }
  saved->norm2 = ops_.NormForward(saved->middle.data(), layer.norm2.weight.value,
                                  layer.norm2.bias.value, rows);
  saved->expanded = LinearForward(layer.expand, saved->norm2.out);
  saved->activated = Tensor(saved->expanded.size());
  ops_.GeluForward(saved->expanded, saved->activated);
  const Tensor contracted = LinearForward(layer.contract, saved->activated);
  Tensor out(saved->in.size());
  ops_.Add(saved->middle, contracted, out);
  return out;
}

// Gradient with respect to `middle`; frees what the MLP saved.
Tensor Model::MlpBackward(Layer& layer, Saved* saved, Tensor d_out) const {
  Tensor d_activated = LinearBackward(layer.contract, saved->activated, d_out);
  saved->activated.Free();
  Tensor d_expanded(saved->expanded.size());
  ops_.GeluBackward(saved->expanded, d_activated, d_expanded);
  saved->expanded.Free();
  d_activated.Free();
  const Tensor d_normed = LinearBackward(layer.expand, saved->norm2.out, d_expanded);
  d_expanded.Free();
  Tensor d_middle =
      NormBackward(layer.norm2, saved->middle, saved->norm2, {d_normed.data(), d_out.data()});
  saved->norm2 = Ops::Norm();
  saved->middle.Free();
  return d_middle;
}

Tensor Model::LayerBackward(Layer& layer, Saved saved, Tensor d_out) const {
  const Tensor d_middle = MlpBackward(layer, &saved, std::move(d_out));
  Tensor d_attended = LinearBackward(layer.projection, saved.attended, d_middle);
  saved.attended.Free();
  Tensor d_qkv = ops_.AttentionBackward(Attention(), std::move(saved.probabilities),
                                        saved.qkv.data(), d_attended.data());
  saved.qkv.Free();
  d_attended.Free();
  const Tensor d_normed = LinearBackward(layer.qkv, saved.norm1.out, d_qkv);
  d_qkv.Free();
  return NormBackward(layer.norm1, saved.in, saved.norm1, {d_normed.data(), d_middle.data()});
}

void Model::ForwardBackward(const int* tokens, const int* targets, float* loss) {
  const int rows = shape_.rows();
  const size_t elements = static_cast<size_t>(rows) * shape_.width;
  Tensor stream(elements);
  ops_.Embed(Embedding(), tokens, token_table_.value, position_table_.value, stream);
  std::vector<Saved> saved(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    stream = LayerForward(layers_[i], std::move(stream), &saved[i]);
  }
  Ops::Norm last =
      ops_.NormForward(stream.data(), final_norm_.weight.value, final_norm_.bias.value, rows);
  Tensor logits = LinearForward(head_, last.out);
  Tensor probabilities = ops_.LossForward(logits, targets, loss, rows);

  // The logits are not needed again, so their place takes their gradient.
  ops_.LossBackward(probabilities, targets, logits, rows);
  probabilities.Free();
  Tensor d_normed = LinearBackward(head_, last.out, logits);
  logits.Free();
  Tensor nothing(elements);
  Check(cudaMemsetAsync(nothing.data(), 0, nothing.bytes(), stream_), "cudaMemsetAsync",
        nothing.bytes());
  Tensor gradient = NormBackward(final_norm_, stream, last, {d_normed.data(), nothing.data()});
  nothing.Free();
  d_normed.Free();
  last = Ops::Norm();
  stream.Free();
  for (size_t i = layers_.size(); i-- > 0;) {
    gradient = LayerBackward(layers_[i], std::move(saved[i]), std::move(gradient));
  }
  token_table_.gradient = Tensor(token_table_.value.size());
  position_table_.gradient = Tensor(position_table_.value.size());
  ops_.EmbedBackward(Embedding(), tokens, gradient, token_table_.gradient,
                     position_table_.gradient);
}

void Model::Update(float learning_rate) {
  AdamWStep step = {};
  step.learning_rate = learning_rate;
  step.beta1 = 0.9f;
  step.beta2 = 0.98f;
  beta1_power_ *= step.beta1;
  beta2_power_ *= step.beta2;
  step.correction1 = static_cast<float>(1.0 / (1.0 - beta1_power_));
  step.correction2 = static_cast<float>(1.0 / (1.0 - beta2_power_));
  step.epsilon = 1e-8f;
  step.weight_decay = 0.01f;
  for (Parameter* parameter : Parameters()) {
    ops_.AdamW(parameter->value, parameter->gradient, parameter->moment1, parameter->moment2, step);
    parameter->gradient.Free();
  }
}

}  // namespace chargpt
