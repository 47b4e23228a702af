// What the tests of the software GPU's driver share: a configuration per child process (the driver
// reads its configuration once), and hand-written twin kernels. Not a mock: tests call the public
// driver API.
//
// Thread rule: test code on one thread unless a test says otherwise.

#ifndef TESTS_SIMGPU_DEVICE_H_
#define TESTS_SIMGPU_DEVICE_H_

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simgpu/driver/twin_image.h"

namespace simgpu_tests {

// Runs `body` in a child process under SIMGPU=`config` with the driver initialised and the primary
// context of device 0 current. Answers what the child wrote to stderr; fails the calling test when
// the child does not exit with 0. In the child, Expect() below reports failures.
std::string InChild(const std::string& config, const std::function<void()>& body);

// In a child: prints the sentence and makes the child fail.
void Expect(bool holds, const char* sentence, int line);
#define EXPECT_IN_CHILD(condition) \
  ::simgpu_tests::Expect(static_cast<bool>(condition), #condition, __LINE__)
// A driver call that has to answer `code`.
void ExpectCode(CUresult code, CUresult wanted, const char* call, int line);
#define EXPECT_CODE(wanted, call) ::simgpu_tests::ExpectCode(call, wanted, #call, __LINE__)
#define EXPECT_CUDA(call) EXPECT_CODE(CUDA_SUCCESS, call)

// Kernels of the twin image below.
//   add(uint32_t* data, uint32_t count, uint32_t value): data[i] += value; traced.
//   append(uint32_t* cell, uint32_t digit): cell = cell * 10 + digit; traced.
//   copy(uint32_t* to, const uint32_t* from, uint32_t count); traced.
//   reverse(uint32_t* data): reverses blockDim.x words per block through shared memory; has a
//   barrier. slow(uint32_t* data): touches nothing and takes one virtual millisecond.
//   untraced(uint32_t* data, uint32_t count): data[i] = i; no traced variant.
const void* Image();
CUfunction Function(const char* name);  // loads the image once per process

// Launches with one block of `threads` threads.
CUresult LaunchOn(CUstream stream, const char* kernel, std::vector<void*> params,
                  unsigned threads = 1, unsigned blocks = 1);
CUresult Add(CUstream stream, CUdeviceptr data, uint32_t count, uint32_t value);

CUdeviceptr Allocate(size_t bytes);      // zeroed, and the device is idle afterwards
uint32_t* AllocatePinned(size_t bytes);  // zeroed
CUstream NewStream();                    // non-blocking
CUevent NewEvent();
std::vector<uint32_t> Read(CUdeviceptr data, size_t count);  // after synchronising the context

}  // namespace simgpu_tests

#endif  // TESTS_SIMGPU_DEVICE_H_
