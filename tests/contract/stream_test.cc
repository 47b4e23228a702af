// Streams and events: order within a stream, order between streams, the two default streams, host
// functions, and what is refused. No test depends on work being slow.

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class StreamContract : public ContractTest {
 public:
  void TearDown() override {
    cudaGetLastError();
    ContractTest::TearDown();
  }
};

constexpr int kCount = 3000;

TEST_F(StreamContract, WorkOfOneStreamRunsInOrder) {
  Stream stream;
  DeviceWords device(Same(kCount, 1));
  unsigned want = 1;
  for (unsigned step = 1; step <= 50; ++step) {
    RT_OK(Affine(device.get(), 3, step, kCount, stream));
    want = want * 3 + step;
  }
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, want));
}

TEST_F(StreamContract, AnEventOrdersTwoStreams) {
  Stream producer;
  Stream consumer;
  Event ready(cudaEventDisableTiming);
  Event taken(cudaEventDisableTiming);
  DeviceWords source(Same(kCount, 0));
  DeviceWords sum(Same(kCount, 0));
  unsigned want = 0;
  for (unsigned step = 1; step <= 20; ++step) {
    RT_OK(cudaStreamWaitEvent(producer, taken, 0));
    RT_OK(Fill(source.get(), step, kCount, producer));
    RT_OK(cudaEventRecord(ready, producer));
    RT_OK(cudaStreamWaitEvent(consumer, ready, 0));
    RT_OK(tidemark::kernels::Launch(ContractAdd, ShapeFor(kCount, consumer), sum.get(),
                                    source.get(), sum.get(), kCount));
    RT_OK(cudaEventRecord(taken, consumer));
    want += step;
  }
  RT_OK(cudaStreamSynchronize(consumer));
  EXPECT_EQ(sum.Read(), Same(kCount, want));
}

TEST_F(StreamContract, AWaitMeansTheRecordBeforeIt) {
  Stream first;
  Stream second;
  Event event;
  DeviceWords source(Same(kCount, 1));
  DeviceWords copy(kCount);
  RT_OK(Fill(source.get(), 2, kCount, first));
  RT_OK(cudaEventRecord(event, first));
  RT_OK(cudaStreamWaitEvent(second, event, 0));
  RT_OK(cudaEventRecord(event, second));  // moves the event, not the wait
  RT_OK(
      cudaMemcpyAsync(copy.get(), source.get(), source.bytes(), cudaMemcpyDeviceToDevice, second));
  RT_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(copy.Read(), Same(kCount, 2));
}

TEST_F(StreamContract, AnEventNeverRecordedHoldsNothingUp) {
  Stream stream;
  Event event;
  RT_OK(cudaStreamWaitEvent(stream, event, 0));
  RT_OK(cudaEventQuery(event));
  RT_OK(cudaEventSynchronize(event));
  RT_OK(cudaStreamSynchronize(stream));
}

TEST_F(StreamContract, SynchronisingAnEventFinishesWhatCameBeforeIt) {
  Stream stream;
  Event event;
  Pinned<unsigned> host(kCount);
  DeviceWords device(Same(kCount, 4));
  RT_OK(Affine(device.get(), 5, 6, kCount, stream));
  RT_OK(cudaMemcpyAsync(host.get(), device.get(), device.bytes(), cudaMemcpyDeviceToHost, stream));
  RT_OK(cudaEventRecord(event, stream));
  RT_OK(cudaEventSynchronize(event));
  EXPECT_EQ(host[0], 26u);
  EXPECT_EQ(host[kCount - 1], 26u);
  RT_OK(cudaEventQuery(event));
}

TEST_F(StreamContract, QueriesEndInSuccess) {
  Stream stream;
  DeviceWords device(kCount);
  RT_OK(Fill(device.get(), 1, kCount, stream));
  const cudaError_t early = cudaStreamQuery(stream);
  EXPECT_TRUE(early == cudaSuccess || early == cudaErrorNotReady) << cudaGetErrorName(early);
  RT_OK(cudaStreamSynchronize(stream));
  RT_OK(cudaStreamQuery(stream));
}

TEST_F(StreamContract, PollingAloneFinishesWork) {
  Stream stream;
  Event event(cudaEventDisableTiming);
  DeviceWords device(kCount);
  RT_OK(Fill(device.get(), 1, kCount, stream));
  RT_OK(cudaEventRecord(event, stream));
  cudaError_t code = cudaErrorNotReady;
  for (long polls = 0; code == cudaErrorNotReady && polls < 100'000'000; ++polls) {
    code = cudaEventQuery(event);
  }
  EXPECT_RT(cudaSuccess, code);
}

TEST_F(StreamContract, ElapsedTimeIsNotNegative) {
  Stream stream;
  Event start;
  Event end;
  DeviceWords device(kCount);
  RT_OK(cudaEventRecord(start, stream));
  for (int i = 0; i < 10; ++i) RT_OK(Fill(device.get(), 1, kCount, stream));
  RT_OK(cudaEventRecord(end, stream));
  RT_OK(cudaEventSynchronize(end));
  float milliseconds = -1;
  RT_OK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT_GE(milliseconds, 0.0f);
  RT_OK(cudaEventElapsedTime(&milliseconds, start, start));
  EXPECT_EQ(milliseconds, 0.0f);
}

TEST_F(StreamContract, TimeNeedsEventsThatKeepIt) {
  Stream stream;
  Event start;
  Event untimed(cudaEventDisableTiming);
  Event never;
  float milliseconds = 0;
  RT_OK(cudaEventRecord(start, stream));
  RT_OK(cudaEventRecord(untimed, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_RT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, untimed));
  EXPECT_RT(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, never));
}

TEST_F(StreamContract, UnknownFlagsAreRefused) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  EXPECT_RT(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 0x100));
  EXPECT_RT(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, 0x100));
}

TEST_F(StreamContract, AStreamKnowsItself) {
  cudaStream_t made = nullptr;
  int least = 0;
  int greatest = 0;
  RT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  RT_OK(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, greatest));
  unsigned flags = 99;
  int priority = 99;
  int device = -1;
  unsigned long long id = 0;
  RT_OK(cudaStreamGetFlags(made, &flags));
  RT_OK(cudaStreamGetPriority(made, &priority));
  RT_OK(cudaStreamGetDevice(made, &device));
  RT_OK(cudaStreamGetId(made, &id));
  EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
  EXPECT_EQ(priority, greatest);
  EXPECT_EQ(device, 0);
  Stream other;
  unsigned long long other_id = 0;
  RT_OK(cudaStreamGetId(other, &other_id));
  EXPECT_NE(id, other_id);
  RT_OK(cudaStreamDestroy(made));
}

TEST_F(StreamContract, DefaultStreamCannotBeDestroyed) {
  EXPECT_RT(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
  EXPECT_RT(cudaErrorInvalidResourceHandle, cudaEventDestroy(nullptr));
  EXPECT_RT(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, nullptr));
}

TEST_F(StreamContract, DestroyingAStreamLosesNoWork) {
  DeviceWords device(Same(kCount, 1));
  {
    Stream stream;
    for (int i = 0; i < 10; ++i) RT_OK(Affine(device.get(), 2, 0, kCount, stream));
  }
  RT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(device.Read(), Same(kCount, 1024));
}

TEST_F(StreamContract, DestroyingAnEventLosesNoWait) {
  Stream first;
  Stream second;
  DeviceWords device(Same(kCount, 1));
  {
    Event event;
    RT_OK(Affine(device.get(), 0, 5, kCount, first));
    RT_OK(cudaEventRecord(event, first));
    RT_OK(cudaStreamWaitEvent(second, event, 0));
  }
  RT_OK(Affine(device.get(), 2, 0, kCount, second));
  RT_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(device.Read(), Same(kCount, 10));
}

TEST_F(StreamContract, LegacyStreamComesAfterBlockingStreams) {
  Stream blocking(cudaStreamDefault);
  DeviceWords device(Same(kCount, 1));
  RT_OK(Affine(device.get(), 0, 7, kCount, blocking));
  RT_OK(Affine(device.get(), 3, 0, kCount, nullptr));
  RT_OK(cudaStreamSynchronize(nullptr));
  EXPECT_EQ(device.Read(), Same(kCount, 21));
}

TEST_F(StreamContract, BlockingStreamsComeAfterTheLegacyStream) {
  Stream first(cudaStreamDefault);
  Stream second(cudaStreamDefault);
  DeviceWords device(Same(kCount, 1));
  RT_OK(Affine(device.get(), 0, 7, kCount, first));
  RT_OK(Affine(device.get(), 3, 1, kCount, cudaStreamLegacy));
  RT_OK(Affine(device.get(), 2, 0, kCount, second));
  RT_OK(cudaStreamSynchronize(second));
  EXPECT_EQ(device.Read(), Same(kCount, 44));
}

TEST_F(StreamContract, PerThreadStreamIsAStreamOfItsThread) {
  DeviceWords mine(Same(kCount, 1));
  DeviceWords theirs(Same(kCount, 1));
  RT_OK(cudaDeviceSynchronize());
  RT_OK(Affine(mine.get(), 2, 0, kCount, cudaStreamPerThread));
  std::thread([&] {
    RT_OK(Affine(theirs.get(), 3, 0, kCount, cudaStreamPerThread));
    RT_OK(Affine(theirs.get(), 1, 4, kCount, cudaStreamPerThread));
    RT_OK(cudaStreamSynchronize(cudaStreamPerThread));
  }).join();
  RT_OK(Affine(mine.get(), 1, 5, kCount, cudaStreamPerThread));
  RT_OK(cudaStreamSynchronize(cudaStreamPerThread));
  EXPECT_EQ(mine.Read(), Same(kCount, 7));
  EXPECT_EQ(theirs.Read(), Same(kCount, 7));
}

TEST_F(StreamContract, PerThreadStreamWaitsForTheLegacyStream) {
  DeviceWords device(Same(kCount, 1));
  RT_OK(Affine(device.get(), 0, 6, kCount, cudaStreamLegacy));
  RT_OK(Affine(device.get(), 2, 1, kCount, cudaStreamPerThread));
  RT_OK(Affine(device.get(), 3, 0, kCount, cudaStreamLegacy));
  RT_OK(cudaStreamSynchronize(cudaStreamLegacy));
  EXPECT_EQ(device.Read(), Same(kCount, 39));
}

struct Seen {
  unsigned* host;
  unsigned first = 0;
  std::atomic<int> calls{0};
};

void CUDART_CB Look(void* data) {
  auto* seen = static_cast<Seen*>(data);
  seen->first = seen->host[0];
  seen->host[1] = 55;
  seen->calls.fetch_add(1);
}

TEST_F(StreamContract, AHostFunctionStandsInItsPlaceOfTheStream) {
  Stream stream;
  Pinned<unsigned> host(2);
  host[0] = 0;
  host[1] = 0;
  Seen seen{host.get()};
  DeviceWords device(Same(2, 8));
  RT_OK(cudaMemcpyAsync(host.get(), device.get(), 4, cudaMemcpyDeviceToHost, stream));
  RT_OK(cudaLaunchHostFunc(stream, Look, &seen));
  RT_OK(cudaMemcpyAsync(device.get() + 1, host.get() + 1, 4, cudaMemcpyHostToDevice, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(seen.calls.load(), 1);
  EXPECT_EQ(seen.first, 8u);
  EXPECT_EQ(device.Read()[1], 55u);
}

void CUDART_CB AppendOne(void* data) { static_cast<std::vector<int>*>(data)->push_back(1); }
void CUDART_CB AppendTwo(void* data) { static_cast<std::vector<int>*>(data)->push_back(2); }

TEST_F(StreamContract, HostFunctionsOfOneStreamRunInOrder) {
  Stream stream;
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    RT_OK(cudaLaunchHostFunc(stream, AppendOne, &order));
    RT_OK(cudaLaunchHostFunc(stream, AppendTwo, &order));
  }
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_TRUE(order == (std::vector<int>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2}));
}

void CUDART_CB Called(cudaStream_t, cudaError_t status, void* data) {
  *static_cast<int*>(data) = static_cast<int>(status) + 1;
}

TEST_F(StreamContract, ACallbackLearnsTheStatus) {
  Stream stream;
  int result = 0;
  RT_OK(cudaStreamAddCallback(stream, Called, &result, 0));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(result, 1);
}

TEST_F(StreamContract, DeviceSynchroniseWaitsForEveryStream) {
  Stream first;
  Stream second;
  Pinned<unsigned> host(2);
  host[0] = host[1] = 0;
  DeviceWords device(Same(2, 1));
  RT_OK(Affine(device.get(), 0, 3, 1, first));
  RT_OK(cudaMemcpyAsync(host.get(), device.get(), 4, cudaMemcpyDeviceToHost, first));
  RT_OK(Affine(device.get() + 1, 0, 4, 1, second));
  RT_OK(cudaMemcpyAsync(host.get() + 1, device.get() + 1, 4, cudaMemcpyDeviceToHost, second));
  RT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(host[0], 3u);
  EXPECT_EQ(host[1], 4u);
}

TEST_F(StreamContract, AnyThreadMayWaitForAnEvent) {
  Stream stream;
  Event event;
  Pinned<unsigned> host(1);
  DeviceWords device(Same(1, 1));
  RT_OK(Affine(device.get(), 0, 12, 1, stream));
  RT_OK(cudaMemcpyAsync(host.get(), device.get(), 4, cudaMemcpyDeviceToHost, stream));
  RT_OK(cudaEventRecord(event, stream));
  unsigned seen = 0;
  std::thread([&] {
    RT_OK(cudaEventSynchronize(event));
    seen = host[0];
  }).join();
  EXPECT_EQ(seen, 12u);
}

TEST_F(StreamContract, ThreadsShareADeviceWithoutMixingWork) {
  constexpr int kThreads = 4;
  std::vector<unsigned> sums(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &sums] {
      Stream stream;
      DeviceWords device(256);
      RT_OK(cudaMemsetAsync(device.get(), 0, device.bytes(), stream));
      for (int i = 0; i < 20; ++i) {
        RT_OK(Affine(device.get(), 1, static_cast<unsigned>(t + 1), 256, stream));
      }
      RT_OK(cudaStreamSynchronize(stream));
      sums[t] = device.Read()[255];
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(sums[t], 20u * static_cast<unsigned>(t + 1));
}

// Random work on several streams, every conflict ordered by an event, against the same work done
// one after the other on the host.
class OrderedWork {
 public:
  static constexpr int kBuffers = 6;
  static constexpr int kStreams = 4;
  static constexpr int kWords = 200;

  explicit OrderedWork(unsigned seed) : random_(seed) {
    for (int i = 0; i < kBuffers; ++i) {
      device_.push_back(std::make_unique<DeviceWords>(Same(kWords, static_cast<unsigned>(i))));
      host_.push_back(static_cast<unsigned>(i));
    }
    for (int i = 0; i < kStreams; ++i) streams_.push_back(std::make_unique<Stream>());
    last_use_.resize(kBuffers);
  }

  void Step() {
    const int target = Pick(kBuffers);
    const int source = Pick(kBuffers);
    cudaStream_t stream = *streams_[Pick(kStreams)];
    WaitFor(stream, target);
    WaitFor(stream, source);
    switch (Pick(3)) {
      case 0:
        EXPECT_RT(cudaSuccess, Affine(device_[target]->get(), 3, 7, kWords, stream));
        host_[target] = host_[target] * 3 + 7;
        break;
      case 1:
        if (target == source) break;
        EXPECT_RT(cudaSuccess,
                  cudaMemcpyAsync(device_[target]->get(), device_[source]->get(),
                                  device_[source]->bytes(), cudaMemcpyDeviceToDevice, stream));
        host_[target] = host_[source];
        break;
      default:
        EXPECT_RT(cudaSuccess, tidemark::kernels::Launch(
                                   ContractAdd, ShapeFor(kWords, stream), device_[target]->get(),
                                   device_[source]->get(), device_[target]->get(), kWords));
        host_[target] += host_[source];
    }
    Used(stream, target);
    Used(stream, source);
  }

  void Check() {
    EXPECT_RT(cudaSuccess, cudaDeviceSynchronize());
    for (int i = 0; i < kBuffers; ++i) {
      EXPECT_TRUE(device_[i]->Read() == Same(kWords, host_[i])) << "buffer " << i;
    }
  }

 private:
  int Pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  void WaitFor(cudaStream_t stream, int buffer) {
    if (last_use_[buffer] == nullptr) return;
    EXPECT_RT(cudaSuccess, cudaStreamWaitEvent(stream, *last_use_[buffer], 0));
  }
  void Used(cudaStream_t stream, int buffer) {
    last_use_[buffer] = std::make_unique<Event>(cudaEventDisableTiming);
    EXPECT_RT(cudaSuccess, cudaEventRecord(*last_use_[buffer], stream));
  }

  std::mt19937 random_;
  std::vector<std::unique_ptr<DeviceWords>> device_;
  std::vector<unsigned> host_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> last_use_;
};

TEST_F(StreamContract, OrderedWorkOnManyStreamsEqualsWorkOnNone) {
  for (unsigned seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    OrderedWork work(seed);
    for (int i = 0; i < 120; ++i) work.Step();
    work.Check();
  }
}

}  // namespace
}  // namespace contract
