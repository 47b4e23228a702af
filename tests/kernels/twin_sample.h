// Kernels of twin_sample.cu, for twin_test.cc.

#ifndef TIDEMARK_TESTS_KERNELS_TWIN_SAMPLE_H_
#define TIDEMARK_TESTS_KERNELS_TWIN_SAMPLE_H_

extern "C" {
void SampleScale(const float* in, float* out, float factor, int count);
void SampleStride(char flag, const double* in, double* out, int rows, int columns);
void SampleReverse(float* data);
void SampleHistogram(const unsigned char* in, int count, unsigned* bins);
void SampleNothing();
const void* tidemark_twin_image_sample();
}

#endif  // TIDEMARK_TESTS_KERNELS_TWIN_SAMPLE_H_
