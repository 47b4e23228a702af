// Copies and memsets of every shape against a naive model, and the host synchrony CUDA documents.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/simgpu/device.h"

namespace simgpu_tests {
namespace {

constexpr size_t kBytes = 1 << 14;

// Two device buffers and what they should hold.
struct Model {
  CUdeviceptr device[2] = {Allocate(kBytes), Allocate(kBytes)};
  std::vector<unsigned char> bytes[2] = {std::vector<unsigned char>(kBytes),
                                         std::vector<unsigned char>(kBytes)};
  CUstream stream = NewStream();
  std::mt19937 random;

  size_t Below(size_t limit) { return random() % limit; }

  void CheckEverything() {
    EXPECT_CUDA(cuStreamSynchronize(stream));
    for (int i = 0; i < 2; ++i) {
      std::vector<unsigned char> now(kBytes);
      EXPECT_CUDA(cuMemcpyDtoH(now.data(), device[i], kBytes));
      EXPECT_IN_CHILD(now == bytes[i]);
    }
  }
};

void FillRows(Model* model) {
  const size_t size = size_t{1} << model->Below(3);
  const size_t width = 1 + model->Below(20);
  const size_t height = 1 + model->Below(6);
  const size_t pitch = (width + model->Below(8)) * size;
  const size_t at = model->Below(100) * size;
  const uint32_t value = static_cast<uint32_t>(model->random());
  const CUdeviceptr to = model->device[0] + at;
  if (size == 1) {
    EXPECT_CUDA(cuMemsetD2D8Async(to, pitch, static_cast<unsigned char>(value), width, height,
                                  model->stream));
  } else if (size == 2) {
    EXPECT_CUDA(cuMemsetD2D16Async(to, pitch, static_cast<unsigned short>(value), width, height,
                                   model->stream));
  } else {
    EXPECT_CUDA(cuMemsetD2D32Async(to, pitch, value, width, height, model->stream));
  }
  for (size_t y = 0; y < height; ++y) {
    for (size_t x = 0; x < width; ++x) {
      memcpy(&model->bytes[0][at + y * pitch + x * size], &value, size);
    }
  }
}

void CopyBox(Model* model) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = model->device[0];
  copy.dstDevice = model->device[1];
  copy.WidthInBytes = 1 + model->Below(20);
  copy.Height = 1 + model->Below(5);
  copy.Depth = 1 + model->Below(4);
  copy.srcXInBytes = model->Below(8);
  copy.dstXInBytes = model->Below(8);
  copy.srcY = model->Below(3);
  copy.dstZ = model->Below(3);
  copy.srcPitch = copy.WidthInBytes + copy.srcXInBytes + model->Below(9);
  copy.dstPitch = copy.WidthInBytes + copy.dstXInBytes + model->Below(9);
  copy.srcHeight = copy.Height + copy.srcY + model->Below(2);
  copy.dstHeight = copy.Height + model->Below(2);
  EXPECT_CUDA(cuMemcpy3DAsync(&copy, model->stream));
  for (size_t z = 0; z < copy.Depth; ++z) {
    for (size_t y = 0; y < copy.Height; ++y) {
      const size_t from = (z * copy.srcHeight + y + copy.srcY) * copy.srcPitch + copy.srcXInBytes;
      const size_t to = ((z + copy.dstZ) * copy.dstHeight + y) * copy.dstPitch + copy.dstXInBytes;
      memcpy(&model->bytes[1][to], &model->bytes[0][from], copy.WidthInBytes);
    }
  }
}

void Upload(Model* model) {
  const size_t bytes = 1 + model->Below(300);
  const size_t at = model->Below(kBytes - bytes);
  std::vector<unsigned char> source(bytes);
  for (unsigned char& byte : source) byte = static_cast<unsigned char>(model->random());
  EXPECT_CUDA(cuMemcpyHtoDAsync(model->device[0] + at, source.data(), bytes, model->stream));
  memcpy(&model->bytes[0][at], source.data(), bytes);
}

void Download2D(Model* model) {
  CUDA_MEMCPY2D copy{};
  unsigned char host[16 * 16] = {};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = model->device[1];
  copy.srcPitch = 32;
  copy.srcY = model->Below(100);
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.dstPitch = 16;
  copy.WidthInBytes = 1 + model->Below(16);
  copy.Height = 1 + model->Below(16);
  // To pageable memory even the asynchronous form returns only once the bytes are there.
  EXPECT_CUDA(cuMemcpy2DAsync(&copy, model->stream));
  for (size_t y = 0; y < copy.Height; ++y) {
    EXPECT_IN_CHILD(
        memcmp(host + y * 16, &model->bytes[1][(copy.srcY + y) * 32], copy.WidthInBytes) == 0);
  }
}

void CopyLinear(Model* model) {
  const size_t bytes = 1 + model->Below(2000);
  const size_t from = model->Below(kBytes - bytes);
  const size_t to = model->Below(kBytes - bytes);
  EXPECT_CUDA(cuMemcpyAsync(model->device[0] + to, model->device[1] + from, bytes, model->stream));
  memcpy(&model->bytes[0][to], &model->bytes[1][from], bytes);
}

TEST(EngineCopy, EveryShapeAgreesWithANaiveModel) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const std::string order =
        seed % 3 == 0 ? "order=eager" : "order=adversarial,race=1,seed=" + std::to_string(seed);
    const std::string output = InChild(order, [seed] {
      Model model;
      model.random.seed(seed);
      void (*const steps[])(Model*) = {FillRows, CopyBox, Upload, Download2D, CopyLinear};
      for (int i = 0; i < 300; ++i) {
        steps[model.Below(5)](&model);
        if (i % 50 == 0) model.CheckEverything();
      }
      model.CheckEverything();
    });
    EXPECT_THAT(output, ::testing::Not(::testing::HasSubstr("race: ")));
  }
}

TEST(EngineCopy, ASynchronousDownloadWaitsAndADeviceCopyDoesNot) {
  InChild("order=adversarial,seed=1", [] {
    const CUdeviceptr a = Allocate(64);
    const CUdeviceptr b = Allocate(64);
    uint32_t* pinned = AllocatePinned(64);
    CUstream stream = nullptr;
    EXPECT_CUDA(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    EXPECT_CUDA(cuMemsetD32Async(a, 9, 16, stream));
    EXPECT_CUDA(cuMemcpyDtoD(b, a, 64));
    EXPECT_CODE(CUDA_ERROR_NOT_READY, cuEventQuery([] {
                  const CUevent event = NewEvent();
                  EXPECT_CUDA(cuEventRecord(event, nullptr));
                  return event;
                }()));
    EXPECT_CUDA(cuMemcpyDtoH(pinned, b, 64));
    EXPECT_IN_CHILD(pinned[15] == 9);
  });
}

TEST(EngineCopy, WrongSidesAndPitchesAreRefused) {
  InChild("order=eager", [] {
    uint32_t host[4] = {};
    const CUdeviceptr data = Allocate(64);
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
                cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(host), host, 16));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(data, nullptr, 16));
    EXPECT_CUDA(cuMemcpyHtoD(data, host, 0));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(data + 2, 0, 1));
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = copy.dstDevice = data;
    copy.WidthInBytes = 8;
    copy.Height = 2;
    copy.srcPitch = copy.dstPitch = 4;
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&copy));
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    EXPECT_CODE(CUDA_ERROR_NOT_SUPPORTED, cuMemcpy2D(&copy));
  });
}

TEST(EngineCopy, WaitingForAValueHoldsTheStreamBack) {
  for (const char* order : {"order=eager", "order=adversarial,seed=5"}) {
    InChild(order, [] {
      const CUdeviceptr flag = Allocate(8);
      const CUdeviceptr data = Allocate(8);
      const CUstream waiter = NewStream();
      const CUstream writer = NewStream();
      EXPECT_CUDA(cuStreamWaitValue32(waiter, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
      EXPECT_CUDA(cuMemcpyDtoDAsync(data, flag, 4, waiter));
      EXPECT_CODE(CUDA_ERROR_NOT_READY, cuStreamQuery(waiter));
      EXPECT_CUDA(cuStreamWriteValue32(writer, flag, 1, 0));
      EXPECT_CUDA(cuStreamSynchronize(waiter));
      EXPECT_IN_CHILD(Read(data, 1)[0] == 1);
    });
  }
}

}  // namespace
}  // namespace simgpu_tests
