// Generated allocation traces of training: transformers of fixed shape or with batches of varying
// length, with recomputation, gathered (ZeRO-3) weights, low-rank adapters (LoRA, also over weights
// of four bits), a mixture of experts; convolutions; caches that grow; requests without order;
// several streams; several processes on one device.
// The same seed gives the same trace.
//
// Sizes and lifetimes follow PyTorch's eager mode: activations kept for the backward pass are freed
// there one by one, gradients live until the next step begins, optimizer state is made in the first
// step. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_GENERATE_H_
#define TIDEMARK_TESTS_REPLAY_GENERATE_H_

#include <vector>

#include "tests/replay/trace.h"

namespace tidemark::replay {

struct TransformerShape {
  uint64_t layers = 24;
  uint64_t width = 2048;
  uint64_t heads = 16;
  uint64_t inner = 8192;  // width of the feed-forward part
  uint64_t vocabulary = 32000;
  uint64_t batch = 4;
  uint64_t shortest = 1024;  // tokens of a sequence, drawn anew for each step
  uint64_t longest = 1024;
  bool recompute = false;         // each layer keeps its input only
  bool attention_scores = false;  // kept whole, not recomputed tile by tile
  uint64_t shards = 1;            // above 1: weights are gathered for each layer and released
  uint64_t rank = 0;              // above 0: weights are frozen, adapters of this rank are trained
  uint64_t experts = 0;           // above 0: tokens go to 2 of so many feed-forward parts
  uint64_t steps = 12;
  uint64_t seed = 1;
};

Trace GenerateTransformer(const TransformerShape& shape);

struct QuantizedShape {
  uint64_t layers = 24;
  uint64_t width = 4096;
  uint64_t inner = 11008;
  uint64_t vocabulary = 32000;
  uint64_t rank = 64;  // of the adapters
  uint64_t shortest = 200;
  uint64_t longest = 1536;
  uint64_t steps = 12;
  uint64_t seed = 1;
};

// A transformer with frozen weights of four bits, adapters, and optimizer state of one byte each.
Trace GenerateQuantized(const QuantizedShape& shape);

struct ConvolutionShape {
  uint64_t blocks = 24;  // of four branches each
  uint64_t batch = 64;
  uint64_t side = 112;  // of the images
  uint64_t steps = 12;
  uint64_t seed = 1;
};

Trace GenerateConvolutions(const ConvolutionShape& shape);

// Allocations of 256 B to 128 MiB, evenly over the powers of two, and frees of any live block; at
// most about `most_live` of them. Steps are nothing but marks.
Trace GenerateRandom(uint64_t requests, uint64_t most_live, uint64_t seed);

struct CacheShape {
  uint64_t sequences = 8;
  uint64_t layers = 8;
  Bytes token = 20 * 1024;  // of one layer
  uint64_t tokens = 100;    // that each sequence grows by in a step
  uint64_t steps = 12;
  uint64_t seed = 1;
};

// Key-value caches of sequences that are generated token by token, each grown by copying: the
// longer one is made before the old one is freed. A step is one batch of sequences.
Trace GenerateGrowingCaches(const CacheShape& shape);

// Most requests below 64 KiB, some up to 3 MiB, one in twenty of 64 to 400 MiB; frees of any live
// block. Steps are nothing but marks.
Trace GenerateHugeAndTiny(uint64_t requests, uint64_t most_live, uint64_t seed);

// The events of all traces, interleaved in bursts of random length. Each becomes a stream of one
// process, or a process of its own. Steps are those of the first.
Trace Interleave(const std::vector<Trace>& traces, bool as_processes, uint64_t seed);

// `trace` so many times in one process: what is left of each run is freed before the next begins.
Trace RunAgain(const Trace& trace, int runs);

// The generators of the scoreboard, by name.
std::vector<Trace> GeneratedTraces();

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_GENERATE_H_
