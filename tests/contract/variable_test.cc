// Device variables: symbols of the runtime, globals of modules and libraries.

#include "kernels/launch.h"
#include "tests/contract/contract.h"
#include "tests/contract/contract_kernels.h"

namespace contract {
namespace {

using tidemark::kernels::Launch;

class VariableContract : public ContractTest {
 public:
  // Other tests of this program changed them; symbols live as long as the process.
  void SetUp() override {
    ContractTest::SetUp();
    const unsigned zeros[4] = {};
    const unsigned total = 1000;
    const unsigned weights[4] = {1, 2, 3, 4};
    RT_OK(cudaMemcpyToSymbol(ContractCells(), zeros, sizeof(zeros)));
    RT_OK(cudaMemcpyToSymbol(ContractTotal(), &total, sizeof(total)));
    RT_OK(cudaMemcpyToSymbol(ContractWeights(), weights, sizeof(weights)));
  }
};

std::vector<unsigned> CellsNow() {
  std::vector<unsigned> cells(4);
  EXPECT_EQ(int{cudaMemcpyFromSymbol(cells.data(), ContractCells(), 16)}, 0);
  return cells;
}

unsigned TotalNow() {
  unsigned total = 0;
  EXPECT_EQ(int{cudaMemcpyFromSymbol(&total, ContractTotal(), sizeof(total))}, 0);
  return total;
}

cudaError_t Weigh(unsigned factor, cudaStream_t stream = nullptr) {
  return Launch(ContractWeigh, {dim3(1), dim3(4), stream, 0}, factor);
}

std::vector<unsigned> WordsAt(CUdeviceptr address, size_t count) {
  std::vector<unsigned> words(count);
  EXPECT_EQ(int{cudaMemcpy(words.data(), reinterpret_cast<void*>(address), count * 4,
                           cudaMemcpyDeviceToHost)},
            0);
  return words;
}

TEST_F(VariableContract, ASymbolHasAnAddressAndASize) {
  size_t bytes = 0;
  void* address = nullptr;
  RT_OK(cudaGetSymbolSize(&bytes, ContractCells()));
  EXPECT_EQ(bytes, 16u);
  RT_OK(cudaGetSymbolAddress(&address, ContractCells()));
  cudaPointerAttributes attributes;
  RT_OK(cudaPointerGetAttributes(&attributes, address));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  void* again = nullptr;
  RT_OK(cudaGetSymbolAddress(&again, ContractCells()));
  EXPECT_EQ(again, address);
}

TEST_F(VariableContract, KernelsReadWhatTheHostWroteAndTheHostWhatTheyWrote) {
  RT_OK(Weigh(10));
  EXPECT_EQ(CellsNow(), (std::vector<unsigned>{10, 20, 30, 40}));
  EXPECT_EQ(TotalNow(), 1100u);
  const unsigned heavier[2] = {100, 200};
  RT_OK(cudaMemcpyToSymbol(ContractWeights(), heavier, sizeof(heavier), 8));
  RT_OK(Weigh(1));
  EXPECT_EQ(CellsNow(), (std::vector<unsigned>{11, 22, 130, 240}));
}

TEST_F(VariableContract, ItsAddressIsOrdinaryDeviceMemory) {
  void* address = nullptr;
  RT_OK(cudaGetSymbolAddress(&address, ContractCells()));
  RT_OK(cudaMemset(address, 0, 16));
  RT_OK(Weigh(2));
  EXPECT_EQ(WordsAt(reinterpret_cast<CUdeviceptr>(address), 4),
            (std::vector<unsigned>{2, 4, 6, 8}));
}

TEST_F(VariableContract, QueuedCopiesOfSymbolsKeepStreamOrder) {
  Stream stream;
  Pinned<unsigned> weights(4);
  Pinned<unsigned> cells(4);
  for (unsigned i = 0; i < 4; ++i) weights[i] = 5;
  RT_OK(cudaDeviceSynchronize());
  RT_OK(cudaMemcpyToSymbolAsync(ContractWeights(), weights.get(), 16, 0, cudaMemcpyHostToDevice,
                                stream));
  RT_OK(Weigh(3, stream));
  RT_OK(cudaMemcpyFromSymbolAsync(cells.get(), ContractCells(), 16, 0, cudaMemcpyDeviceToHost,
                                  stream));
  RT_OK(cudaStreamSynchronize(stream));
  for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(cells[i], 15u);
}

TEST_F(VariableContract, CopiesBeyondTheEndAreRefused) {
  const unsigned words[4] = {9, 9, 9, 9};
  EXPECT_RT(cudaErrorInvalidValue, cudaMemcpyToSymbol(ContractCells(), words, 16, 4));
  EXPECT_EQ(CellsNow(), (std::vector<unsigned>{0, 0, 0, 0}));
}

TEST_F(VariableContract, EveryLoadedModuleHasItsOwnInstanceWithTheInitialValue) {
  CUmodule modules[2] = {};
  CUdeviceptr totals[2] = {};
  RT_OK(Weigh(1));
  for (int i = 0; i < 2; ++i) {
    size_t bytes = 0;
    CU_OK(CU(cuModuleLoadData)(&modules[i], Image()));
    CU_OK(CU(cuModuleGetGlobal)(&totals[i], &bytes, modules[i], "contract_total"));
    EXPECT_EQ(bytes, 4u);
    EXPECT_EQ(WordsAt(totals[i], 1)[0], 1000u);
  }
  EXPECT_NE(totals[0], totals[1]);
  CUfunction function = nullptr;
  unsigned factor = 7;
  void* params[] = {&factor};
  CU_OK(CU(cuModuleGetFunction)(&function, modules[0], "ContractWeigh"));
  CU_OK(CU(cuLaunchKernel)(function, 1, 1, 1, 4, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(WordsAt(totals[0], 1)[0], 1070u);
  EXPECT_EQ(WordsAt(totals[1], 1)[0], 1000u);
  EXPECT_EQ(TotalNow(), 1010u);
  for (const CUmodule module : modules) CU_OK(CU(cuModuleUnload)(module));
}

TEST_F(VariableContract, AConstantBeginsWithItsInitialValue) {
  CUlibrary library = nullptr;
  CUdeviceptr weights = 0;
  size_t bytes = 0;
  CU_OK(CU(cuLibraryLoadData)(&library, Image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CU_OK(CU(cuLibraryGetGlobal)(&weights, &bytes, library, "contract_weights"));
  EXPECT_EQ(bytes, 16u);
  EXPECT_EQ(WordsAt(weights, 4), (std::vector<unsigned>{1, 2, 3, 4}));
  CU_OK(CU(cuLibraryUnload)(library));
}

TEST_F(VariableContract, EitherAnswerMayBeLeftOutAndUnknownNamesAreNotFound) {
  CUmodule module = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  CU_OK(CU(cuModuleLoadData)(&module, Image()));
  CU_OK(CU(cuModuleGetGlobal)(&address, nullptr, module, "contract_cells"));
  CU_OK(CU(cuModuleGetGlobal)(nullptr, &bytes, module, "contract_cells"));
  EXPECT_EQ(bytes, 16u);
  EXPECT_CU(CUDA_ERROR_NOT_FOUND,
            CU(cuModuleGetGlobal)(&address, &bytes, module, "no_such_variable"));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetGlobal)(&address, &bytes, module, "ContractFill"));
  CU_OK(CU(cuModuleUnload)(module));
}

TEST_F(VariableContract, OnlyVariablesHaveSymbols) {
  int not_a_variable = 0;
  void* address = nullptr;
  size_t bytes = 0;
  EXPECT_RT(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&address, &not_a_variable));
  EXPECT_RT(cudaErrorInvalidSymbol, cudaGetSymbolSize(&bytes, &not_a_variable));
}

TEST_F(VariableContract, EachDeviceHasItsOwnInstance) {
  if (DeviceCount() < 2) GTEST_SKIP() << "needs two devices";
  RT_OK(Weigh(1));
  RT_OK(cudaSetDevice(1));
  RT_OK(Weigh(5));
  const unsigned second = TotalNow();
  RT_OK(cudaSetDevice(0));
  EXPECT_EQ(TotalNow(), 1010u);
  EXPECT_EQ(second % 50, 0u);
}

}  // namespace
}  // namespace contract
