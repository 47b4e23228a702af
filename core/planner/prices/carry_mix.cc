// A mix that starts from one of the same step in fewer stretches: its prices, and its courses at
// the times that are nearest. That takes a small part of the rounds that a mix needs from prices
// alone.

#include "core/planner/prices/fluid_mix.h"
#include "core/planner/prices/fluid_nesting.h"

namespace tidemark::core::planner {

bool FluidMix::Start(const FluidMix& coarser, double stall) {
  FluidNesting nesting(coarser.step_, step_);
  SpreadCopies outs(coarser.step_, step_, nesting), ins(coarser.step_, step_, nesting);
  if (!nesting.Init() || !Allocate() || !load_.Start(coarser.load_, nesting, stall)) return false;
  const auto slots = static_cast<uint32_t>(3 * coarser.step_.demand.size());
  if (!outs.Init() || !ins.Init()) return false;
  for (uint32_t slot = 0; slot < slots; ++slot) {
    outs.SetAll(slot, coarser.load_.out_bytes(slot));
    ins.SetAll(slot, coarser.load_.in_bytes(slot));
  }
  for (uint32_t c = 0; c < step_.classes.size(); ++c) {
    if (nesting.CoarseChain(c) == kNone) {
      StayAll(c);
    } else {
      Carry(coarser, nesting, c, &outs, &ins);
    }
  }
  AddAll();
  return true;
}

void FluidMix::StayAll(uint32_t c) {
  CourseOf(c, 0) = {step_.classes[c].bytes, kNone};
  of_classes_[c].count = 1;
  for (uint32_t g = 0; g < GapsOf(c); ++g) stays_[StaysAt(c, 0) + g] = FluidStay();
}

// To each course of the class's coarse one the same share of its own bytes.
void FluidMix::Carry(const FluidMix& coarser, const FluidNesting& nesting, uint32_t c,
                     SpreadCopies* outs, SpreadCopies* ins) {
  const FluidChain& chain = ChainOf(c);
  const FluidChain& coarse = coarser.step_.chains[nesting.CoarseChain(c)];
  const double share = step_.classes[c].bytes / coarser.step_.classes[coarse.alike].bytes;
  uint32_t& count = of_classes_[c].count;
  double left = step_.classes[c].bytes;
  for (uint32_t k = 0; k < coarser.of_classes_[coarse.alike].count; ++k) {
    const Course& from = coarser.CourseOf(coarse.alike, k);
    if (from.bytes <= 0 || count == of_classes_[c].most) continue;
    const double bytes = from.bytes * share;
    const uint32_t out_slot = from.out_slot == kNone ? kNone : outs->Slot(from.out_slot, bytes);
    CourseOf(c, count) = {bytes, out_slot};
    left -= bytes;
    uint32_t seen = 0;  // gaps of the coarse chain, which lacks some
    for (uint32_t g = 0; g < chain.gap_count; ++g) {
      const FluidGap& gap = step_.gaps[chain.first_gap + g];
      FluidStay& stay = stays_[StaysAt(c, count) + g];
      stay = FluidStay();
      if (seen == coarse.gap_count) continue;
      if (coarser.step_.gaps[coarse.first_gap + seen].use != gap.use) continue;
      const size_t at = coarser.StaysAt(coarse.alike, k) + seen++;
      stay = CarryStay(coarser.stays_[at], gap, out_slot, bytes, ins);
    }
    ++count;
  }
  CourseOf(c, 0).bytes += left;  // of courses for which there was no place
}

// Away for as long as its copies let it: that is never worse.
FluidStay FluidMix::CarryStay(const FluidStay& coarse, const FluidGap& gap, uint32_t out_slot,
                              double bytes, SpreadCopies* ins) const {
  FluidStay stay;
  if (!coarse.is_away()) return stay;
  stay.in_slot = ins->Slot(coarse.in_slot, bytes);
  stay.reserve = (stay.in_slot - 1) / 3;
  stay.release = gap.first;
  if (out_slot != kNone) stay.release = std::max(stay.release, (out_slot + 2) / 3);
  return stay.release < stay.reserve ? stay : FluidStay();
}

}  // namespace tidemark::core::planner
