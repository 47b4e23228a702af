// The GPT: its parameters and one training step. Activations are allocated as the forward pass
// makes them and freed as the backward pass has used them; gradients live from there to the update.
// One thread; all work is queued on one stream.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_MODEL_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_MODEL_H_

#include <cstdint>
#include <vector>

#include "tests/jobs/chargpt/ops.h"

namespace chargpt {

struct ModelShape {
  int layers, width, heads, context, batch;
  int symbols;
  int rows() const { return batch * context; }
};

struct Parameter {
  Tensor value, gradient, moment1, moment2;
};

// Two parameters that belong together: weight and bias of a linear layer, gain and bias of a norm.
struct Affine {
  Parameter weight, bias;
};

struct Layer {
  Affine norm1, qkv, projection, norm2, expand, contract;
};

class Model {
 public:
  // Initial weights depend on shape and seed only.
  Model(const ModelShape& shape, uint64_t seed, cudaStream_t stream);

  // One forward and backward pass over `tokens` and `targets` ([batch][context], device memory).
  // The mean loss is queued to *loss (device memory). Gradients are left in the parameters.
  void ForwardBackward(const int* tokens, const int* targets, float* loss);

  // Applies the gradients and frees them.
  void Update(float learning_rate);

  // Every parameter in a fixed order.
  std::vector<Parameter*> Parameters();

 private:
  // What a layer's forward pass keeps for its backward pass.
  struct Saved {
    Tensor in;
    Ops::Norm norm1;
    Tensor qkv, probabilities, attended, middle;
    Ops::Norm norm2;
    Tensor expanded, activated;
  };

  void Initialise(uint64_t seed);
  AttentionShape Attention() const;
  Ops::EmbedShape Embedding() const;
  Tensor LayerForward(Layer& layer, Tensor in, Saved* saved) const;
  Tensor LayerBackward(Layer& layer, Saved saved, Tensor d_out) const;
  Tensor MlpBackward(Layer& layer, Saved* saved, Tensor d_out) const;
  Tensor LinearForward(Affine& linear, const Tensor& in) const;
  Tensor LinearBackward(Affine& linear, const Tensor& in, const Tensor& d_out) const;
  Tensor NormBackward(Affine& norm, const Tensor& in, const Ops::Norm& saved,
                      const Ops::Incoming& incoming) const;

  ModelShape shape_;
  Ops ops_;
  cudaStream_t stream_;
  Parameter token_table_, position_table_;
  std::vector<Layer> layers_;
  Affine final_norm_, head_;
  double beta1_power_ = 1.0;
  double beta2_power_ = 1.0;
};

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_MODEL_H_
