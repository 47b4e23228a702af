// Implementation of interpose/chunk_supply.h. Threads: as the header says.

#include "interpose/chunk_supply.h"

#include <unistd.h>

#include "interpose/log.h"

namespace tidemark::interpose {

bool AllowAccess(const kernels::Driver& driver, CUdevice device, CUdeviceptr at) {
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver.cuMemSetAccess(at, core::kChunkBytes, &access, 1) == CUDA_SUCCESS;
}

void ChunkSupply::Init(const kernels::Driver* driver, CUdevice device, Session* session) {
  driver_ = driver;
  device_ = device;
  session_ = session;
  int node = -1;
  if (driver->cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device) ==
          CUDA_SUCCESS &&
      node > 0) {
    numa_node_ = node;
  }
}

CUmemAllocationProp ChunkSupply::Properties(Place place) const {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (place == Place::kDevice) {
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device_;
  } else {
    prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
    prop.location.id = numa_node_;
  }
  return prop;
}

uint64_t ChunkSupply::Allowed(Place place) const {
  const uint64_t budget = of(place).budget;
  if (place == Place::kHost) return budget;
  return budget > passed_through_ ? budget - passed_through_ : 0;
}

bool ChunkSupply::Take(Place place, uint64_t more, Chunk* chunk) {
  Store& store = of(place);
  if (store.reserve == 0 && !Refill(place, more + 1)) return false;
  *chunk = store.chunks[--store.reserve];
  return true;
}

// A few more than needed, so that growing does not ask for each chunk, and not many more: what is
// held and not used is a cost that the job's peak shows.
uint64_t ChunkSupply::BatchOf(Place place, uint64_t needed) const {
  uint64_t batch = of(place).held / 32;
  if (batch < 4) batch = 4;
  if (batch < needed) batch = needed;
  if (batch > TM_WIRE_MAX_FDS) batch = TM_WIRE_MAX_FDS;
  return batch < room(place) ? batch : room(place);
}

void ChunkSupply::Ask(Place place, uint64_t count, Offer* offer) const {
  if (count > TM_WIRE_MAX_FDS) count = TM_WIRE_MAX_FDS;
  offer->answer =
      session_->Lease(static_cast<uint32_t>(device_), place, static_cast<uint32_t>(count),
                      offer->fds, offer->ids, &offer->got);
}

void ChunkSupply::Accept(Place place, const Offer& offer) {
  Store& store = of(place);
  for (uint32_t i = 0; i < offer.got; ++i) {
    Chunk chunk{0, offer.ids[i], true, 0};
    // The driver takes the descriptor's number as a pointer and does not keep it.
    const CUresult result = driver_->cuMemImportFromShareableHandle(
        &chunk.handle, reinterpret_cast<void*>(static_cast<uintptr_t>(offer.fds[i])),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(offer.fds[i]);
    if (result == CUDA_SUCCESS && Keep(&store, chunk)) {
      ++store.held;
      continue;
    }
    if (result == CUDA_SUCCESS) driver_->cuMemRelease(chunk.handle);
    session_->Return(static_cast<uint32_t>(device_), place, &offer.ids[i], 1);
  }
  if (store.held > store.peak) store.peak = store.held;
}

// With a daemon its answer stands; without one the job creates what its budget allows.
bool ChunkSupply::Refill(Place place, uint64_t needed) {
  Store& store = of(place);
  const uint64_t before = store.reserve;
  if (!HasRoom(place)) return false;
  Offer offer;
  Ask(place, BatchOf(place, needed), &offer);
  Chunk chunk;
  if (offer.answer == Answer::kAlone && Create(place, &chunk)) Put(place, chunk);
  Accept(place, offer);
  return store.reserve > before;
}

bool ChunkSupply::Create(Place place, Chunk* chunk) {
  const CUmemAllocationProp prop = Properties(place);
  if (driver_->cuMemCreate(&chunk->handle, core::kChunkBytes, &prop, 0) != CUDA_SUCCESS) {
    return false;
  }
  chunk->id = session_->AddOwn(static_cast<uint32_t>(device_), place);
  if (chunk->id == 0) {
    driver_->cuMemRelease(chunk->handle);
    return false;
  }
  chunk->valid = true;
  ++of(place).held;
  return true;
}

void ChunkSupply::Put(Place place, const Chunk& chunk) {
  Store& store = of(place);
  if (store.held > Allowed(place) || !Keep(&store, chunk)) LetGo(place, &chunk, 1);
}

bool ChunkSupply::Keep(Store* store, const Chunk& chunk) {
  if (store->reserve == store->chunks.size() && !store->chunks.Append(chunk)) return false;
  store->chunks[store->reserve++] = chunk;
  return true;
}

void ChunkSupply::GiveSide(Chunk* chunk) {
  if (chunk->side != 0) return;
  if (window_ == 0 && driver_->cuMemAddressReserve(&window_, kSides * core::kChunkBytes,
                                                   core::kChunkBytes, 0, 0) != CUDA_SUCCESS) {
    window_ = 0;
    return;
  }
  if (free_side_count_ == 0 && sides_used_ == kSides) return;
  const uint32_t slot = free_side_count_ != 0 ? free_sides_[--free_side_count_] : sides_used_++;
  const CUdeviceptr at = window_ + slot * core::kChunkBytes;
  if (driver_->cuMemMap(at, core::kChunkBytes, 0, chunk->handle, 0) == CUDA_SUCCESS) {
    if (AllowAccess(*driver_, device_, at)) {
      chunk->side = at;
      return;
    }
    // A slot that stays mapped is lost, and so is the chunk's memory until the process ends.
    if (driver_->cuMemUnmap(at, core::kChunkBytes) != CUDA_SUCCESS) return;
  }
  free_sides_[free_side_count_++] = slot;
}

// Memory first, then the message: the daemon may hand the chunk to another job at once.
void ChunkSupply::LetGo(Place place, const Chunk* chunks, uint32_t count) {
  uint64_t ids[TM_WIRE_MAX_FDS];
  for (uint32_t i = 0; i < count; ++i) {
    if (chunks[i].side != 0 &&
        driver_->cuMemUnmap(chunks[i].side, core::kChunkBytes) == CUDA_SUCCESS) {
      free_sides_[free_side_count_++] =
          static_cast<uint32_t>((chunks[i].side - window_) / core::kChunkBytes);
    }
    driver_->cuMemRelease(chunks[i].handle);
    ids[i] = chunks[i].id;
  }
  session_->Return(static_cast<uint32_t>(device_), place, ids, count);
  of(place).held -= count;
}

void ChunkSupply::Trim(Place place, uint64_t keep) {
  Store& store = of(place);
  while (store.reserve > keep) {
    uint64_t count = store.reserve - keep;
    if (count > TM_WIRE_MAX_FDS) count = TM_WIRE_MAX_FDS;
    store.reserve -= count;
    LetGo(place, &store.chunks[store.reserve], static_cast<uint32_t>(count));
  }
}

uint64_t ChunkSupply::ShrinkToBudget(Place place) {
  Store& store = of(place);
  const uint64_t allowed = Allowed(place);
  const uint64_t above = store.held > allowed ? store.held - allowed : 0;
  Trim(place, store.reserve > above ? store.reserve - above : 0);
  return store.held > allowed ? store.held - allowed : 0;
}

}  // namespace tidemark::interpose
