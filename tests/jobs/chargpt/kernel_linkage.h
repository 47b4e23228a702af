// How a kernel is declared: in .cu files as the CUDA language asks, elsewhere as the host function
// whose address names it.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_KERNEL_LINKAGE_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_KERNEL_LINKAGE_H_

#if defined(TIDEMARK_KERNEL)
#define GPT_KERNEL TIDEMARK_KERNEL
#else
#define GPT_KERNEL extern "C"
#endif

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_KERNEL_LINKAGE_H_
