// The launch gate of interpose/manager.h: finds which buffers a piece of work may touch, makes them
// resident, inserts the waits its stream lacks, and keeps moves away until the driver took the
// work.
//
// Threads: any. Several devices' locks are taken in the order of their numbers and released before
// the driver is called; leaving takes no lock.

#include <string.h>

#include "interpose/function_info.h"
#include "interpose/manager.h"
#include "interpose/process_memory.h"

namespace tidemark::interpose {
namespace {

// Addresses that look like arena memory. More than fit are left out: reached over the link if
// evicted.
struct Touched {
  static constexpr int kMost = 128;
  CUdeviceptr address[kMost];
  int count = 0;
  uint32_t devices = 0;
  bool graph = false;  // and whatever a graph was captured with

  void Add(ProcessMemory* process, CUdeviceptr value) {
    for (int i = 0; i < process->device_count; ++i) {
      DeviceMemory* memory = process->devices[i];
      if (memory == nullptr || !memory->Contains(value)) continue;
      devices |= 1u << i;
      if (count == kMost) return;
      address[count++] = value;
      return;
    }
  }
  void Scan(ProcessMemory* process, const void* bytes, size_t size) {
    const char* at = static_cast<const char*>(bytes);
    for (size_t i = 0; i + sizeof(CUdeviceptr) <= size; i += sizeof(CUdeviceptr)) {
      CUdeviceptr value;
      memcpy(&value, at + i, sizeof(value));
      Add(process, value);
    }
  }
};

void ScanExtra(ProcessMemory* process, void** extra, Touched* touched) {
  const void* buffer = nullptr;
  size_t size = 0;
  for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
    if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = at[1];
    } else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<size_t*>(at[1]);
    } else {
      return;  // not a list we know
    }
  }
  if (buffer != nullptr) touched->Scan(process, buffer, size);
}

void ScanParameters(ProcessMemory* process, CUfunction function, void** params, Touched* touched) {
  const FunctionInfo* info = GetFunctionInfo(*process->driver, function);
  if (info == nullptr) return;
  for (uint32_t i = 0; i < info->count; ++i) {
    if (info->parameters[i].size < sizeof(CUdeviceptr) || params[i] == nullptr) continue;
    touched->Scan(process, params[i], info->parameters[i].size);
  }
}

// What one device has to do with the work. The lock is held.
class DeviceGate {
 public:
  DeviceGate(DeviceMemory* memory, const StreamRecord* stream, uint64_t what)
      : memory_(memory), stream_(stream), launch_(memory->NextLaunch(what)) {}

  void Touch(CUdeviceptr address) {
    if (!memory_->Contains(address)) return;
    core::Block* block = memory_->Find(address);
    if (block == nullptr || !Note(block) || memory_->tables.empty()) return;
    int count = 0;
    const CUdeviceptr* targets = memory_->tables.Targets(memory_->AddressOf(block), &count);
    for (int i = 0; targets != nullptr && i < count; ++i) {
      core::Block* target = memory_->Find(targets[i]);
      if (target != nullptr) Note(target);
    }
  }

  void Finish() {
    memory_->EndLaunch();
    if (count_ != 0) memory_->MakeResident(blocks_, count_, launch_);
    memory_->inside.Enter();
  }

 private:
  static constexpr int kMost = 256;

  // False: seen already in this launch.
  bool Note(core::Block* block) {
    if (block->last_use == launch_) return false;
    memory_->Touch(block, launch_);
    memory_->ShieldCopies(block, stream_);
    if (memory_->streams.capturing()) {
      // What a graph was captured with must stay where it is for every replay.
      if (stream_ == nullptr || stream_->capturing || InCapture()) {
        memory_->Pin(block, core::PinReason::kGraph);
      }
      return true;
    }
    if (memory_->anything_on_host() && count_ < kMost && memory_->OnHost(block)) {
      blocks_[count_++] = block;
    }
    return true;
  }
  // A stream may have joined another one's capture through an event.
  bool InCapture() const { return memory_->streams.InCapture(stream_); }

  DeviceMemory* memory_;
  const StreamRecord* stream_;
  core::LaunchNumber launch_;
  core::Block* blocks_[kMost];
  int count_ = 0;
};

struct Pass {
  uint32_t devices = 0;
  StreamRecord* stream = nullptr;
};

// `what` is the same when the job does the same again, see core/iteration.h.
Pass Enter(ProcessMemory* process, CUstream stream, const Touched& touched, uint64_t what) {
  Pass pass;
  CUcontext context = nullptr;
  DeviceMemory* home = process->HomeOf(stream, &context);
  pass.devices = touched.devices | (home != nullptr ? 1u << home->device() : 0);
  for (uint32_t left = pass.devices; left != 0; left &= left - 1) {
    process->devices[__builtin_ctz(left)]->mutex.Lock();
  }
  if (home != nullptr) {
    home->NoteContext(context);
    pass.stream = home->streams.Find(stream, context);
    if (pass.stream != nullptr) home->streams.BeforeWork(pass.stream);
  }
  for (uint32_t left = pass.devices; left != 0; left &= left - 1) {
    DeviceMemory* memory = process->devices[__builtin_ctz(left)];
    memory->FollowPolicy();
    memory->StartCopies();
    const StreamRecord* stream_record = memory == home ? pass.stream : nullptr;
    const uint64_t number = stream_record != nullptr ? stream_record->number : 0;
    if (touched.graph) memory->ShieldAllCopies(stream_record);
    DeviceGate gate(memory, stream_record, what ^ number << 48);
    for (int i = 0; i < touched.count; ++i) gate.Touch(touched.address[i]);
    gate.Finish();
  }
  for (uint32_t left = pass.devices; left != 0; left &= left - 1) {
    process->devices[__builtin_ctz(left)]->mutex.Unlock();
  }
  return pass;
}

// The driver takes graph memory when it takes the launch, not before.
void CountGraphMemory(ProcessMemory* process, uint32_t devices) {
  for (uint32_t left = devices; left != 0; left &= left - 1) {
    DeviceMemory* memory = process->devices[__builtin_ctz(left)];
    MutexLock lock(&memory->mutex);
    if (memory->graphs_allocate) memory->CountGraphMemory();
  }
}

}  // namespace

GatePass::GatePass(const Guard& guard, CUstream stream, const GateSpan* spans, size_t count) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return;
  Touched touched;
  for (size_t i = 0; i < count; ++i) {
    // A copy may run over several buffers of one large reservation; its ends tell enough.
    touched.Add(process, spans[i].base);
    if (spans[i].bytes > 1) {
      touched.Add(process, spans[i].base + spans[i].bytes - 1);
    }
  }
  const Pass pass = Enter(process, stream, touched, 1 + count);
  devices_ = pass.devices;
  stream_ = pass.stream;
  process_ = process;
}

GatePass::GatePass(const Guard& guard, CUstream stream, CUfunction function, void** params,
                   void** extra) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return;
  Touched touched;
  if (params != nullptr) {
    ScanParameters(process, function, params, &touched);
  } else if (extra != nullptr) {
    ScanExtra(process, extra, &touched);
  }
  const Pass pass = Enter(process, stream, touched, reinterpret_cast<uint64_t>(function));
  devices_ = pass.devices;
  stream_ = pass.stream;
  process_ = process;
}

GatePass::GatePass(const Guard& guard, CUstream stream, CUgraphExec graph) {
  ProcessMemory* process = GetProcessMemory();
  if (process == nullptr || !guard.entered()) return;
  Touched touched;
  touched.graph = true;
  const Pass pass = Enter(process, stream, touched, reinterpret_cast<uint64_t>(graph));
  graph_ = true;
  devices_ = pass.devices;
  stream_ = pass.stream;
  process_ = process;
}

GatePass::~GatePass() {
  if (process_ == nullptr) return;
  auto* process = static_cast<ProcessMemory*>(process_);
  // Before the gate opens: a free that comes after this call must see the work.
  if (stream_ != nullptr) StreamBook::NoteWork(static_cast<StreamRecord*>(stream_));
  for (uint32_t left = devices_; left != 0; left &= left - 1) {
    process->devices[__builtin_ctz(left)]->inside.Leave();
  }
  if (graph_) CountGraphMemory(process, devices_);
  process->PublishSometimes();
}

}  // namespace tidemark::interpose
