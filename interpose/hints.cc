// The job's end of proto/hints.h: what the program itself says about its memory, through
// libtidemark. Only what takes effect is answered with DONE; marks are kept and answered with KEPT,
// for nothing decides by them yet.
//
// Threads: any; takes one device's lock at a time.

#include "proto/hints.h"

#include <string.h>

#include "interpose/manager.h"
#include "interpose/options.h"
#include "interpose/process_memory.h"

namespace tidemark::interpose {

core::Bytes DeviceMemory::HostBytes(const core::Block* block) const {
  const core::ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  core::Bytes bytes = 0;
  for (core::ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) {
    if (table_.state(i) == core::ChunkState::kHost) bytes += core::kChunkBytes;
  }
  return bytes;
}

bool DeviceMemory::Pinned(const core::Block* block) const {
  const core::ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  for (core::ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) {
    if (table_.pinned(i)) return true;
  }
  return false;
}

bool DeviceMemory::Unpin(const core::Block* block, core::PinReason reason) {
  const core::ChunkIndex first = core::ChunkOf(block->offset);
  const core::ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  for (core::ChunkIndex i = first; i <= last; ++i) {
    if (table_.pins(i, reason) == 0) return false;
  }
  for (core::ChunkIndex i = first; i <= last; ++i) table_.Unpin(i, reason);
  return true;
}

void DeviceMemory::ForgetUse(core::Block* block) {
  block->last_use = 0;
  looked_ahead_ = ~core::LaunchNumber{0};  // what was seen before this does not count
  const core::ChunkIndex last = core::LastChunkOf(block->offset, block->size);
  // Neighbours in the same chunk bring their own use back before the next choice.
  for (core::ChunkIndex i = core::ChunkOf(block->offset); i <= last; ++i) table_.ForgetUse(i);
}

namespace {

constexpr uint32_t kPhases = 4;
constexpr uint32_t kClasses = TM_WIRE_CLASS_UNKNOWN + 1;

constinit std::atomic<uint64_t> steps{0};

// Runs `action(memory, block)` on every live buffer that [address, address + bytes) touches, under
// the device's lock; its outcomes other than DONE are passed on, the last one wins. The action must
// not free or allocate.
template <typename Action>
int OnBuffers(uint64_t address, uint64_t bytes, Action action) {
  Guard guard;
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return TM_HINTS_INACTIVE;
  if (bytes == 0 || address + bytes < address) return TM_HINTS_BAD_ARGUMENT;
  DeviceMemory* memory = process->Owner(address);
  if (memory == nullptr) return TM_HINTS_NOT_MANAGED;
  MutexLock lock(&memory->mutex);
  int outcome = TM_HINTS_NOT_MANAGED;
  for (CUdeviceptr at = address; at < address + bytes && memory->Contains(at);) {
    core::Block* block = memory->Find(at);
    if (block == nullptr) break;
    const int one = action(memory, block);
    if (outcome == TM_HINTS_NOT_MANAGED || one != TM_HINTS_DONE) outcome = one;
    at = memory->AddressOf(block) + block->size;
  }
  return outcome;
}

// Brings buffers back as a launch that uses them all would. Not noted as an access: it is none.
struct Bring {
  bool pin = false;
  core::LaunchNumber launch = 0;

  int operator()(DeviceMemory* memory, core::Block* block) {
    if (launch == 0) launch = memory->NextHint();
    if (pin) memory->Pin(block, core::PinReason::kRegistered);
    block->last_use = launch;
    if (memory->OnHost(block)) memory->MakeResident(&block, 1, launch);
    return memory->OnHost(block) ? TM_HINTS_IN_PART : TM_HINTS_DONE;
  }
};

int Step() {
  if (GetProcessMemory() == nullptr) return TM_HINTS_INACTIVE;
  steps.fetch_add(1, std::memory_order_relaxed);
  return TM_HINTS_KEPT;
}

int Phase(uint32_t phase) {
  if (GetProcessMemory() == nullptr) return TM_HINTS_INACTIVE;
  return phase < kPhases ? TM_HINTS_KEPT : TM_HINTS_BAD_ARGUMENT;
}

int RegisterBuffer(uint64_t address, uint64_t bytes, uint32_t buffer_class) {
  if (GetProcessMemory() == nullptr) return TM_HINTS_INACTIVE;
  if (buffer_class >= kClasses) return TM_HINTS_BAD_ARGUMENT;
  return OnBuffers(address, bytes, [buffer_class](DeviceMemory*, core::Block* block) {
    block->kind = static_cast<uint8_t>(buffer_class);
    return TM_HINTS_DONE;
  });
}

int WillUse(uint64_t address, uint64_t bytes) { return OnBuffers(address, bytes, Bring()); }

int DoneWith(uint64_t address, uint64_t bytes) {
  return OnBuffers(address, bytes, [](DeviceMemory* memory, core::Block* block) {
    memory->ForgetUse(block);
    return TM_HINTS_DONE;
  });
}

int UnpinRange(uint64_t address, uint64_t bytes) {
  return OnBuffers(address, bytes, [](DeviceMemory* memory, core::Block* block) {
    return memory->Unpin(block, core::PinReason::kRegistered) ? TM_HINTS_DONE
                                                              : TM_HINTS_BAD_ARGUMENT;
  });
}

// All of the range or nothing of it.
int PinRange(uint64_t address, uint64_t bytes) {
  const int outcome = OnBuffers(address, bytes, Bring{.pin = true});
  if (outcome == TM_HINTS_IN_PART) UnpinRange(address, bytes);
  return outcome;
}

void Fill(DeviceMemory* memory, const Session& session, tm_hints_device* out) {
  tm_wire_counters_device figures;
  memory->FillCounters(&figures);
  *out = tm_hints_device();
  out->device = static_cast<uint32_t>(memory->device());
  out->attached = session.attached() ? 1 : 0;
  out->budget_bytes = memory->budget_bytes();
  out->requested_bytes = figures.requested_bytes;
  out->allocated_bytes = figures.allocated_bytes;
  out->reserved_bytes = figures.reserved_bytes;
  out->host_resident_bytes = figures.host_resident_bytes;
  out->pinned_bytes = figures.pinned_bytes;
  out->peak_reserved_bytes = figures.peak_reserved_bytes;
  out->moved_out_bytes = figures.moved_out_bytes_total;
  out->moved_in_bytes = figures.moved_in_bytes_total;
  out->stall_ns = figures.stall_ns_total;
  out->launches = figures.launches_total;
  out->steps = steps.load(std::memory_order_relaxed);
}

int Devices(tm_hints_device* out, uint64_t room, uint64_t* count) {
  Guard guard;
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return TM_HINTS_INACTIVE;
  *count = 0;
  process->EachDevice([&](DeviceMemory* memory) {
    if (*count < room) Fill(memory, process->session, &out[*count]);
    ++*count;
  });
  return TM_HINTS_DONE;
}

int Buffers(tm_hints_buffer* out, uint64_t room, uint64_t* count) {
  Guard guard;
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return TM_HINTS_INACTIVE;
  *count = 0;
  process->EachDevice([&](DeviceMemory* memory) {
    for (const core::Block* block = memory->first_block(); block != nullptr; block = block->next) {
      if (block->state != core::Block::State::kLive) continue;
      if (*count < room) {
        out[*count] = {memory->AddressOf(block),
                       block->requested,
                       block->tag,
                       memory->HostBytes(block),
                       block->last_use,
                       static_cast<uint32_t>(memory->device()),
                       block->kind,
                       memory->Pinned(block) ? 1u : 0u,
                       0};
      }
      ++*count;
    }
  });
  return TM_HINTS_DONE;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const tm_hooks_v1 tidemark_hooks_v1 = {
    sizeof(tm_hooks_v1), 0,       Step,   Phase, RegisterBuffer, WillUse, DoneWith, PinRange,
    UnpinRange,          Devices, Buffers};

}  // namespace tidemark::interpose
