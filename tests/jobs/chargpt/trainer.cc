#include "tests/jobs/chargpt/trainer.h"

#include <algorithm>

namespace chargpt {
namespace {

constexpr int kWarmUpSteps = 4;

cudaStream_t MakeStream() {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

cudaEvent_t MakeEvent(unsigned flags) {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreateWithFlags(&event, flags), "cudaEventCreateWithFlags");
  return event;
}

void Record(cudaEvent_t event, cudaStream_t stream) {
  Check(cudaEventRecord(event, stream), "cudaEventRecord");
}

void Wait(cudaStream_t stream, cudaEvent_t event) {
  Check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

}  // namespace

Trainer::Trainer(const Options& options, const Text& text)
    : text_(text),
      shape_{options.layers,  options.width, options.heads,
             options.context, options.batch, text.symbol_count},
      learning_rate_(static_cast<float>(options.learning_rate)),
      random_(options.seed ^ 0x5eed5eed5eed5eedu),
      compute_(MakeStream()),
      input_(MakeStream()),
      output_(MakeStream()),
      began_(MakeEvent(cudaEventDefault)),
      ended_(MakeEvent(cudaEventDefault)),
      loss_ready_(MakeEvent(cudaEventDisableTiming)),
      model_(std::make_unique<Model>(shape_, options.seed, compute_)),
      loss_(1) {
  for (std::unique_ptr<Batch>& batch : batches_) {
    batch.reset(new Batch{PinnedArray<int>(2 * static_cast<size_t>(shape_.rows())),
                          DeviceArray<int>(), MakeEvent(cudaEventDisableTiming)});
  }
  FillNext();
}

Trainer::~Trainer() {
  model_.reset();
  for (std::unique_ptr<Batch>& batch : batches_) {
    cudaEventDestroy(batch->copied);
    batch.reset();
  }
  for (cudaEvent_t event : {began_, ended_, loss_ready_}) cudaEventDestroy(event);
  for (cudaStream_t stream : {compute_, input_, output_}) cudaStreamDestroy(stream);
}

// Draws the batch of step_ and starts its copy. Its pinned buffer was last read two steps ago.
void Trainer::FillNext() {
  Batch& batch = *batches_[step_ % 2];
  const size_t rows = shape_.rows();
  for (int b = 0; b < shape_.batch; ++b) {
    const size_t start = random_.Below(text_.symbols.size() - shape_.context);
    for (int t = 0; t < shape_.context; ++t) {
      const size_t at = static_cast<size_t>(b) * shape_.context + t;
      batch.host[at] = text_.symbols[start + t];
      batch.host[rows + at] = text_.symbols[start + t + 1];
    }
  }
  batch.device = DeviceArray<int>(batch.host.size());
  Check(cudaMemcpyAsync(batch.device.data(), batch.host.data(), batch.host.bytes(),
                        cudaMemcpyHostToDevice, input_),
        "cudaMemcpyAsync", batch.host.bytes());
  Record(batch.copied, input_);
}

float Trainer::LearningRate() const {
  return learning_rate_ * std::min(1.0f, (step_ + 1.0f) / kWarmUpSteps);
}

StepResult Trainer::Step() {
  Batch& batch = *batches_[step_ % 2];
  const float rate = LearningRate();
  Tensor loss(1);
  Wait(compute_, batch.copied);
  Record(began_, compute_);
  model_->ForwardBackward(batch.device.data(), batch.device.data() + shape_.rows(), loss.data());
  Record(loss_ready_, compute_);
  ++step_;
  FillNext();  // overlaps the update
  model_->Update(rate);
  Record(ended_, compute_);
  Wait(output_, loss_ready_);
  Check(cudaMemcpyAsync(loss_.data(), loss.data(), sizeof(float), cudaMemcpyDeviceToHost, output_),
        "cudaMemcpyAsync", sizeof(float));
  Check(cudaStreamSynchronize(output_), "cudaStreamSynchronize");
  Check(cudaEventSynchronize(ended_), "cudaEventSynchronize");
  batch.device.Free();
  StepResult result = {loss_[0], 0};
  Check(cudaEventElapsedTime(&result.device_milliseconds, began_, ended_), "cudaEventElapsedTime");
  return result;
}

uint64_t Trainer::Checksum() {
  uint64_t hash = 0xcbf29ce484222325u;
  for (Parameter* parameter : model_->Parameters()) {
    PinnedArray<float> values(parameter->value.size());
    Check(cudaMemcpyAsync(values.data(), parameter->value.data(), values.bytes(),
                          cudaMemcpyDeviceToHost, compute_),
          "cudaMemcpyAsync", values.bytes());
    Check(cudaStreamSynchronize(compute_), "cudaStreamSynchronize");
    const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (size_t i = 0; i < values.bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace chargpt
