// Causal attention as products on strided views of qkv: no copy per head but the transposed ones.

#include "kernels/launch.h"
#include "tests/jobs/chargpt/attention.h"
#include "tests/jobs/chargpt/ops.h"

namespace chargpt {
namespace {

using tidemark::kernels::Launch;
using tidemark::kernels::LaunchShape;

constexpr unsigned kThreads = 128;

LaunchShape Rows(int rows, cudaStream_t stream) {
  return {dim3((rows + kThreads - 1) / kThreads), dim3(kThreads), stream};
}

// A head's part of q, k or v inside qkv; of [batch][context][width] outputs; of [context][context]
// matrices per head; and of a transposed head, [head_size][context].
MatrixStrides PartOfQkv(const AttentionShape& s) {
  return {3 * s.width, 3ll * s.context * s.width, s.head_size()};
}
MatrixStrides PartOfOutput(const AttentionShape& s) {
  return {s.width, 1ll * s.context * s.width, s.head_size()};
}
MatrixStrides Square(const AttentionShape& s) {
  const long long head = 1ll * s.context * s.context;
  return {s.context, head * s.heads, head};
}
MatrixStrides TransposedHead(const AttentionShape& s) {
  return {s.context, 1ll * s.context * s.width, 1ll * s.context * s.head_size()};
}

// [context][context] = [context][head_size] * [head_size][context].
MatmulShape OuterShape(const AttentionShape& s, const MatrixStrides& left) {
  return {s.context,    s.context, s.head_size(),     s.batch * s.heads, s.heads,
          kLowerOutput, left,      TransposedHead(s), Square(s)};
}
// [context][head_size] = [context][context] * [context][head_size].
MatmulShape InnerShape(const AttentionShape& s, MatmulMask mask, const MatrixStrides& right,
                       const MatrixStrides& out) {
  return {s.context, s.head_size(), s.context, s.batch * s.heads, s.heads, mask,
          Square(s), right,         out};
}
TransposeShape HeadTranspose(const AttentionShape& s) {
  return {s.context, s.head_size(), s.batch * s.heads, s.heads, PartOfQkv(s), TransposedHead(s)};
}

}  // namespace

Tensor Ops::AttentionProbabilities(const AttentionShape& shape, const float* qkv) const {
  Tensor scores(shape.matrix());
  {
    const Tensor keys = Transposed(qkv + shape.width, HeadTranspose(shape));
    Matmul(Form::kPlain, {qkv, keys.data(), scores.data()}, OuterShape(shape, PartOfQkv(shape)));
  }
  Tensor probabilities(shape.matrix());
  const int rows = shape.rows() * shape.heads;
  Check(Launch(GptSoftmaxForward, Rows(rows, stream_), scores.data(), probabilities.data(), rows,
               shape.context, 1.0f / shape.head_size_root()),
        "launch of GptSoftmaxForward");
  return probabilities;
}

void Ops::AttentionOutput(const AttentionShape& shape, const float* probabilities, const float* qkv,
                          float* out) const {
  Matmul(Form::kPlain, {probabilities, qkv + 2 * shape.width, out},
         InnerShape(shape, kLowerA, PartOfQkv(shape), PartOfOutput(shape)));
}

Tensor Ops::AttentionBackward(const AttentionShape& shape, Tensor probabilities, const float* qkv,
                              const float* d_out) const {
  Tensor d_qkv(3 * static_cast<size_t>(shape.rows()) * shape.width);
  float* d_keys = d_qkv.data() + shape.width;
  float* d_values = d_qkv.data() + 2 * shape.width;
  Matmul(Form::kTransposedA, {probabilities.data(), d_out, d_values},
         InnerShape(shape, kLowerATransposed, PartOfOutput(shape), PartOfQkv(shape)));

  Tensor d_probabilities(shape.matrix());
  {
    const Tensor values = Transposed(qkv + 2 * shape.width, HeadTranspose(shape));
    Matmul(Form::kPlain, {d_out, values.data(), d_probabilities.data()},
           OuterShape(shape, PartOfOutput(shape)));
  }
  Tensor d_scores(shape.matrix());
  const int rows = shape.rows() * shape.heads;
  Check(
      Launch(GptSoftmaxBackward, Rows(rows, stream_), probabilities.data(), d_probabilities.data(),
             d_scores.data(), rows, shape.context, 1.0f / shape.head_size_root()),
      "launch of GptSoftmaxBackward");
  probabilities.Free();
  d_probabilities.Free();

  Matmul(Form::kPlain, {d_scores.data(), qkv + shape.width, d_qkv.data()},
         InnerShape(shape, kLowerA, PartOfQkv(shape), PartOfQkv(shape)));
  Matmul(Form::kTransposedA, {d_scores.data(), qkv, d_keys},
         InnerShape(shape, kLowerATransposed, PartOfQkv(shape), PartOfQkv(shape)));
  return d_qkv;
}

}  // namespace chargpt
