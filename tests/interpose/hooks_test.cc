// What the hooks do with a call when the memory side is active: who is asked, in which order, and
// that each allocation is seen exactly once by whichever seam it comes through.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/interpose/program_run.h"

namespace tidemark::interpose {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Outcome Under(const std::string& command, const std::string& more = "") {
  return RunProgram(command, Preloaded(RECORDING_PRELOAD) + Driver("driver") + more);
}

TEST(HooksTest, EachCallPassesTheGateOnceAndReachesTheDriverOnce) {
  Outcome run = Under("hook_probe");
  EXPECT_EQ(run.exit, 0) << run.output;
  for (const char* part : {
           "cuInit\nmemory:start\ncuInit\nmemory:alloc 1000\nmemory:pitch 100 10\n"
           "memory:alloc 2147483648\n",
           "gate:spans 0x0 2\ngate:reads 520000000000 100\ngate:writes 510000000000 "
           "100\ncuMemcpy\n",
           "gate:spans 0x0 1\ngate:writes 510000000000 64\ncuMemcpyHtoD_v2\nmemory:table 64\n",
           "gate:spans 0x20 1\ngate:writes 510000000000 64\ncuMemcpyHtoDAsync_v2\n",
           "gate:spans 0x2 1\ngate:writes 510000000000 4\ncuMemcpyHtoDAsync_v2_ptsz\ngate:",
           "gate:spans 0x0 1\ngate:reads 510000000000 64\ncuMemcpyDtoH_v2\n",
           "gate:spans 0x0 2\ngate:reads 510000000110 544\ngate:writes 0 0\ncuMemcpy2D_v2\n",
           "gate:spans 0x20 4\n",
           "gate:spans 0x0 1\ngate:writes 510000000000 40\ncuMemsetD32_v2\n",
           "gate:spans 0x2 1\ngate:writes 510000000000 10\ncuMemsetD8_v2_ptds\n",
           "gate:spans 0x20 1\ngate:writes 510000000000 208\ncuMemsetD2D16Async\n",
           "gate:kernel 0x20 0x30\ncuLaunchKernelEx\n",
           "gate:graph 0x20 0x40\ncuGraphLaunch\n",
           "memory:pin 510000000000 4 3\ngate:spans 0x20 1\n",
       }) {
    EXPECT_THAT(run.Log(), HasSubstr(part));
  }
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 0) << "served by the arena";
  EXPECT_EQ(run.Count("memory:start"), 1) << "cuInit came twice";
}

TEST(HooksTest, AnswersAreTheMemorySides) {
  Outcome run = Under("hook_probe");
  EXPECT_THAT(run.output, HasSubstr("alloc=0 arena=1 too_much=2\n"));
  EXPECT_THAT(run.output, HasSubstr("range=4096 capable=1 free=1000 total=2000\n"));
}

TEST(HooksTest, MemoryOfTheDriverIsCountedAndUncounted) {
  Outcome run = Under("hook_probe");
  EXPECT_THAT(run.Log(), HasSubstr("memory:room 0 300\ncuMemAllocManaged\nmemory:count 0 300 1\n"));
  EXPECT_THAT(run.Log(), HasSubstr("memory:room 1 2097152\ncuMemCreate\nmemory:count 1 2097152 1\n"
                                   "memory:room 1 2147483648\n"
                                   "cuMemRelease\nmemory:count 1 2097152 -1\n"
                                   "cuMemCreate\ncuMemRelease\n"));
  EXPECT_THAT(run.output, HasSubstr("refused=2\n"));
}

TEST(HooksTest, MemoryIsCountedUntilItsLastMappingIsGone) {
  Outcome run = Under("hook_probe");
  EXPECT_THAT(run.Log(), HasSubstr("memory:room 1 4194304\ncuMemCreate\nmemory:count 1 4194304 1\n"
                                   "cuMemMap\ncuMemRelease\n"
                                   "cuMemUnmap\nmemory:count 1 4194304 -1\n"));
}

TEST(HooksTest, HostMemoryOfTheJobIsCountedAndNeverRefused) {
  Outcome run = Under("hook_probe");
  EXPECT_THAT(run.Log(), HasSubstr("memory:host 0 5000 1\n"));
  EXPECT_THAT(run.Log(), HasSubstr("memory:host 0 64 1\n"));
  EXPECT_THAT(run.Log(), HasSubstr("cuMemHostUnregister\nmemory:host 0 64 -1\n"
                                   "cuMemFreeHost\nmemory:host 0 5000 -1\n"));
}

TEST(HooksTest, MipmapsAreChargedWithAllLevelsAndPoolsAndGraphsAnnounced) {
  Outcome run = Under("hook_probe");
  EXPECT_THAT(run.Log(), HasSubstr("memory:room 0 320\ncuMipmappedArrayCreate\n"
                                   "memory:count 0 320 1\n"
                                   "cuMipmappedArrayDestroy\nmemory:count 0 320 -1\n"));
  EXPECT_THAT(run.Log(), HasSubstr("cuDeviceSetMemPool\n"));
  EXPECT_THAT(run.Log(), HasSubstr("memory:own_pool 0 1\n"));
  EXPECT_THAT(run.Log(), HasSubstr("memory:graph_allocates\ncuGraphAddMemAllocNode\n"));
}

TEST(HooksTest, AnErrorThatEndsTheContextIsNoted) {
  Outcome well = Under("hook_probe");
  EXPECT_EQ(well.Count("memory:broken_context"), 0);
  Outcome broken = Under("hook_probe", "FAKE_BROKEN_CONTEXT=1");
  EXPECT_EQ(broken.Count("memory:broken_context"), 3);
}

TEST(HooksTest, StreamsCapturesAndContextsAreAnnounced) {
  Outcome run = Under("hook_probe");
  EXPECT_THAT(run.Log(), HasSubstr("cuStreamCreate\nmemory:stream\n"
                                   "cuStreamBeginCapture_v2\nmemory:capture\n"
                                   "cuStreamEndCapture\nmemory:capture_end\n"
                                   "memory:stream_end\ncuStreamDestroy_v2\n"
                                   "cuCtxEnablePeerAccess\nmemory:peer 1\n"
                                   "memory:context_end\ncuCtxDestroy_v2\nmemory:free\n"));
}

TEST(HooksTest, DisabledLibraryForwardsEverything) {
  Outcome run = Under("hook_probe", "TIDEMARK_DISABLE=1");
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.Log(), Not(HasSubstr("memory:")));
  EXPECT_THAT(run.Log(), Not(HasSubstr("gate:")));
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 2);
}

TEST(HooksTest, RuntimeAllocationIsServedOnceByTheShortPath) {
  Outcome run = Under("runtime_probe");
  EXPECT_THAT(run.output, HasSubstr("malloc=0 async=0 info=0,1000,2000 last=0\n"));
  EXPECT_THAT(run.output, HasSubstr("free=0 free_async=0\n"));
  // The first call starts the runtime; from then on the short path serves.
  EXPECT_EQ(run.Count("runtime:cudaMalloc"), 1);
  EXPECT_EQ(run.Count("memory:alloc 4096"), 1);
  EXPECT_EQ(run.Count("memory:alloc_async 4096 0x0"), 1);
  EXPECT_EQ(run.Count("runtime:cudaMallocAsync"), 0);
  EXPECT_EQ(run.Count("memory:free"), 2);
  EXPECT_EQ(run.Count("runtime:cudaFree"), 0);
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 0);
}

TEST(HooksTest, OutOfMemoryIsAskedOnceAndReachesTheRuntimesErrorState) {
  Outcome run = Under("runtime_probe 2147483648");
  EXPECT_THAT(run.output, HasSubstr("malloc=2 async=2"));
  EXPECT_THAT(run.output, HasSubstr("last=2\n"));
  EXPECT_EQ(run.Count("memory:alloc 2147483648"), 1) << run.Log();
  EXPECT_EQ(run.Count("memory:alloc_async 2147483648 0x0"), 1) << run.Log();
  EXPECT_EQ(run.Count("runtime:cudaMallocAsync"), 1);
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 0);
}

TEST(HooksTest, EachAllocationFamilyOfTheRuntimeIsSeenExactlyOnce) {
  Outcome run =
      RunProgram("runtime_families",
                 Preloaded(RECORDING_PRELOAD) + "LD_LIBRARY_PATH=" + SIMGPU + " SIMGPU=devices=1");
  EXPECT_THAT(run.output, HasSubstr("plain=0 ordered=0 pitched=0 managed=0 pooled=0\n"));
  EXPECT_THAT(run.output, HasSubstr("freed=0 entry=0,0,hook=1\n"));
  EXPECT_EQ(run.Log(),
            "memory:start\nmemory:alloc 5000\nmemory:alloc_async 6000 0x0\nmemory:pitch 7000 3\n"
            "memory:room 0 8000\nmemory:count 0 8000 1\nmemory:room 0 9000\nmemory:count 0 9000 1\n"
            "memory:free\nmemory:free\nmemory:free\n"
            "memory:count 0 8000 -1\nmemory:count 0 9000 -1\n");
}

TEST(HooksTest, RuntimeWithoutContextGoesTheLongWay) {
  Outcome run = Under("runtime_probe", "FAKE_NO_CONTEXT=1");
  EXPECT_EQ(run.Count("runtime:cudaMalloc"), 1);
  EXPECT_EQ(run.Count("runtime:cudaMallocAsync"), 1);
  EXPECT_EQ(run.Count("memory:alloc 4096"), 2);
}

}  // namespace
}  // namespace tidemark::interpose
