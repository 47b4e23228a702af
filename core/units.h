// Units of the memory model: bytes, chunks, launches, fences. Plain integers with names, so that a
// signature says what it takes. Threads: nothing here has state.

#ifndef TIDEMARK_CORE_UNITS_H_
#define TIDEMARK_CORE_UNITS_H_

#include <cstddef>
#include <cstdint>

namespace tidemark::core {

using Bytes = uint64_t;
using ChunkIndex = uint32_t;    // of a chunk-sized slot of one arena, counted from its base
using LaunchNumber = uint64_t;  // order of work as the gate saw it; 0: never
// A point in the order of work of one device. Waiting for a fence includes all smaller ones, so two
// fences merge into the larger one. 0: nothing to wait for.
using FenceId = uint64_t;
// The owner's number of a stream. kAnyStream: not known, or several.
using StreamId = uint32_t;
inline constexpr StreamId kAnyStream = 0;

inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;

inline constexpr Bytes kChunkBytes = 2 * kMiB;
inline constexpr Bytes kBlockBytes = 512;  // every buffer starts and ends on this grid
// Up to here buffers live in slabs of one chunk. Of the powers of two from 16 KiB to 1 MiB this one
// holds the least on the allocator scoreboard: with 128 KiB up to 0.3 % more, with 16 KiB more
// chunks move.
inline constexpr Bytes kSmallLimit = 32 * kKiB;

constexpr Bytes RoundUp(Bytes value, Bytes multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr ChunkIndex ChunkOf(Bytes offset) { return static_cast<ChunkIndex>(offset / kChunkBytes); }
// Chunks touched by [offset, offset + bytes), bytes > 0: the last one.
constexpr ChunkIndex LastChunkOf(Bytes offset, Bytes bytes) { return ChunkOf(offset + bytes - 1); }

// Reads "4GiB", "512MiB", "1.5 GB", "1073741824", or, where `whole` is not 0, a share of it: "40%".
// Returns false and leaves `*bytes` alone when `text` is anything else, negative or too large.
bool ParseBytes(const char* text, Bytes whole, Bytes* bytes);

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_UNITS_H_
