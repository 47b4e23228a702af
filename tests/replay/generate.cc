// Implementation of tests/replay/generate.h, less the transformer itself (generate_transformer.cc).
// Threads: none.

#include "tests/replay/generate.h"

#include "tests/replay/trace_builder.h"

namespace tidemark::replay {
namespace {

constexpr uint64_t kLongestBurst = 200;  // events of one trace in a row

TransformerShape VaryingLength() {
  TransformerShape shape;
  shape.shortest = 256;
  shape.longest = 2048;
  return shape;
}

TransformerShape Sharded(TransformerShape shape) {
  shape.width = 4096;
  shape.inner = 16384;
  shape.heads = 32;
  shape.shards = 16;
  shape.recompute = true;
  return shape;
}

TransformerShape LowRank() {
  TransformerShape shape = VaryingLength();
  shape.rank = 16;
  shape.recompute = true;
  return shape;
}

TransformerShape Experts() {
  TransformerShape shape;
  shape.layers = 12;
  shape.width = 1024;
  shape.inner = 4096;
  shape.experts = 8;
  return shape;
}

// Few tokens and a vocabulary that is a multiple of nothing.
TransformerShape Small() {
  TransformerShape shape;
  shape.layers = 12;
  shape.width = 1280;
  shape.heads = 12;
  shape.inner = 5120;
  shape.vocabulary = 50257;
  shape.shortest = 128;
  shape.longest = 528;
  shape.recompute = true;
  shape.seed = 41;
  return shape;
}

QuantizedShape ShortRun() {
  QuantizedShape shape;
  shape.steps = 6;
  return shape;
}

Trace Named(const char* name, Trace trace) {
  trace.name = name;
  return trace;
}

// Small models side by side, each on its own stream.
Trace ManyStreams() {
  std::vector<Trace> parts;
  for (uint64_t i = 0; i < 6; ++i) {
    TransformerShape shape = VaryingLength();
    shape.layers = 8;
    shape.width = 1024;
    shape.inner = 4096;
    shape.batch = 2;
    shape.seed = 10 + i;
    parts.push_back(GenerateTransformer(shape));
  }
  return Interleave(parts, false, 7);
}

// A large job, one with varying lengths, and one that trains adapters.
Trace ThreeProcesses() {
  TransformerShape dense;
  dense.seed = 20;
  TransformerShape varying = VaryingLength();
  varying.seed = 21;
  varying.width = 1024;
  varying.inner = 4096;
  varying.recompute = true;
  TransformerShape adapters = LowRank();
  adapters.seed = 22;
  return Interleave(
      {GenerateTransformer(dense), GenerateTransformer(varying), GenerateTransformer(adapters)},
      true, 8);
}

}  // namespace

Trace Interleave(const std::vector<Trace>& traces, bool as_processes, uint64_t seed) {
  Chance chance(seed);
  Trace out;
  std::vector<size_t> at(traces.size());
  std::vector<std::vector<BlockId>> ids(traces.size());
  std::vector<uint32_t> first_stream(traces.size());
  uint32_t streams = 0;
  for (size_t t = 0; t < traces.size(); ++t) {
    ids[t].resize(traces[t].blocks.size());
    first_stream[t] = streams;
    if (!as_processes) streams += traces[t].streams();
  }
  size_t left = traces.size();
  size_t step = 0;
  while (left != 0) {
    const size_t t = chance.Next() % traces.size();
    const Trace& trace = traces[t];
    if (at[t] == trace.events.size()) continue;
    for (uint64_t n = chance.Between(1, kLongestBurst); n > 0 && at[t] < trace.events.size(); --n) {
      if (t == 0 && step < trace.steps.size() && trace.steps[step] == at[t]) {
        out.steps.push_back(out.events.size());
        ++step;
      }
      const Event& event = trace.events[at[t]++];
      if (event.allocate) {
        ids[t][event.block] = static_cast<BlockId>(out.blocks.size());
        BlockInfo block = trace.blocks[event.block];
        block.stream += first_stream[t];
        if (as_processes) block.process = static_cast<uint32_t>(t);
        out.blocks.push_back(block);
      }
      out.events.push_back({ids[t][event.block], event.allocate});
    }
    if (at[t] == trace.events.size()) --left;
  }
  return out;
}

Trace RunAgain(const Trace& trace, int runs) {
  TraceBuilder out;
  for (int run = 0; run < runs; ++run) {
    std::vector<BlockId> ids(trace.blocks.size());
    std::vector<bool> live(trace.blocks.size());
    size_t step = 0;
    for (size_t i = 0; i < trace.events.size(); ++i) {
      if (step < trace.steps.size() && trace.steps[step] == i) ++step, out.BeginStep();
      const Event& event = trace.events[i];
      const BlockInfo& block = trace.blocks[event.block];
      if (event.allocate) ids[event.block] = out.Allocate(block.bytes, block.stream);
      if (!event.allocate) out.Free(ids[event.block]);
      live[event.block] = event.allocate;
    }
    for (size_t id = 0; id < live.size() && run + 1 < runs; ++id) {
      if (live[id]) out.Free(ids[id]);
    }
  }
  return std::move(out.trace);
}

std::vector<Trace> GeneratedTraces() {
  TransformerShape fixed;
  TransformerShape scores;
  scores.attention_scores = true;
  scores.layers = 16;
  TransformerShape varying_recompute = VaryingLength();
  varying_recompute.recompute = true;
  TransformerShape dense_sharded = Sharded(TransformerShape());
  std::vector<Trace> all;
  all.push_back(Named("fixed shape", GenerateTransformer(fixed)));
  all.push_back(Named("fixed, attention scores", GenerateTransformer(scores)));
  all.push_back(Named("fixed, recompute, ZeRO-3", GenerateTransformer(dense_sharded)));
  all.push_back(Named("variable length", GenerateTransformer(VaryingLength())));
  all.push_back(Named("variable, recompute", GenerateTransformer(varying_recompute)));
  all.push_back(
      Named("variable, recompute, ZeRO-3", GenerateTransformer(Sharded(VaryingLength()))));
  all.push_back(Named("variable, recompute, LoRA", GenerateTransformer(LowRank())));
  all.push_back(Named("adapters, 4-bit weights", GenerateQuantized(QuantizedShape())));
  all.push_back(Named("adapters, run again", RunAgain(GenerateQuantized(ShortRun()), 2)));
  all.push_back(Named("mixture of experts", GenerateTransformer(Experts())));
  all.push_back(Named("convolutions", GenerateConvolutions(ConvolutionShape())));
  all.push_back(Named("small, variable, recompute", GenerateTransformer(Small())));
  all.push_back(Named("growing caches", GenerateGrowingCaches(CacheShape())));
  all.push_back(Named("huge and tiny", GenerateHugeAndTiny(60000, 3000, 3)));
  all.push_back(Named("random sizes", GenerateRandom(20000, 4000, 9)));
  all.push_back(Named("six streams", ManyStreams()));
  all.push_back(Named("three processes", ThreeProcesses()));
  return all;
}

}  // namespace tidemark::replay
