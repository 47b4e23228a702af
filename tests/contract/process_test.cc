// What shows only across processes, or ends the use of CUDA in one: state before initialisation,
// fork, faults on the device, shared memory, death. Every test works in children that are forked
// before this program made any CUDA call; it never makes one itself.

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "tests/contract/contract.h"

namespace contract {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kNotSo = 70;  // exit status of a child whose check failed

// Ends the child with a message unless `condition` holds.
#define MUST(condition)                                                       \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      _exit(kNotSo);                                                          \
    }                                                                         \
  } while (0)
#define MUST_CU(code, call)                                                                        \
  do {                                                                                             \
    const int got = static_cast<int>(call);                                                        \
    if (got != static_cast<int>(code)) {                                                           \
      fprintf(stderr, "%s:%d: %s gives %d, expected %s\n", __FILE__, __LINE__, #call, got, #code); \
      _exit(kNotSo);                                                                               \
    }                                                                                              \
  } while (0)

pid_t Fork(const std::function<void()>& body) {
  fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    exit(0);  // as a program ends: the driver may have something to put away
  }
  return child;
}

int StatusOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

bool Succeeds(const std::function<void()>& body) {
  const int status = StatusOf(Fork(body));
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Two ends of a line between processes.
class Line {
 public:
  Line() {
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) != 0) perror("socketpair");
    // A child that failed never answers; its partner must not wait for ever.
    const timeval patience = {20, 0};
    for (int end : ends_) {
      setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    }
  }
  ~Line() {
    close(ends_[0]);
    close(ends_[1]);
  }
  template <typename T>
  void Send(int end, const T& value) {
    MUST(write(ends_[end], &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value)));
  }
  template <typename T>
  T Receive(int end) {
    T value = {};
    MUST(read(ends_[end], &value, sizeof(value)) == static_cast<ssize_t>(sizeof(value)));
    return value;
  }
  void SendDescriptor(int end, int fd) {
    char byte = 0;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = Message(&byte, control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    MUST(sendmsg(ends_[end], &message, 0) == 1);
  }
  int ReceiveDescriptor(int end) {
    char byte = 0;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message = Message(&byte, control);
    MUST(recvmsg(ends_[end], &message, 0) == 1);
    int fd = -1;
    MUST(CMSG_FIRSTHDR(&message) != nullptr);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
  }

 private:
  msghdr Message(char* byte, char* control) {
    part_ = {byte, 1};
    msghdr message = {};
    message.msg_iov = &part_;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    return message;
  }
  int ends_[2] = {-1, -1};
  iovec part_ = {};
};

CUmemAllocationProp Properties() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = OnDevice();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

size_t Granularity() {
  const CUmemAllocationProp properties = Properties();
  size_t bytes = 0;
  MUST_CU(CUDA_SUCCESS,
          CU(cuMemGetAllocationGranularity)(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

CUdeviceptr MapNew(size_t bytes, CUmemGenericAllocationHandle handle, CUmemAccess_flags flags) {
  CUdeviceptr address = 0;
  CUmemAccessDesc access = {OnDevice(), flags};
  MUST_CU(CUDA_SUCCESS, CU(cuMemAddressReserve)(&address, bytes, 0, 0, 0));
  MUST_CU(CUDA_SUCCESS, CU(cuMemMap)(address, bytes, 0, handle, 0));
  MUST_CU(CUDA_SUCCESS, CU(cuMemSetAccess)(address, bytes, &access, 1));
  return address;
}

size_t FreeBytes() {
  size_t free_bytes = 0;
  size_t total = 0;
  MUST_CU(cudaSuccess, cudaMemGetInfo(&free_bytes, &total));
  return free_bytes;
}

TEST(ProcessContract, NothingWorksBeforeInitialisation) {
  EXPECT_TRUE(Succeeds([] {
    int count = 0;
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    MUST_CU(CUDA_ERROR_NOT_INITIALIZED, CU(cuDeviceGetCount)(&count));
    MUST_CU(CUDA_ERROR_NOT_INITIALIZED, CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST_CU(CUDA_ERROR_NOT_INITIALIZED, CU(cuMemAlloc)(&address, 4096));
    MUST_CU(CUDA_SUCCESS, CU(cuDriverGetVersion)(&count));
    MUST_CU(CUDA_SUCCESS, CU(cuInit)(0));
    MUST_CU(CUDA_SUCCESS, CU(cuDeviceGetCount)(&count));
    MUST_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuMemAlloc)(&address, 4096));
  }));
}

TEST(ProcessContract, PrimaryContextLivesWhileItIsRetained) {
  EXPECT_TRUE(Succeeds([] {
    unsigned flags = 0;
    int active = 1;
    CUcontext context = nullptr;
    MUST_CU(CUDA_SUCCESS, CU(cuInit)(0));
    MUST_CU(CUDA_SUCCESS, CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    MUST(active == 0);
    MUST_CU(CUDA_SUCCESS, CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST_CU(CUDA_SUCCESS, CU(cuDevicePrimaryCtxRetain)(&context, 0));
    MUST_CU(CUDA_SUCCESS, CU(cuDevicePrimaryCtxRelease)(0));
    MUST_CU(CUDA_SUCCESS, CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    MUST(active == 1);
    MUST_CU(CUDA_SUCCESS, CU(cuDevicePrimaryCtxRelease)(0));
    MUST_CU(CUDA_SUCCESS, CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
    MUST(active == 0);
    MUST(CU(cuDevicePrimaryCtxRelease)(0) != CUDA_SUCCESS);
  }));
}

TEST(ProcessContract, ChildrenOfAnInitialisedProcessCannotUseCuda) {
  EXPECT_TRUE(Succeeds([] {
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    const int status = StatusOf(Fork([] {
      void* pointer = nullptr;
      MUST_CU(cudaErrorInitializationError, cudaMalloc(&pointer, 4096));
    }));
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    MUST_CU(cudaSuccess, cudaDeviceSynchronize());
  }));
}

TEST(ProcessContract, DeviceResetTakesAllocationsAndLetsTheProcessGoOn) {
  EXPECT_TRUE(Succeeds([] {
    void* pointer = nullptr;
    cudaPointerAttributes attributes = {};
    MUST_CU(cudaSuccess, cudaMalloc(&pointer, 64 * kMiB));
    MUST_CU(cudaSuccess, cudaDeviceReset());
    MUST_CU(cudaSuccess, cudaPointerGetAttributes(&attributes, pointer));
    MUST(attributes.type == cudaMemoryTypeUnregistered);
    DeviceWords device(Same(100, 1));
    MUST_CU(cudaSuccess, Affine(device.get(), 2, 1, 100));
    MUST(device.Read() == Same(100, 3));
  }));
}

TEST(ProcessContract, HostCodeCannotTouchDeviceMemory) {
  const int status = StatusOf(Fork([] {
    volatile unsigned* pointer = nullptr;
    MUST_CU(cudaSuccess,
            cudaMalloc(const_cast<void**>(reinterpret_cast<volatile void**>(&pointer)), 4096));
    pointer[0] = 1;
  }));
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == kNotSo) << "the allocation failed";
}

// Every fault below leaves the context unusable for good, and the process alive.
void MustBeBroken() {
  void* pointer = nullptr;
  MUST_CU(cudaErrorIllegalAddress, cudaDeviceSynchronize());
  MUST_CU(cudaErrorIllegalAddress, cudaGetLastError());
  MUST_CU(cudaErrorIllegalAddress, cudaMalloc(&pointer, 4096));
  MUST_CU(cudaErrorIllegalAddress, cudaGetLastError());
  MUST_CU(cudaErrorIllegalAddress, cudaPeekAtLastError());
}

TEST(ProcessContract, AKernelThatWritesWhereNothingIsBreaksItsContext) {
  EXPECT_TRUE(Succeeds([] {
    CUdeviceptr hole = 0;
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    MUST_CU(CUDA_SUCCESS, CU(cuMemAddressReserve)(&hole, Granularity(), 0, 0, 0));
    Fill(reinterpret_cast<unsigned*>(hole), 1, 10);
    MustBeBroken();
  }));
}

TEST(ProcessContract, AKernelThatWritesToUnmappedMemoryBreaksItsContext) {
  EXPECT_TRUE(Succeeds([] {
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    const size_t bytes = Granularity();
    const CUmemAllocationProp properties = Properties();
    CUmemGenericAllocationHandle handle = 0;
    MUST_CU(CUDA_SUCCESS, CU(cuMemCreate)(&handle, bytes, &properties, 0));
    const CUdeviceptr address = MapNew(bytes, handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    auto* words = reinterpret_cast<unsigned*>(address);
    MUST_CU(cudaSuccess, Fill(words, 1, 10));
    MUST_CU(cudaSuccess, cudaDeviceSynchronize());
    MUST_CU(CUDA_SUCCESS, CU(cuMemUnmap)(address, bytes));
    Fill(words, 1, 10);
    MustBeBroken();
  }));
}

TEST(ProcessContract, AKernelThatWritesWhereItMayOnlyReadBreaksItsContext) {
  EXPECT_TRUE(Succeeds([] {
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    const size_t bytes = Granularity();
    const CUmemAllocationProp properties = Properties();
    CUmemGenericAllocationHandle handle = 0;
    MUST_CU(CUDA_SUCCESS, CU(cuMemCreate)(&handle, bytes, &properties, 0));
    const CUdeviceptr address = MapNew(bytes, handle, CU_MEM_ACCESS_FLAGS_PROT_READ);
    Fill(reinterpret_cast<unsigned*>(address), 1, 10);
    MUST(cudaDeviceSynchronize() != cudaSuccess);
    MUST(cudaDeviceSynchronize() != cudaSuccess);
  }));
}

TEST(ProcessContract, ABrokenContextIsNoMatterForTheNextProcess) {
  EXPECT_TRUE(Succeeds([] {
    DeviceWords device(Same(100, 1));
    MUST_CU(cudaSuccess, Affine(device.get(), 5, 0, 100));
    MUST(device.Read() == Same(100, 5));
  }));
}

TEST(ProcessContract, ExportedMemoryOutlivesItsMaker) {
  Line line;
  const pid_t maker = Fork([&] {
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    const size_t bytes = Granularity();
    const CUmemAllocationProp properties = Properties();
    CUmemGenericAllocationHandle handle = 0;
    int fd = -1;
    MUST_CU(CUDA_SUCCESS, CU(cuMemCreate)(&handle, bytes, &properties, 0));
    const CUdeviceptr address = MapNew(bytes, handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    MUST_CU(cudaSuccess, Fill(reinterpret_cast<unsigned*>(address), 321, 100));
    MUST_CU(cudaSuccess, cudaDeviceSynchronize());
    MUST_CU(CUDA_SUCCESS, CU(cuMemExportToShareableHandle)(
                              &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    line.SendDescriptor(0, fd);
    line.Receive<int>(0);  // the reader has imported
  });
  const pid_t reader = Fork([&] {
    const int fd = line.ReceiveDescriptor(1);
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    CUmemGenericAllocationHandle handle = 0;
    MUST_CU(CUDA_SUCCESS, CU(cuMemImportFromShareableHandle)(
                              &handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    line.Send(1, 1);
    MUST(line.Receive<int>(1) == 2);  // the maker is gone
    const CUdeviceptr address = MapNew(Granularity(), handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    unsigned word = 0;
    MUST_CU(CUDA_SUCCESS, CU(cuMemcpyDtoH)(&word, address + 99 * sizeof(unsigned), 4));
    MUST(word == 321);
  });
  EXPECT_EQ(StatusOf(maker), 0);
  line.Send(0, 2);
  EXPECT_EQ(StatusOf(reader), 0);
}

TEST(ProcessContract, IpcHandlesShareAllocations) {
  Line line;
  const pid_t maker = Fork([&] {
    DeviceWords device(Counting(1000, 5));
    cudaIpcMemHandle_t handle = {};
    MUST_CU(cudaSuccess, cudaIpcGetMemHandle(&handle, device.get()));
    line.Send(0, handle);
    MUST(line.Receive<int>(0) == 1);
    MUST(device.Read() == Same(1000, 9));
  });
  const pid_t user = Fork([&] {
    const auto handle = line.Receive<cudaIpcMemHandle_t>(1);
    unsigned* words = nullptr;
    unsigned last = 0;
    MUST_CU(cudaSuccess, cudaIpcOpenMemHandle(reinterpret_cast<void**>(&words), handle,
                                              cudaIpcMemLazyEnablePeerAccess));
    MUST_CU(cudaSuccess, cudaMemcpy(&last, words + 999, 4, cudaMemcpyDeviceToHost));
    MUST(last == 1004);
    MUST_CU(cudaSuccess, Fill(words, 9, 1000));
    MUST_CU(cudaSuccess, cudaDeviceSynchronize());
    MUST_CU(cudaSuccess, cudaIpcCloseMemHandle(words));
    line.Send(1, 1);
  });
  EXPECT_EQ(StatusOf(user), 0);
  EXPECT_EQ(StatusOf(maker), 0);
}

TEST(ProcessContract, MappedMemoryHasNoIpcHandle) {
  EXPECT_TRUE(Succeeds([] {
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    const size_t bytes = Granularity();
    const CUmemAllocationProp properties = Properties();
    CUmemGenericAllocationHandle handle = 0;
    MUST_CU(CUDA_SUCCESS, CU(cuMemCreate)(&handle, bytes, &properties, 0));
    const CUdeviceptr address = MapNew(bytes, handle, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CUipcMemHandle ipc = {};
    MUST_CU(CUDA_ERROR_INVALID_VALUE, CU(cuIpcGetMemHandle)(&ipc, address));
  }));
}

TEST(ProcessContract, MemoryOfAKilledProcessComesBack) {
  Line line;
  const size_t bytes = 256 * kMiB;
  const pid_t victim = Fork([&] {
    void* pointer = nullptr;
    MUST_CU(cudaSuccess, cudaMalloc(&pointer, bytes));
    line.Send(0, FreeBytes());
    line.Receive<int>(0);  // never comes
  });
  const pid_t watcher = Fork([&] {
    line.Receive<size_t>(1);
    const size_t during = FreeBytes();
    kill(victim, SIGKILL);
    size_t after = 0;
    // The device gets its memory back when the kernel has torn the process down.
    for (int polls = 0; polls < 20000 && after < during + bytes; ++polls) {
      usleep(1000);
      after = FreeBytes();
    }
    MUST(after >= during + bytes);
  });
  EXPECT_EQ(StatusOf(watcher), 0);
  EXPECT_TRUE(WIFSIGNALED(StatusOf(victim)));
}

TEST(ProcessContract, ProcessesShareTheDevicesCapacity) {
  Line line;
  const size_t bytes = 256 * kMiB;
  const pid_t holder = Fork([&] {
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    MUST(line.Receive<int>(0) == 1);
    void* pointer = nullptr;
    MUST_CU(cudaSuccess, cudaMalloc(&pointer, bytes));
    line.Send(0, 2);
    MUST(line.Receive<int>(0) == 3);
  });
  const pid_t watcher = Fork([&] {
    MUST_CU(cudaSuccess, cudaFree(nullptr));
    const size_t before = FreeBytes();
    line.Send(1, 1);
    MUST(line.Receive<int>(1) == 2);
    const size_t during = FreeBytes();
    line.Send(1, 3);
    MUST(during + bytes <= before);
  });
  EXPECT_EQ(StatusOf(watcher), 0);
  EXPECT_EQ(StatusOf(holder), 0);
}

}  // namespace
}  // namespace contract
