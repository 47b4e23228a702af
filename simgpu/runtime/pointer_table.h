// A map from host addresses to records, read without a lock: the launch path looks up its kernel
// here. Open addressing; a key once entered keeps its slot, and an erased one has a null value.
//
// Threads: Find at any time; Insert and Erase by one thread at a time (the caller locks).

#ifndef SIMGPU_RUNTIME_POINTER_TABLE_H_
#define SIMGPU_RUNTIME_POINTER_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace simgpu::runtime {

template <typename Record>
class PointerTable {
 public:
  Record* Find(const void* key) const {
    const Slots* slots = slots_.load(std::memory_order_acquire);
    if (slots == nullptr || key == nullptr) return nullptr;
    for (size_t i = Hash(key);; ++i) {
      const Slot& slot = slots->slot[i & slots->mask];
      const void* found = slot.key.load(std::memory_order_acquire);
      if (found == key) return slot.value.load(std::memory_order_acquire);
      if (found == nullptr) return nullptr;
    }
  }

  void Insert(const void* key, Record* value) {
    Slots* slots = slots_.load(std::memory_order_relaxed);
    if (slots == nullptr || 2 * (used_ + 1) > slots->mask) slots = Grow(slots);
    Put(slots, key, value);
  }

  void Erase(const void* key) {
    if (Find(key) != nullptr) Put(slots_.load(std::memory_order_relaxed), key, nullptr);
  }

 private:
  struct Slot {
    std::atomic<const void*> key{nullptr};
    std::atomic<Record*> value{nullptr};
  };
  struct Slots {
    size_t mask;
    Slot* slot;
    const Slots* smaller;  // the table before, kept for readers that may still walk it
  };
  static constexpr size_t kFirstSize = 1024;

  static size_t Hash(const void* key) {
    const auto bits = reinterpret_cast<uintptr_t>(key);
    return static_cast<size_t>((bits * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
  }

  void Put(Slots* slots, const void* key, Record* value) {
    for (size_t i = Hash(key);; ++i) {
      Slot& slot = slots->slot[i & slots->mask];
      const void* found = slot.key.load(std::memory_order_relaxed);
      if (found != nullptr && found != key) continue;
      slot.value.store(value, std::memory_order_release);
      if (found == nullptr) {
        slot.key.store(key, std::memory_order_release);
        ++used_;
      }
      return;
    }
  }

  // All smaller tables together take less than the new one.
  Slots* Grow(const Slots* old) {
    const size_t size = old == nullptr ? kFirstSize : 2 * (old->mask + 1);
    auto* grown = new Slots{size - 1, new Slot[size], old};
    used_ = 0;
    for (size_t i = 0; old != nullptr && i <= old->mask; ++i) {
      const void* key = old->slot[i].key.load(std::memory_order_relaxed);
      Record* value = old->slot[i].value.load(std::memory_order_relaxed);
      if (key != nullptr && value != nullptr) Put(grown, key, value);
    }
    slots_.store(grown, std::memory_order_release);
    return grown;
  }

  std::atomic<Slots*> slots_{nullptr};
  size_t used_ = 0;
};

}  // namespace simgpu::runtime

#endif  // SIMGPU_RUNTIME_POINTER_TABLE_H_
