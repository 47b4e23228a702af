// The lock-free table of the runtime against a map, also while another thread reads.

#include "simgpu/runtime/pointer_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

namespace simgpu::runtime {
namespace {

const void* Key(unsigned number) {
  return reinterpret_cast<const void*>(uintptr_t{0x400000} + 16 * uintptr_t{number});
}

TEST(PointerTable, IsAMap) {
  PointerTable<int> table;
  std::map<const void*, int*> model;
  std::vector<int> values(5000);
  std::mt19937 random(7);
  for (int step = 0; step < 50000; ++step) {
    const void* key = Key(static_cast<unsigned>(random() % 5000));
    if (random() % 3 == 0) {
      table.Erase(key);
      model.erase(key);
    } else {
      int* value = &values[random() % values.size()];
      table.Insert(key, value);
      model[key] = value;
    }
  }
  for (unsigned i = 0; i < 5000; ++i) {
    const auto found = model.find(Key(i));
    EXPECT_EQ(table.Find(Key(i)), found == model.end() ? nullptr : found->second);
  }
  EXPECT_EQ(table.Find(nullptr), nullptr);
}

TEST(PointerTable, ReadersSeeEveryFinishedInsertWhileItGrows) {
  PointerTable<int> table;
  static int value = 0;
  std::atomic<unsigned> inserted{0};
  std::atomic<bool> lost{false};
  std::thread reader([&] {
    while (inserted.load(std::memory_order_acquire) < 20000) {
      const unsigned now = inserted.load(std::memory_order_acquire);
      if (now > 0 && table.Find(Key(now - 1)) != &value) lost = true;
    }
  });
  for (unsigned i = 0; i < 20000; ++i) {
    table.Insert(Key(i), &value);
    inserted.store(i + 1, std::memory_order_release);
  }
  reader.join();
  EXPECT_FALSE(lost);
}

}  // namespace
}  // namespace simgpu::runtime
