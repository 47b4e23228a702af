// The real tidemarkd over the software GPU, with a job that maps what it is leased and looks at the
// bytes. The job is this process: simgpu holds a device's memory across processes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/driver.h"
#include "tests/daemon/test_client.h"
#include "tests/daemon/test_node.h"
#include "tests/daemon/tidemarkd_process.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kDeviceChunks = 32;

// One leased chunk, mapped into this process.
class Mapping {
 public:
  Mapping(const kernels::Driver& driver, int fd) : driver_(driver) {
    EXPECT_EQ(driver_.cuMemImportFromShareableHandle(
                  &handle_, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuMemAddressReserve(&address_, kChunk, 0, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuMemMap(address_, kChunk, 0, handle_, 0), CUDA_SUCCESS);
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(driver_.cuMemSetAccess(address_, kChunk, &access, 1), CUDA_SUCCESS);
  }
  ~Mapping() {
    driver_.cuMemUnmap(address_, kChunk);
    driver_.cuMemRelease(handle_);
    driver_.cuMemAddressFree(address_, kChunk);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  void Fill(uint8_t byte) {
    EXPECT_EQ(driver_.cuMemsetD8Async(address_, byte, kChunk, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  bool Holds(uint8_t byte) {
    std::vector<uint8_t> bytes(kChunk, static_cast<uint8_t>(~byte));
    EXPECT_EQ(driver_.cuMemcpyDtoHAsync(bytes.data(), address_, kChunk, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(driver_.cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    return std::count(bytes.begin(), bytes.end(), byte) == static_cast<long>(kChunk);
  }

 private:
  const kernels::Driver& driver_;
  CUmemGenericAllocationHandle handle_ = 0;
  CUdeviceptr address_ = 0;
};

class OnSimgpu : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    static ScratchDir dir;  // goes after the driver's own last words, at exit
    dir_ = &dir;
    const std::string simgpu =
        "memory=" + std::to_string(2 * kDeviceChunks) + "MiB,directory=" + (*dir_ / "simgpu");
    setenv("SIMGPU", simgpu.c_str(), 1);
    driver_ = new kernels::Driver();
    ASSERT_EQ(kernels::OpenDriver(SIMGPU_LIBCUDA, driver_), nullptr);
    ASSERT_EQ(driver_->cuInit(0), CUDA_SUCCESS);
    CUcontext context = nullptr;
    ASSERT_EQ(driver_->cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver_->cuCtxSetCurrent(context), CUDA_SUCCESS);
  }
  static void TearDownTestSuite() {
    driver_->cuDevicePrimaryCtxRelease(0);
    delete driver_;
  }

  void Start() {
    daemon_ = std::make_unique<Process>(
        std::vector<std::string>{"--socket", socket_, "--state_dir", scratch_ / "state",
                                 "--admin_listen", "unix:" + (scratch_ / "admin.sock"), "--libcuda",
                                 SIMGPU_LIBCUDA, "--metrics_listen", "", "--device_reserve_bytes",
                                 "0"},
        log_, notify_.path());
    ASSERT_THAT(notify_.Next(), HasSubstr("READY=1")) << ReadFile(log_);
  }
  tm_wire_hello Hello(const std::string& name, uint64_t resume = 0) {
    tm_wire_hello hello = HelloOf(name, 1, resume);
    CUuuid uuid = {};
    EXPECT_EQ(driver_->cuDeviceGetUuid(&uuid, 0), CUDA_SUCCESS);
    std::memcpy(hello.device_uuid[0], uuid.bytes, sizeof(uuid.bytes));
    return hello;
  }

  static inline ScratchDir* dir_ = nullptr;
  static inline kernels::Driver* driver_ = nullptr;
  ScratchDir scratch_;
  const std::string socket_ = scratch_ / "job.sock";
  const std::string log_ = scratch_ / "log";
  NotifySocket notify_{scratch_ / "notify"};
  std::unique_ptr<Process> daemon_;
};

TEST_F(OnSimgpu, KeepsAJobsBytesWhenTheDaemonIsKilledAndAgreesAfterItsRestart) {
  Start();
  uint64_t id = 0;
  std::vector<uint64_t> held;
  std::vector<std::unique_ptr<Mapping>> mappings;
  {
    TestClient job(socket_);
    id = job.Ask<tm_wire_welcome>(Hello("train")).job_id;
    for (const uint32_t place : {TM_WIRE_DEVICE, TM_WIRE_HOST}) {
      const auto leased = job.Ask<tm_wire_leased>(LeaseOf(4, 4, place));
      ASSERT_EQ(leased.count, 4u) << leased.reason;
      for (uint32_t i = 0; i < 4; ++i) {
        held.push_back(leased.chunk_id[i]);
        mappings.push_back(std::make_unique<Mapping>(*driver_, job.fds()[i].get()));
        EXPECT_TRUE(mappings.back()->Holds(0)) << "new memory is clear";
        mappings.back()->Fill(static_cast<uint8_t>(0x10 + mappings.size()));
      }
    }
    daemon_->Kill(SIGKILL);
    EXPECT_EQ(daemon_->Wait(), -SIGKILL);
  }
  Start();
  for (size_t i = 0; i < mappings.size(); ++i) {
    EXPECT_TRUE(mappings[i]->Holds(static_cast<uint8_t>(0x11 + i))) << "chunk " << i;
  }
  TestClient job(socket_);
  EXPECT_EQ(job.Ask<tm_wire_welcome>(Hello("train", id)).job_id, id);
  const std::vector<uint64_t> on_device(held.begin(), held.begin() + 4);
  const std::vector<uint64_t> on_host(held.begin() + 4, held.end());
  EXPECT_EQ(job.Ask<tm_wire_done>(ChunksOf(TM_WIRE_ADOPT, on_device)).count, 4u);
  EXPECT_EQ(job.Ask<tm_wire_done>(ChunksOf(TM_WIRE_ADOPT, on_host, TM_WIRE_HOST)).count, 4u);
  const uint32_t rest = kDeviceChunks - 4;
  EXPECT_EQ(job.Ask<tm_wire_leased>(LeaseOf(rest, rest)).count, rest);
  EXPECT_EQ(job.Ask<tm_wire_leased>(LeaseOf(1, 1)).outcome,
            static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  mappings.clear();
  EXPECT_EQ(job.Ask<tm_wire_done>(ChunksOf(TM_WIRE_RETURN, on_device)).outcome,
            static_cast<uint32_t>(TM_WIRE_OK));
  EXPECT_EQ(job.Ask<tm_wire_leased>(LeaseOf(4, 4)).count, 4u) << "the driver has them again";
}

TEST_F(OnSimgpu, HandsADeadJobsMemoryToTheNextOneClear) {
  Start();
  {
    TestClient job(socket_);
    job.Ask<tm_wire_welcome>(Hello("first"));
    ASSERT_EQ(job.Ask<tm_wire_leased>(LeaseOf(kDeviceChunks, kDeviceChunks)).count, kDeviceChunks);
    Mapping(*driver_, job.fds()[0].get()).Fill(0xaa);
  }
  TestClient next(socket_);
  next.Ask<tm_wire_welcome>(Hello("next"));
  EXPECT_TRUE(Eventually(
      [&] { return next.Ask<tm_wire_leased>(LeaseOf(kDeviceChunks, kDeviceChunks)).count != 0; }));
  EXPECT_TRUE(Mapping(*driver_, next.fds()[0].get()).Holds(0));
}

}  // namespace
}  // namespace tidemark::daemon
