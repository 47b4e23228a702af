// A fixed sequence of numbers that look random (SplitMix64): a search that draws from it goes the
// same way on every computer. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_DICE_H_
#define TIDEMARK_CORE_PLANNER_DICE_H_

#include <cstdint>

namespace tidemark::core::planner {

class Dice {
 public:
  uint32_t Below(uint32_t sides) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<uint32_t>((z ^ (z >> 31)) % sides);
  }

 private:
  uint64_t state_ = 0;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_DICE_H_
