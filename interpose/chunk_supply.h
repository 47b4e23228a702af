// Physical chunks for one device: from the daemon's lease, or created here within the budget when
// there is no daemon. Keeps a reserve of unmapped chunks, so that steady state asks nobody.
//
// Not here: where chunks are mapped (device_memory.h). Threads: the device's lock is held.

#ifndef TIDEMARK_INTERPOSE_CHUNK_SUPPLY_H_
#define TIDEMARK_INTERPOSE_CHUNK_SUPPLY_H_

#include "core/array.h"
#include "core/units.h"
#include "interpose/session.h"
#include "kernels/driver.h"

namespace tidemark::interpose {

struct Chunk {
  CUmemGenericAllocationHandle handle = 0;
  uint64_t id = 0;
  bool valid = false;
  CUdeviceptr side = 0;  // where it is mapped besides the arena, for copies; 0: nowhere yet
};

// Lets `device` read and write the chunk that is mapped at `at`.
bool AllowAccess(const kernels::Driver& driver, CUdevice device, CUdeviceptr at);

class ChunkSupply {
 public:
  void Init(const kernels::Driver* driver, CUdevice device, Session* session);

  // Bytes that may be held at `place`; chunks held above it are not taken away here.
  void SetBudget(Place place, core::Bytes bytes) { of(place).budget = bytes / core::kChunkBytes; }
  core::Bytes budget(Place place) const { return of(place).budget * core::kChunkBytes; }
  uint64_t budget_chunks(Place place) const { return of(place).budget; }
  // Device bytes that the driver serves itself are taken off the budget.
  void SetPassedThrough(core::Bytes bytes) {
    passed_through_ = (bytes + core::kChunkBytes - 1) / core::kChunkBytes;
  }

  // A chunk from the reserve, else a new one; `more` is how many the caller will take right after.
  // False: there is none within budget and capacity; nothing changed.
  bool Take(Place place, uint64_t more, Chunk* chunk);
  // Puts new chunks into the reserve, one at least, when `needed` will be taken. False: none.
  bool Refill(Place place, uint64_t needed);
  // A lease in two halves, so that the wait for the daemon can be had without the device's lock:
  // Ask changes nothing here and needs no lock; Accept puts what came into the reserve. Asking
  // above the known budget is allowed: so the daemon learns of a shortage.
  struct Offer {
    Answer answer = Answer::kAlone;
    uint32_t got = 0;
    int fds[TM_WIRE_MAX_FDS];
    uint64_t ids[TM_WIRE_MAX_FDS];
  };
  // How many chunks to ask for when `needed` are.
  uint64_t BatchOf(Place place, uint64_t needed) const;
  void Ask(Place place, uint64_t count, Offer* offer) const;
  void Accept(Place place, const Offer& offer);
  // Puts an unmapped chunk into the reserve, or lets it go when the job holds more than its budget.
  void Put(Place place, const Chunk& chunk);
  // Lets chunks of the reserve go until at most `keep` are left.
  void Trim(Place place, uint64_t keep);
  // Lets go of reserve until no more than the budget is held, as far as the reserve allows. Returns
  // the chunks still above it.
  uint64_t ShrinkToBudget(Place place);

  // Whether the budget allows more chunks than are held.
  bool HasRoom(Place place) const { return of(place).held < Allowed(place); }
  uint64_t room(Place place) const { return HasRoom(place) ? Allowed(place) - of(place).held : 0; }
  // Maps the chunk into a window beside the arena, where it stays until it is let go: so a copy
  // into it costs no mapping. Nothing changes where that is not possible.
  void GiveSide(Chunk* chunk);

  uint64_t held(Place place) const { return of(place).held; }
  uint64_t reserve(Place place) const { return of(place).reserve; }
  uint64_t peak_held() const { return of(Place::kDevice).peak; }

  // The properties with which chunks of `place` are created and mapped.
  CUmemAllocationProp Properties(Place place) const;

 private:
  struct Store {
    uint64_t budget = 0;
    uint64_t held = 0;
    uint64_t peak = 0;
    uint64_t reserve = 0;
    core::Array<Chunk> chunks;  // the first `reserve` of them
  };
  Store& of(Place place) { return stores_[static_cast<int>(place)]; }
  const Store& of(Place place) const { return stores_[static_cast<int>(place)]; }
  uint64_t Allowed(Place place) const;
  bool Create(Place place, Chunk* chunk);
  static bool Keep(Store* store, const Chunk& chunk);
  void LetGo(Place place, const Chunk* chunks, uint32_t count);

  const kernels::Driver* driver_ = nullptr;
  CUdevice device_ = 0;
  Session* session_ = nullptr;
  int numa_node_ = 0;
  static constexpr uint32_t kSides = 1 << 14;
  uint64_t passed_through_ = 0;
  CUdeviceptr window_ = 0;
  uint32_t sides_used_ = 0;  // slots of the window that were ever used
  uint32_t free_side_count_ = 0;
  uint32_t free_sides_[kSides];
  Store stores_[2];
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_CHUNK_SUPPLY_H_
