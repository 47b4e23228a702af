// How programs reach the driver, and that under the preloaded library each still does: linked,
// dlopen, ctypes, look-ups, fork, exec, exit. Needs no GPU: the driver below records its calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/interpose/program_run.h"

namespace tidemark::interpose {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Outcome Under(const std::string& command, const std::string& more = "") {
  return RunProgram(command, Preloaded(PRELOAD) + Driver("driver") + more);
}

TEST(LoaderTest, ProgramWithoutCudaGetsNoThreadSocketOrDriver) {
  Outcome run = Under("probe idle");
  EXPECT_EQ(run.exit, 0);
  EXPECT_EQ(run.output, "threads=1\nsockets=0\ndriver_mapped=0\n");
}

TEST(LoaderTest, LinkedProgramReachesDriver) {
  Outcome run = Under("linked_probe");
  EXPECT_EQ(run.output, "init=0 alloc=0 copy=0 set=0 free=0\n");
  for (const char* name :
       {"cuInit", "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemsetD32_v2", "cuMemFree_v2"}) {
    EXPECT_EQ(run.Count(name), 1) << name;
  }
}

TEST(LoaderTest, DlopenedDriverIsOurs) {
  Outcome run = Under("probe dlopen");
  EXPECT_EQ(run.exit, 0);
  EXPECT_EQ(run.output, "init=0 alloc=0 free=0 address=1\n");
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 1);
}

TEST(LoaderTest, ArgumentsArriveUnchanged) {
  Outcome run = Under("probe arguments");
  EXPECT_EQ(run.output, "set=0 launch=0\n");
  EXPECT_EQ(run.Count("cuParamSetf 0x77 12 2.50"), 1) << run.Log();
  EXPECT_EQ(run.Count("cuLaunchKernel 0x99 1 2 3 4 5 6 7"), 1) << run.Log();
}

TEST(LoaderTest, DeepBindStillGetsTheHook) {
  Outcome run = Under("probe deepbind");
  EXPECT_THAT(run.output, HasSubstr("=0,0,hook,cuMemAlloc_v2"));
  EXPECT_EQ(run.exit, 0);
}

TEST(LoaderTest, DevelopmentNameIsOursThroughTheAlias) {
  std::string script =
      "'import ctypes; l = ctypes.CDLL(\"libcuda.so\"); p = ctypes.c_uint64(); "
      "print(l.cuInit(0), l.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(64)))'";
  std::string both = std::string(RECORDING_PRELOAD) + ":" + ALIAS;
  Outcome run = RunProgram("/usr/bin/python3 -c " + script, Preloaded(both) + Driver("driver"));
  EXPECT_EQ(run.output, "0 0\n");
  EXPECT_EQ(run.Count("memory:alloc 64"), 1) << run.Log();
}

TEST(LoaderTest, CtypesGetsTheHook) {
  std::string script =
      "'import ctypes; l = ctypes.CDLL(\"libcuda.so.1\"); p = ctypes.c_uint64(); "
      "print(l.cuInit(0), l.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(64)), p.value != 0)'";
  Outcome run = Under("/usr/bin/python3 -c " + script);
  EXPECT_EQ(run.output, "0 0 True\n");
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 1);
}

TEST(LoaderTest, LookUpAnswersExactlyTheVersionThatTheDriverChose) {
  Outcome run = Under("probe lookups");
  for (const char* line : {
           "cuMemAlloc/13000/0=0,0,hook,cuMemAlloc_v2\n",
           "cuMemAlloc/3000/0=0,0,driver,cuMemAlloc\n",
           "cuMemAlloc/99000/0=0,0,driver,cuMemAlloc_v3\n",
           "cuMemAlloc/1000/0=500,2,none,none\n",
           "cuMemcpyHtoDAsync/13000/0=0,0,hook,cuMemcpyHtoDAsync_v2\n",
           "cuMemcpyHtoDAsync/13000/2=0,0,hook,cuMemcpyHtoDAsync_v2_ptsz\n",
           "cuGetProcAddress/13000/0=0,0,hook,cuGetProcAddress_v2\n",
           "cuGetProcAddress/11030/0=0,0,hook,cuGetProcAddress\n",
           "cuBrandNewThing/13000/0=0,0,driver,cuBrandNewThing\n",
           "cudnnCreate/13000/0=500,1,none,none\n",
           "old:cuMemAlloc/11030/0=0,0,hook,cuMemAlloc_v2\n",
           "export_table=0,1\n",
       }) {
    EXPECT_THAT(run.output, HasSubstr(line));
  }
}

TEST(LoaderTest, LookUpStartsNothing) {
  Outcome run = RunProgram("probe lookups", Preloaded(RECORDING_PRELOAD) + Driver("driver"));
  EXPECT_THAT(run.output, HasSubstr("threads=1\nsockets=0\n"));
  EXPECT_EQ(run.Count("memory:start"), 0);
  EXPECT_EQ(run.Count("cuInit"), 0);
}

TEST(LoaderTest, UnknownVersionIsSaidOnce) {
  Outcome run = Under("probe lookups");
  EXPECT_THAT(run.output, HasSubstr("tidemark: the driver has a version of cuMemAlloc that this "
                                    "build does not know; it is passed through\n"));
}

TEST(LoaderTest, DisabledLibraryAnswersLookUpsWithTheDriversOwn) {
  Outcome run = Under("probe lookups", "TIDEMARK_DISABLE=1");
  EXPECT_THAT(run.output, HasSubstr("cuMemAlloc/13000/0=0,0,driver,cuMemAlloc_v2\n"));
  EXPECT_THAT(run.output, Not(HasSubstr(",hook,")));
}

TEST(LoaderTest, DriverWithoutLookUpsSaysNotFound) {
  Outcome run = RunProgram("probe lookups", Preloaded(PRELOAD) + Driver("old_driver"));
  EXPECT_THAT(run.output, HasSubstr("cuMemAlloc/13000/0=500,1,none,none\n"));
  EXPECT_EQ(RunProgram("probe dlopen", Preloaded(PRELOAD) + Driver("old_driver")).exit, 0);
}

TEST(LoaderTest, ChildForkedBeforeInitStartsByItself) {
  Outcome run = Under("probe fork-before");
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.output, HasSubstr("child=0\n"));
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 2);
}

TEST(LoaderTest, ChildForkedAfterInitLeavesParentWorking) {
  Outcome run = RunProgram("probe fork-after", Preloaded(RECORDING_PRELOAD) + Driver("driver"));
  EXPECT_EQ(run.exit, 0) << run.output;
  EXPECT_THAT(run.output, HasSubstr("child=0\n"));
  EXPECT_EQ(run.Count("memory:start"), 2) << "once in the parent, once in the child";
}

TEST(LoaderTest, ExecStartsAfresh) {
  Outcome run = Under("probe exec");
  EXPECT_EQ(run.exit, 0);
  EXPECT_EQ(run.Count("cuInit"), 2);
}

TEST(LoaderTest, SixteenThreadsStartCold) {
  for (int i = 0; i < 5; ++i) {
    Outcome run = RunProgram("probe threads", Preloaded(RECORDING_PRELOAD) + Driver("driver"));
    EXPECT_EQ(run.output, "failed_threads=0\n");
    EXPECT_EQ(run.Count("memory:start"), 1);
    EXPECT_EQ(run.Count("memory:alloc 4096"), 16) << "an allocation escaped";
  }
}

TEST(LoaderTest, ReentrantInitEnds) {
  Outcome run = RunProgram("probe dlopen",
                           Preloaded(RECORDING_PRELOAD) + Driver("driver") + "FAKE_REENTER=1");
  EXPECT_EQ(run.exit, 0);
  EXPECT_EQ(run.Count("cuInit"), 2);
  EXPECT_EQ(run.Count("memory:start"), 1);
}

TEST(LoaderTest, HostMemoryIsCreatedWithoutAskingForAContext) {
  Outcome run = RunProgram("probe host-create",
                           Preloaded(RECORDING_PRELOAD) + Driver("driver") + "FAKE_NO_CONTEXT=1");
  EXPECT_EQ(run.output, "init=0 create=0 release=0\n");
  EXPECT_EQ(run.Log(), "cuInit\nmemory:start\ncuMemCreate\ncuMemRelease\n");
}

TEST(LoaderTest, CallsWorkInExitHandlersAndAfterDlclose) {
  EXPECT_EQ(Under("probe at-exit").output, "free_at_exit=0\n");
  Outcome run = Under("probe dlclose");
  EXPECT_EQ(run.exit, 0);
  EXPECT_EQ(run.output, "dlclose=0 alloc_after=0\ninit=0 alloc=0 free=0 address=1\n");
}

TEST(LoaderTest, NamesThatOnlyBeginLikeTheDriversAreLeftAlone) {
  Outcome run =
      Under("probe prefix", std::string("PROBE_LIBRARY=") + PROBES + "/prefix/libcufoo.so");
  EXPECT_EQ(run.output, "cudnnCreate=41 cuFooInit=42\nours_has_it=0\n");
}

TEST(LoaderTest, SanitizedProgramRuns) {
  Outcome run = Under("asan_probe dlopen", "ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0");
  EXPECT_EQ(run.exit, 0) << run.output;
  EXPECT_EQ(run.output, "init=0 alloc=0 free=0 address=1\n");
}

TEST(LoaderTest, SecondPreloadedAllocatorSeesItsCalls) {
  std::string wrapper = std::string(PROBES) + "/wrapper/libwrapping_allocator.so";
  for (const std::string& order :
       {wrapper + ":" + RECORDING_PRELOAD, std::string(RECORDING_PRELOAD) + ":" + wrapper}) {
    Outcome run = RunProgram("runtime_probe", Preloaded(order) + Driver("driver"));
    EXPECT_EQ(run.exit, 0);
    EXPECT_THAT(run.output, HasSubstr("free=0 free_async=0\n")) << order;
    EXPECT_THAT(run.output, HasSubstr("host=1\n")) << order;
    EXPECT_EQ(run.Count("cuInit"), 1) << run.Log();
  }
}

TEST(LoaderTest, MissingDriverIsOneSentenceAndAnError) {
  Outcome run = RunProgram("probe without-driver",
                           Preloaded(PRELOAD) + "TIDEMARK_LIBCUDA=/nonexistent/libcuda.so.1");
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.output, HasSubstr("init=100 named=0 text=no CUDA driver was found\n"));
  EXPECT_EQ(run.output.find("tidemark:"), run.output.rfind("tidemark:")) << run.output;
  EXPECT_THAT(run.output, HasSubstr("tidemark:"));
}

TEST(LoaderTest, BadOptionIsOneSentenceAndTheJobRuns) {
  Outcome run = RunProgram(
      "probe dlopen", Preloaded(RECORDING_PRELOAD) + Driver("driver") + "TIDEMARK_BUDGET=lots");
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.output,
              HasSubstr("tidemark: TIDEMARK_BUDGET=lots is not understood (accepted: "));
  EXPECT_EQ(run.Count("memory:start"), 0);
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 1);
}

TEST(LoaderTest, PluginWithItsOwnRuntimeInALocalScope) {
  Outcome run =
      Under("probe plugin", std::string("PROBE_LIBRARY=") + PROBES + "/plugin/libplugin.so");
  EXPECT_EQ(run.output, "plugin=0 again=0\n");
  EXPECT_EQ(run.Count("runtime:cudaMalloc"), 2) << run.Log();
  EXPECT_EQ(run.Count("cuMemAlloc_v2"), 2) << run.Log();
}

}  // namespace
}  // namespace tidemark::interpose
