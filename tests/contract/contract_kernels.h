// Kernels of contract_kernels.cu, and their module image for cuModuleLoadData.

#ifndef TIDEMARK_TESTS_CONTRACT_CONTRACT_KERNELS_H_
#define TIDEMARK_TESTS_CONTRACT_CONTRACT_KERNELS_H_

extern "C" {
void ContractNothing();
void ContractFill(unsigned* out, unsigned value, int count);
void ContractAffine(unsigned* data, unsigned factor, unsigned term, int count);
void ContractAdd(const unsigned* a, const unsigned* b, unsigned* out, int count);
void ContractMixed(char sign, const double* in, short shift, float* out, int count, double scale);
void ContractIndex(unsigned* out);
void ContractReverse(unsigned* data);
void ContractCount(unsigned* counter);
void ContractWeigh(unsigned factor);

// Symbols of the device variables, for cudaMemcpyToSymbol and the like.
const void* ContractCells();
const void* ContractTotal();
const void* ContractWeights();

#if defined(CONTRACT_FATBIN)
extern const char contract_fatbin[];  // contract_fatbin.S
#else
const void* tidemark_twin_image_contract();
#endif
}

namespace contract {

inline const void* Image() {
#if defined(CONTRACT_FATBIN)
  return contract_fatbin;
#else
  return tidemark_twin_image_contract();
#endif
}

}  // namespace contract

#endif  // TIDEMARK_TESTS_CONTRACT_CONTRACT_KERNELS_H_
