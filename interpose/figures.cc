// What one device's memory side says about itself: figures for the daemon and for the job, and the
// walk over its books. Threads: as interpose/device_memory.h says.

#include "interpose/device_memory.h"

namespace tidemark::interpose {
namespace {

using core::Bytes;
using core::ChunkIndex;
using core::ChunkState;
using core::kChunkBytes;

}  // namespace

void DeviceMemory::MemInfo(size_t* free_bytes, size_t* total_bytes) {
  FollowPolicy();
  const Bytes budget = supply_.budget(Place::kDevice);
  const Bytes total = budget < total_bytes_ ? budget : total_bytes_;
  const Bytes used = sums_.allocated() + passed_through_;
  *total_bytes = total;
  *free_bytes = used < total ? (total - used) / kChunkBytes * kChunkBytes : 0;
  // Nobody but the driver knows what other processes took. A daemon does, and says so by the
  // budget.
  size_t left = 0, ignored = 0;
  if (session_->attached() || driver_->cuMemGetInfo(&left, &ignored) != CUDA_SUCCESS) return;
  const Bytes held = supply_.held(Place::kDevice) * kChunkBytes;
  const Bytes live = sums_.allocated();
  const Bytes reachable = left + (held > live ? held - live : 0);
  if (reachable < *free_bytes) *free_bytes = reachable / kChunkBytes * kChunkBytes;
}

void DeviceMemory::CountPassedThrough(Bytes bytes, int sign) {
  if (sign > 0) {
    passed_through_ += bytes;
  } else {
    passed_through_ -= bytes < passed_through_ ? bytes : passed_through_;
  }
  supply_.SetPassedThrough(passed_through_);
}

void DeviceMemory::CountHost(Bytes bytes, int sign) {
  if (sign > 0) {
    host_passed_through_ += bytes;
  } else {
    host_passed_through_ -= bytes < host_passed_through_ ? bytes : host_passed_through_;
  }
}

void DeviceMemory::CountGraphMemory() {
  cuuint64_t reserved = 0;
  if (driver_->cuDeviceGetGraphMemAttribute == nullptr ||
      driver_->cuDeviceGetGraphMemAttribute(device_, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                            &reserved) != CUDA_SUCCESS) {
    return;
  }
  CountPassedThrough(graph_memory_, -1);
  CountPassedThrough(reserved, +1);
  graph_memory_ = reserved;
}

void DeviceMemory::FillCounters(tm_wire_counters_device* out) {
  arena_.Passed(streams.passed());
  const core::AllocatorStats stats = arena_.Stats();
  const MoveCounters& c = counters_;
  *out = tm_wire_counters_device();
  out->requested_bytes = stats.requested;
  out->allocated_bytes = stats.allocated;
  out->active_bytes = OnDevice(stats.allocated + stats.waiting);
  out->reserved_bytes = supply_.held(Place::kDevice) * kChunkBytes;
  out->host_resident_bytes = table_.host_chunks() * kChunkBytes;
  out->pinned_bytes = table_.pinned_chunks() * kChunkBytes;
  if (out->active_bytes > counters_.peak_active) counters_.peak_active = out->active_bytes;
  if (stats.requested > counters_.peak_requested) counters_.peak_requested = stats.requested;
  out->peak_active_bytes = c.peak_active;
  out->peak_reserved_bytes = supply_.peak_held() * kChunkBytes;
  out->peak_requested_bytes = c.peak_requested;
  out->free_mapped_bytes = stats.free_mapped;
  out->largest_free_mapped_bytes = stats.largest_free_mapped;
  uint64_t whole = supply_.reserve(Place::kDevice);
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) {
    if (table_.state(i) == ChunkState::kDevice && table_.live(i) == 0) ++whole;
  }
  out->largest_free_stitchable_bytes = whole * kChunkBytes;
  out->moved_out_bytes_total = c.moved_out * kChunkBytes;
  out->moved_in_bytes_total = c.moved_in * kChunkBytes;
  out->evicted_chunks_total = c.evicted;
  out->prefetched_chunks_total = c.prefetched;
  out->demand_returned_chunks_total = c.returned;
  out->host_mapped_accesses_total = c.host_mapped_accesses;
  out->safepoints_total = c.safepoints;
  out->safepoint_ns_total = c.safepoint_ns;
  out->stall_ns_total = c.stall_ns;
  out->allocations_total = c.allocations;
  out->frees_total = c.frees;
  out->launches_total = launch_ - hints_;
  out->ooms_total = c.ooms;
  out->hash_mismatches_total = mover_.mismatches();
  out->passed_through_bytes = passed_through_;
  out->host_passed_through_bytes = host_passed_through_;
}

bool DeviceMemory::Validate() const {
  if (!arena_.Validate()) return false;
  for (ChunkIndex i = 0; i < table_.size(); ++i) {
    if (backing_[i].valid != (table_.state(i) != ChunkState::kUnmapped)) return false;
  }
  const uint64_t device = table_.device_chunks() + supply_.reserve(Place::kDevice);
  const uint64_t host = table_.host_chunks() + supply_.reserve(Place::kHost) + early_.count();
  return device == supply_.held(Place::kDevice) && host == supply_.held(Place::kHost);
}

}  // namespace tidemark::interpose
