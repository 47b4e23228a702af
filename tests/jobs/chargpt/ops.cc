#include "tests/jobs/chargpt/ops.h"

#include "kernels/launch.h"
#include "tests/jobs/chargpt/elementwise.h"
#include "tests/jobs/chargpt/embedding.h"
#include "tests/jobs/chargpt/loss.h"
#include "tests/jobs/chargpt/norm.h"

namespace chargpt {
namespace {

using tidemark::kernels::Launch;
using tidemark::kernels::LaunchShape;

constexpr unsigned kThreads = 128;

unsigned Blocks(size_t items, unsigned per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

// One thread per item.
LaunchShape Line(size_t items, cudaStream_t stream) {
  return {dim3(Blocks(items, kThreads)), dim3(kThreads), stream};
}

// One thread per cell of a rectangle.
LaunchShape Plane(int columns, int rows, int batches, cudaStream_t stream) {
  const unsigned x = columns < 8 ? columns : 8;
  const unsigned y = rows < 16 ? rows : 16;
  return {dim3(Blocks(columns, x), Blocks(rows, y), batches), dim3(x, y), stream};
}

// One matrix, not batched.
MatrixStrides Flat(int row) { return {row, 0, 0}; }

}  // namespace

void Ops::Matmul(Form form, const Operands& operands, const MatmulShape& shape) const {
  const LaunchShape launch = Plane((shape.n + kTileColumns - 1) / kTileColumns,
                                   (shape.m + kTileRows - 1) / kTileRows, shape.batches, stream_);
  if (form == Form::kPlain) {
    Check(Launch(GptMatmul, launch, operands.a, operands.b, operands.bias, operands.c, shape),
          "launch of GptMatmul");
  } else {
    Check(Launch(GptMatmulTransposedA, launch, operands.a, operands.b, operands.c, shape),
          "launch of GptMatmulTransposedA");
  }
}

Tensor Ops::Transposed(const float* in, const TransposeShape& shape) const {
  Tensor out(static_cast<size_t>(shape.rows) * shape.columns * shape.batches);
  const LaunchShape launch = Plane(shape.columns, shape.rows, shape.batches, stream_);
  Check(Launch(GptTranspose, launch, in, out.data(), shape), "launch of GptTranspose");
  return out;
}

void Ops::Linear(const float* in, const Tensor& weight, const Tensor& bias, float* out,
                 int rows) const {
  const int to = static_cast<int>(bias.size());
  const int from = static_cast<int>(weight.size() / bias.size());
  Matmul(Form::kPlain, {in, weight.data(), out, bias.data()},
         {rows, to, from, 1, 1, kFull, Flat(from), Flat(to), Flat(to)});
}

Tensor Ops::LinearBackward(const float* in, const Tensor& weight, const float* d_out, int rows,
                           LinearGradients gradients) const {
  const int to = static_cast<int>(gradients.bias.size());
  const int from = static_cast<int>(weight.size()) / to;
  Check(Launch(GptColumnSum, Line((to + 7) / 8, stream_), d_out, gradients.bias.data(), rows, to),
        "launch of GptColumnSum");
  Matmul(Form::kTransposedA, {in, d_out, gradients.weight.data()},
         {from, to, rows, 1, 1, kFull, Flat(from), Flat(to), Flat(to)});
  Tensor turned = Transposed(weight.data(), {from, to, 1, 1, Flat(to), Flat(from)});
  Tensor d_in(static_cast<size_t>(rows) * from);
  Matmul(Form::kPlain, {d_out, turned.data(), d_in.data()},
         {rows, from, to, 1, 1, kFull, Flat(to), Flat(from), Flat(from)});
  return d_in;
}

Ops::Norm Ops::NormForward(const float* in, const Tensor& gain, const Tensor& bias,
                           int rows) const {
  const int width = static_cast<int>(gain.size());
  Norm norm = {Tensor(static_cast<size_t>(rows) * width), Tensor(rows), Tensor(rows)};
  Check(Launch(GptNormForward, Line(rows, stream_), in, gain.data(), bias.data(), norm.out.data(),
               norm.mean.data(), norm.rstd.data(), rows, width),
        "launch of GptNormForward");
  return norm;
}

Tensor Ops::NormBackward(const float* in, const Tensor& gain, const Norm& saved,
                         const Incoming& incoming, NormGradients gradients) const {
  const int width = static_cast<int>(gain.size());
  const int rows = static_cast<int>(saved.mean.size());
  Tensor d_in(static_cast<size_t>(rows) * width);
  Check(Launch(GptNormBackward, Line(rows, stream_), in, gain.data(), saved.mean.data(),
               saved.rstd.data(), incoming.out, incoming.residual, d_in.data(), rows, width),
        "launch of GptNormBackward");
  Check(Launch(GptNormParameterBackward, Line(width, stream_), in, saved.mean.data(),
               saved.rstd.data(), incoming.out, gradients.gain.data(), gradients.bias.data(), rows,
               width),
        "launch of GptNormParameterBackward");
  return d_in;
}

void Ops::GeluForward(const Tensor& in, Tensor& out) const {
  Check(Launch(GptGeluForward, Line((in.size() + kRun - 1) / kRun, stream_), in.data(), out.data(),
               static_cast<long long>(in.size())),
        "launch of GptGeluForward");
}

void Ops::GeluBackward(const Tensor& in, const Tensor& d_out, Tensor& d_in) const {
  Check(Launch(GptGeluBackward, Line((in.size() + kRun - 1) / kRun, stream_), in.data(),
               d_out.data(), d_in.data(), static_cast<long long>(in.size())),
        "launch of GptGeluBackward");
}

void Ops::Add(const Tensor& a, const Tensor& b, Tensor& out) const {
  Check(Launch(GptAdd, Line((a.size() + kRun - 1) / kRun, stream_), a.data(), b.data(), out.data(),
               static_cast<long long>(a.size())),
        "launch of GptAdd");
}

void Ops::Embed(const EmbedShape& shape, const int* tokens, const Tensor& token_table,
                const Tensor& position_table, Tensor& out) const {
  Check(Launch(GptEmbed, Line(shape.rows(), stream_), tokens, token_table.data(),
               position_table.data(), out.data(), shape.rows(), shape.context, shape.width),
        "launch of GptEmbed");
}

void Ops::EmbedBackward(const EmbedShape& shape, const int* tokens, const Tensor& d_out,
                        Tensor& d_token_table, Tensor& d_position_table) const {
  Check(
      Launch(GptEmbedTokenBackward, Plane((shape.width + 7) / 8, shape.symbols, 1, stream_), tokens,
             d_out.data(), d_token_table.data(), shape.rows(), shape.symbols, shape.width),
      "launch of GptEmbedTokenBackward");
  Check(Launch(GptEmbedPositionBackward, Plane(shape.width, shape.context, 1, stream_),
               d_out.data(), d_position_table.data(), shape.batch, shape.context, shape.width),
        "launch of GptEmbedPositionBackward");
}

Tensor Ops::LossForward(const Tensor& logits, const int* targets, float* mean, int rows) const {
  const int symbols = static_cast<int>(logits.size() / rows);
  Tensor probabilities(logits.size());
  Tensor losses(rows);
  Check(Launch(GptLossForward, Line(rows, stream_), logits.data(), targets, probabilities.data(),
               losses.data(), rows, symbols),
        "launch of GptLossForward");
  Check(Launch(GptLossMean, {dim3(1), dim3(kMeanThreads), stream_}, losses.data(), mean, rows),
        "launch of GptLossMean");
  return probabilities;
}

void Ops::LossBackward(const Tensor& probabilities, const int* targets, Tensor& d_logits,
                       int rows) const {
  const int symbols = static_cast<int>(probabilities.size() / rows);
  Check(Launch(GptLossBackward, Line(rows, stream_), probabilities.data(), targets, d_logits.data(),
               rows, symbols),
        "launch of GptLossBackward");
}

void Ops::AdamW(Tensor& value, const Tensor& gradient, Tensor& moment1, Tensor& moment2,
                const AdamWStep& step) const {
  Check(Launch(GptAdamW, Line((value.size() + kAdamWRun - 1) / kAdamWRun, stream_), value.data(),
               gradient.data(), moment1.data(), moment2.data(),
               static_cast<long long>(value.size()), step),
        "launch of GptAdamW");
}

}  // namespace chargpt
