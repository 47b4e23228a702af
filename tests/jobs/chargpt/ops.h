// The kernels as operations on tensors, queued on one stream. Pointers are device addresses; shapes
// are counts of elements.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_OPS_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_OPS_H_

#include <cuda_runtime_api.h>

#include <cmath>

#include "tests/jobs/chargpt/adamw.h"
#include "tests/jobs/chargpt/matmul.h"
#include "tests/jobs/chargpt/tensor.h"

namespace chargpt {

// Sizes of one attention: views of qkv are [batch][context][3 * width] with heads of width / heads.
struct AttentionShape {
  int batch, heads, context, width;
  int head_size() const { return width / heads; }
  float head_size_root() const { return std::sqrt(static_cast<float>(head_size())); }
  int rows() const { return batch * context; }
  size_t matrix() const { return static_cast<size_t>(batch) * heads * context * context; }
};

class Ops {
 public:
  explicit Ops(cudaStream_t stream) : stream_(stream) {}

  // out[rows][to] = in[rows][from] * weight[from][to] + bias.
  void Linear(const float* in, const Tensor& weight, const Tensor& bias, float* out,
              int rows) const;
  struct LinearGradients {
    Tensor& weight;
    Tensor& bias;
  };
  // Fills the gradients; returns the one with respect to `in`.
  Tensor LinearBackward(const float* in, const Tensor& weight, const float* d_out, int rows,
                        LinearGradients gradients) const;

  // Probabilities from qkv; scores are a temporary.
  Tensor AttentionProbabilities(const AttentionShape& shape, const float* qkv) const;
  void AttentionOutput(const AttentionShape& shape, const float* probabilities, const float* qkv,
                       float* out) const;
  // Returns d_qkv; frees `probabilities` as soon as they are not needed.
  Tensor AttentionBackward(const AttentionShape& shape, Tensor probabilities, const float* qkv,
                           const float* d_out) const;

  struct Norm {
    Tensor out, mean, rstd;
  };
  Norm NormForward(const float* in, const Tensor& gain, const Tensor& bias, int rows) const;
  struct NormGradients {
    Tensor& gain;
    Tensor& bias;
  };
  struct Incoming {
    const float* out;       // gradient with respect to the norm's output
    const float* residual;  // ... and what reaches the input past the norm
  };
  // Fills the gradients; returns the one with respect to `in`.
  Tensor NormBackward(const float* in, const Tensor& gain, const Norm& saved,
                      const Incoming& incoming, NormGradients gradients) const;

  void GeluForward(const Tensor& in, Tensor& out) const;
  void GeluBackward(const Tensor& in, const Tensor& d_out, Tensor& d_in) const;
  void Add(const Tensor& a, const Tensor& b, Tensor& out) const;

  struct EmbedShape {
    int batch, context, width, symbols;
    int rows() const { return batch * context; }
  };
  void Embed(const EmbedShape& shape, const int* tokens, const Tensor& token_table,
             const Tensor& position_table, Tensor& out) const;
  void EmbedBackward(const EmbedShape& shape, const int* tokens, const Tensor& d_out,
                     Tensor& d_token_table, Tensor& d_position_table) const;

  // Returns the probabilities; the mean loss goes to *mean.
  Tensor LossForward(const Tensor& logits, const int* targets, float* mean, int rows) const;
  void LossBackward(const Tensor& probabilities, const int* targets, Tensor& d_logits,
                    int rows) const;

  void AdamW(Tensor& value, const Tensor& gradient, Tensor& moment1, Tensor& moment2,
             const AdamWStep& step) const;

 private:
  enum class Form { kPlain, kTransposedA };
  struct Operands {
    const float* a;
    const float* b;
    float* c;
    const float* bias = nullptr;
  };
  void Matmul(Form form, const Operands& operands, const MatmulShape& shape) const;
  Tensor Transposed(const float* in, const TransposeShape& shape) const;

  cudaStream_t stream_;
};

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_OPS_H_
