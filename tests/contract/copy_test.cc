// Copies and memsets: every direction, size, shape and form; what they wait for; what they refuse.

#include <cstring>
#include <string>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class CopyContract : public ContractTest {
 public:
  void TearDown() override {
    cudaGetLastError();
    ContractTest::TearDown();
  }
};

std::vector<unsigned char> Pattern(size_t bytes, unsigned seed) {
  std::vector<unsigned char> data(bytes);
  unsigned state = seed * 2654435761u + 1;
  for (unsigned char& byte : data) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<unsigned char>(state >> 24);
  }
  return data;
}

class DeviceBytes {
 public:
  explicit DeviceBytes(size_t bytes) { EXPECT_RT(cudaSuccess, cudaMalloc(&data_, bytes)); }
  ~DeviceBytes() { cudaFree(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  unsigned char* get() const { return static_cast<unsigned char*>(data_); }

 private:
  void* data_ = nullptr;
};

constexpr size_t kSizes[] = {1, 3, 4, 255, 4096, 65536, 65537, (1 << 20) + 7};

TEST_F(CopyContract, BytesSurviveTheRoundTripAtEverySize) {
  for (size_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    DeviceBytes first(bytes);
    DeviceBytes second(bytes);
    const std::vector<unsigned char> sent = Pattern(bytes, 1);
    std::vector<unsigned char> back(bytes);
    RT_OK(cudaMemcpy(first.get(), sent.data(), bytes, cudaMemcpyHostToDevice));
    RT_OK(cudaMemcpy(second.get(), first.get(), bytes, cudaMemcpyDeviceToDevice));
    RT_OK(cudaMemcpy(back.data(), second.get(), bytes, cudaMemcpyDeviceToHost));
    EXPECT_TRUE(back == sent);
  }
}

TEST_F(CopyContract, QueuedCopiesOfPinnedMemoryKeepStreamOrder) {
  Stream stream;
  for (size_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    DeviceBytes first(bytes);
    DeviceBytes second(bytes);
    Pinned<unsigned char> host(bytes);
    Pinned<unsigned char> back(bytes);
    const std::vector<unsigned char> sent = Pattern(bytes, 2);
    memcpy(host.get(), sent.data(), bytes);
    RT_OK(cudaMemcpyAsync(first.get(), host.get(), bytes, cudaMemcpyHostToDevice, stream));
    RT_OK(cudaMemcpyAsync(second.get(), first.get(), bytes, cudaMemcpyDeviceToDevice, stream));
    RT_OK(cudaMemcpyAsync(back.get(), second.get(), bytes, cudaMemcpyDeviceToHost, stream));
    RT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(memcmp(back.get(), sent.data(), bytes), 0);
  }
}

TEST_F(CopyContract, PageableSourceMayChangeOnceTheQueuedCopyReturned) {
  Stream stream;
  const size_t bytes = 1 << 20;
  DeviceBytes device(bytes);
  std::vector<unsigned char> host(bytes, 1);
  std::vector<unsigned char> back(bytes);
  RT_OK(cudaMemcpyAsync(device.get(), host.data(), bytes, cudaMemcpyHostToDevice, stream));
  memset(host.data(), 2, bytes);
  RT_OK(cudaStreamSynchronize(stream));
  RT_OK(cudaMemcpy(back.data(), device.get(), bytes, cudaMemcpyDeviceToHost));
  EXPECT_TRUE(back == std::vector<unsigned char>(bytes, 1));
}

TEST_F(CopyContract, PageableTargetIsWrittenWhenTheStreamIsDone) {
  Stream stream;
  DeviceWords device(Counting(5000));
  std::vector<unsigned> back(5000);
  RT_OK(Affine(device.get(), 2, 1, 5000, stream));
  RT_OK(cudaMemcpyAsync(back.data(), device.get(), device.bytes(), cudaMemcpyDeviceToHost, stream));
  RT_OK(cudaStreamSynchronize(stream));
  for (unsigned i = 0; i < 5000; ++i) ASSERT_EQ(back[i], 2 * i + 1);
}

TEST_F(CopyContract, HostMemoryTakenAfterADeviceFreeIsTheHosts) {
  const size_t bytes = 3 << 20;
  DeviceBytes device(bytes);
  RT_OK(cudaMemset(device.get(), 7, bytes));
  for (int i = 0; i < 24; ++i) {
    { DeviceBytes gone(bytes); }
    std::vector<unsigned char> back(bytes);
    RT_OK(cudaMemcpy(back.data(), device.get(), bytes, cudaMemcpyDeviceToHost));
    ASSERT_TRUE(back == std::vector<unsigned char>(bytes, 7)) << "copy " << i;
  }
}

TEST_F(CopyContract, DefaultKindFindsTheDirection) {
  const size_t bytes = 3000;
  const std::vector<unsigned char> sent = Pattern(bytes, 3);
  std::vector<unsigned char> back(bytes);
  std::vector<unsigned char> host_copy(bytes);
  DeviceBytes first(bytes);
  DeviceBytes second(bytes);
  RT_OK(cudaMemcpy(first.get(), sent.data(), bytes, cudaMemcpyDefault));
  RT_OK(cudaMemcpy(second.get(), first.get(), bytes, cudaMemcpyDefault));
  RT_OK(cudaMemcpy(back.data(), second.get(), bytes, cudaMemcpyDefault));
  RT_OK(cudaMemcpy(host_copy.data(), back.data(), bytes, cudaMemcpyDefault));
  EXPECT_TRUE(host_copy == sent);
}

TEST_F(CopyContract, HostToHostIsACopyToo) {
  const std::vector<unsigned char> sent = Pattern(10000, 4);
  std::vector<unsigned char> back(10000);
  RT_OK(cudaMemcpy(back.data(), sent.data(), sent.size(), cudaMemcpyHostToHost));
  EXPECT_TRUE(back == sent);
}

TEST_F(CopyContract, OddOffsetsTouchNoNeighbour) {
  DeviceBytes device(64);
  unsigned char back[64];
  const std::vector<unsigned char> sent = Pattern(13, 5);
  RT_OK(cudaMemset(device.get(), 0xee, 64));
  RT_OK(cudaMemcpy(device.get() + 7, sent.data(), 13, cudaMemcpyHostToDevice));
  RT_OK(cudaMemcpy(back, device.get(), 64, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) {
    const unsigned char want = i >= 7 && i < 20 ? sent[i - 7] : 0xee;
    ASSERT_EQ(int{back[i]}, int{want}) << "at byte " << i;
  }
}

TEST_F(CopyContract, NothingIsCopiedWithoutComplaint) {
  DeviceBytes device(16);
  RT_OK(cudaMemcpy(device.get(), nullptr, 0, cudaMemcpyHostToDevice));
  RT_OK(cudaMemset(device.get(), 1, 0));
}

TEST_F(CopyContract, UnknownDirectionsAreRefused) {
  DeviceBytes device(16);
  char host[16] = {};
  EXPECT_RT(cudaErrorInvalidMemcpyDirection,
            cudaMemcpy(device.get(), host, 16, static_cast<cudaMemcpyKind>(17)));
}

TEST_F(CopyContract, RowsWiderThanTheirPitchAreRefused) {
  DeviceBytes device(4096);
  char host[256] = {};
  EXPECT_RT(cudaErrorInvalidPitchValue,
            cudaMemcpy2D(device.get(), 16, host, 64, 32, 2, cudaMemcpyHostToDevice));
}

TEST_F(CopyContract, PlanesKeepTheirRows) {
  const size_t width = 37;
  const size_t height = 11;
  const size_t host_pitch = 50;
  unsigned char* device = nullptr;
  size_t pitch = 0;
  RT_OK(cudaMallocPitch(reinterpret_cast<void**>(&device), &pitch, width, height));
  const std::vector<unsigned char> sent = Pattern(host_pitch * height, 6);
  std::vector<unsigned char> back(width * height);
  RT_OK(
      cudaMemcpy2D(device, pitch, sent.data(), host_pitch, width, height, cudaMemcpyHostToDevice));
  RT_OK(cudaMemcpy2D(back.data(), width, device, pitch, width, height, cudaMemcpyDeviceToHost));
  for (size_t y = 0; y < height; ++y) {
    EXPECT_EQ(memcmp(&back[y * width], &sent[y * host_pitch], width), 0) << "row " << y;
  }
  RT_OK(cudaFree(device));
}

TEST_F(CopyContract, BoxesKeepTheirPlanes) {
  const cudaExtent extent = {20, 6, 4};
  const std::vector<unsigned char> sent = Pattern(20 * 6 * 4, 7);
  std::vector<unsigned char> back(sent.size());
  cudaPitchedPtr box = {};
  RT_OK(cudaMalloc3D(&box, extent));
  cudaMemcpy3DParms in = {};
  in.srcPtr = {const_cast<unsigned char*>(sent.data()), 20, 20, 6};
  in.dstPtr = box;
  in.extent = extent;
  in.kind = cudaMemcpyHostToDevice;
  RT_OK(cudaMemcpy3D(&in));
  cudaMemcpy3DParms out = {};
  out.srcPtr = box;
  out.dstPtr = {back.data(), 20, 20, 6};
  out.extent = extent;
  out.kind = cudaMemcpyDeviceToHost;
  RT_OK(cudaMemcpy3D(&out));
  EXPECT_TRUE(back == sent);
  RT_OK(cudaFree(box.ptr));
}

TEST_F(CopyContract, PartOfABoxIsCopiedToItsPlace) {
  DeviceBytes device(10 * 10 * 10);
  std::vector<unsigned char> back(1000);
  const std::vector<unsigned char> sent(1000, 9);
  RT_OK(cudaMemset(device.get(), 1, 1000));
  cudaMemcpy3DParms in = {};
  in.srcPtr = {const_cast<unsigned char*>(sent.data()), 10, 10, 10};
  in.dstPtr = {device.get(), 10, 10, 10};
  in.srcPos = {1, 1, 1};
  in.dstPos = {2, 3, 4};
  in.extent = {5, 4, 3};
  in.kind = cudaMemcpyHostToDevice;
  RT_OK(cudaMemcpy3D(&in));
  RT_OK(cudaMemcpy(back.data(), device.get(), 1000, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; ++i) {
    const int x = i % 10;
    const int y = i / 10 % 10;
    const int z = i / 100;
    const bool inside = x >= 2 && x < 7 && y >= 3 && y < 7 && z >= 4 && z < 7;
    ASSERT_EQ(int{back[i]}, inside ? 9 : 1) << "at " << x << "," << y << "," << z;
  }
}

TEST_F(CopyContract, MemsetsOfEveryWidthFillTheirRangeOnly) {
  DeviceWords device(Same(8, 0x11111111));
  CU_OK(CU(cuMemsetD8)(Address(device.get() + 1), 0xab, 4));
  CU_OK(CU(cuMemsetD16)(Address(device.get() + 3), 0xcdef, 2));
  CU_OK(CU(cuMemsetD32)(Address(device.get() + 5), 0x12345678, 2));
  CU_OK(CU(cuCtxSynchronize)());
  const std::vector<unsigned> want = {0x11111111, 0xabababab, 0x11111111, 0xcdefcdef,
                                      0x11111111, 0x12345678, 0x12345678, 0x11111111};
  EXPECT_EQ(device.Read(), want);
}

TEST_F(CopyContract, MisalignedMemsetsAreRefused) {
  DeviceBytes device(64);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD32)(Address(device.get() + 2), 1, 2));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemsetD16)(Address(device.get() + 1), 1, 2));
}

TEST_F(CopyContract, PlaneMemsetsSpareThePadding) {
  DeviceBytes device(16 * 4);
  std::vector<unsigned char> back(64);
  RT_OK(cudaMemset(device.get(), 1, 64));
  RT_OK(cudaMemset2D(device.get() + 2, 16, 7, 10, 4));
  RT_OK(cudaMemcpy(back.data(), device.get(), 64, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) {
    const bool inside = i % 16 >= 2 && i % 16 < 12;
    ASSERT_EQ(int{back[i]}, inside ? 7 : 1) << "at byte " << i;
  }
}

TEST_F(CopyContract, QueuedMemsetKeepsStreamOrder) {
  Stream stream;
  DeviceWords device(Same(1000, 5));
  RT_OK(cudaMemsetAsync(device.get(), 0, device.bytes(), stream));
  RT_OK(Affine(device.get(), 1, 9, 1000, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(1000, 9));
}

TEST_F(CopyContract, AWaitingCopySeesTheKernelBeforeIt) {
  DeviceWords device(Same(4096, 1));
  for (unsigned round = 0; round < 20; ++round) {
    RT_OK(Affine(device.get(), 1, 1, 4096));
    unsigned word = 0;
    RT_OK(cudaMemcpy(&word, device.get() + 4095, sizeof(word), cudaMemcpyDeviceToHost));
    ASSERT_EQ(word, round + 2);
  }
}

TEST_F(CopyContract, ManyCopiesCanBeOneCall) {
  Stream stream;
  constexpr size_t kCount = 5;
  DeviceWords device(kCount * 100);
  Pinned<unsigned> host(kCount * 100);
  for (unsigned i = 0; i < kCount * 100; ++i) host[i] = i;
  void* targets[kCount];
  const void* sources[kCount];
  size_t sizes[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    targets[i] = device.get() + 100 * i;
    sources[i] = host.get() + 100 * (kCount - 1 - i);
    sizes[i] = 100 * sizeof(unsigned);
  }
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  size_t first = 0;
  const cudaError_t code =
      cudaMemcpyBatchAsync(targets, sources, sizes, kCount, &attributes, &first, 1, stream);
  if (code == cudaErrorNotSupported) GTEST_SKIP() << "needs batched copies";
  RT_OK(code);
  RT_OK(cudaStreamSynchronize(stream));
  const std::vector<unsigned> back = device.Read();
  for (unsigned i = 0; i < kCount * 100; ++i) {
    ASSERT_EQ(back[i], (kCount - 1 - i / 100) * 100 + i % 100);
  }
}

TEST_F(CopyContract, BytesCrossBetweenDevices) {
  if (DeviceCount() < 2) GTEST_SKIP() << "needs two devices";
  const std::vector<unsigned> words = Counting(5000, 3);
  DeviceWords first(words);
  RT_OK(cudaSetDevice(1));
  {
    DeviceWords second(5000);
    RT_OK(cudaMemcpyPeer(second.get(), 1, first.get(), 0, first.bytes()));
    EXPECT_EQ(second.Read(), words);
    RT_OK(cudaMemset(second.get(), 0, second.bytes()));
    RT_OK(cudaMemcpy(second.get(), first.get(), first.bytes(), cudaMemcpyDefault));
    EXPECT_EQ(second.Read(), words);
  }
  RT_OK(cudaSetDevice(0));
}

TEST_F(CopyContract, PeerAccessIsEnabledOnce) {
  int can = 0;
  if (DeviceCount() < 2) GTEST_SKIP() << "needs two devices";
  RT_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can == 0) GTEST_SKIP() << "needs two devices that reach each other";
  RT_OK(cudaSetDevice(1));
  DeviceWords far(Same(1000, 4));
  RT_OK(cudaSetDevice(0));
  RT_OK(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_RT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
  RT_OK(Affine(far.get(), 2, 1, 1000));
  RT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(far.Read(), Same(1000, 9));
  RT_OK(cudaDeviceDisablePeerAccess(1));
  EXPECT_RT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
}

}  // namespace
}  // namespace contract
