// The training loop: batches copied ahead of use on one stream, compute on a second, losses copied
// back on a third, ordered by events alone.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_TRAINER_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_TRAINER_H_

#include <cstdint>
#include <memory>

#include "tests/jobs/chargpt/model.h"
#include "tests/jobs/chargpt/options.h"
#include "tests/jobs/chargpt/random.h"
#include "tests/jobs/chargpt/text.h"

namespace chargpt {

struct StepResult {
  float loss;
  float device_milliseconds;
};

class Trainer {
 public:
  Trainer(const Options& options, const Text& text);
  ~Trainer();

  // One training step; waits for its loss.
  StepResult Step();

  // FNV-1a over the bits of every parameter.
  uint64_t Checksum();

 private:
  // A batch on its way: pinned source and device destination.
  struct Batch {
    PinnedArray<int> host;
    DeviceArray<int> device;  // tokens, then targets
    cudaEvent_t copied;
  };

  void FillNext();
  float LearningRate() const;

  const Text& text_;
  const ModelShape shape_;
  const float learning_rate_;
  Random random_;
  cudaStream_t compute_, input_, output_;
  cudaEvent_t began_, ended_, loss_ready_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Batch> batches_[2];
  PinnedArray<float> loss_;
  int step_ = 0;
};

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_TRAINER_H_
