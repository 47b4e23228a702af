#include "core/planner/prices/fluid_course.h"

#include <algorithm>

namespace tidemark::core::planner {

CourseFinder::CourseFinder(const FluidStep& step)
    : step_(step), n_(static_cast<uint32_t>(step.demand.size())) {}

bool CourseFinder::Allocate() {
  size_t most_gaps = 0, most_stays = 0;
  for (const FluidClass& alike : step_.classes) {
    const FluidChain& chain = step_.chains[alike.chain];
    size_t stays = 0;
    for (uint32_t g = 0; g < chain.gap_count; ++g) {
      const FluidGap& gap = step_.gaps[chain.first_gap + g];
      stays += gap.next - gap.first;
    }
    most_gaps = std::max<size_t>(most_gaps, chain.gap_count);
    most_stays = std::max(most_stays, stays);
  }
  // The last gap of a chain may end one iteration behind the step's last operation.
  const size_t ops = 2 * size_t{n_} + 1;
  return away_.Resize(ops, 0) && host_.Resize(ops + 1, 0) && out_.Resize(3 * ops, 0) &&
         in_.Resize(3 * ops, 0) && cheap_out_.Resize(ops) && cheap_in_.Resize(ops) &&
         stay_.Resize(most_stays) && release_.Resize(most_gaps) && gain_.Resize(most_gaps) &&
         found_.Resize(step_.gaps.size());
}

void CourseFinder::SetAway(uint32_t stretch, double price) {
  for (size_t k = stretch; k < away_.size(); k += n_) away_[k] = price;
}

void CourseFinder::SetHost(uint32_t stretch, double price) {
  has_host_ = true;
  for (size_t k = stretch; k < host_.size(); k += n_) host_[k] = price;
}

void CourseFinder::SetLinks(uint32_t slot, double out, double in) {
  for (size_t k = slot; k < out_.size(); k += 3 * size_t{n_}) {
    out_[k] = out;
    in_[k] = in;
  }
}

void CourseFinder::Compare(uint32_t boundary) {
  const uint32_t slots = 3 * n_;
  for (uint32_t k = boundary; k < away_.size(); k += n_) {
    const uint32_t before = k == 0 ? slots : 3 * k;
    cheap_out_[k] = {out_[before - 1], 3 * k - 1};
    if (out_[before - 2] < cheap_out_[k].price) cheap_out_[k] = {out_[before - 2], 3 * k - 2};
    const uint32_t after = k + 1 == away_.size() ? 3 * k + 3 - slots : 3 * k + 3;
    cheap_in_[k] = {in_[3 * k + 2], 3 * k + 2};
    if (in_[after] < cheap_in_[k].price) cheap_in_[k] = {in_[after], 3 * k + 3};
  }
}

void CourseFinder::CompareAround(uint32_t slot) {
  const uint32_t at = slot / 3;
  if (slot % 3 == 0) Compare(at == 0 ? n_ - 1 : at - 1);
  if (slot % 3 == 2) Compare(at);
  if (slot % 3 != 0) Compare(at + 1 == n_ ? 0 : at + 1);
}

// The most that one byte of a gap gains by being away, and from which release on.
double CourseFinder::Gap(const FluidGap& gap, uint32_t first_stay, uint32_t* release) {
  double best = 0;
  *release = kNone;
  // The last boundary is followed by one wait only.
  const uint32_t last = 3 * gap.next + 1;
  Stay longer = {-in_[last] - host_[gap.next], gap.next, last};
  for (uint32_t r = gap.next; r-- > gap.first;) {
    if (r + 1 < gap.next) {
      const double late = cheap_in_[r + 1].price + host_[r + 2];
      const bool is_late = late < in_[3 * r + 4];
      const double gain = -(is_late ? late : in_[3 * r + 4]) - host_[r + 1];
      if (gain > longer.gain) longer = {gain, r + 1, is_late ? cheap_in_[r + 1].slot : 3 * r + 4};
    }
    longer.gain += away_[r] - host_[r];
    stay_[first_stay + r - gap.first] = longer;
    if (longer.gain <= best) continue;
    best = longer.gain;
    *release = r;
  }
  return best;
}

// Of a chain that is copied out: which gap is the first one to be away in, and when; the gaps
// behind it gain `later`, all together.
double CourseFinder::LeaveFirst(const FluidChain& chain, double later, uint32_t* first) {
  double best = 0;
  *first = chain.gap_count;
  uint32_t boundary = chain.from;
  Cheapest copy = {out_[3 * boundary], 3 * boundary};
  uint32_t stays = 0;
  for (uint32_t g = 0; g < chain.gap_count && later > 0; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    later -= gain_[g];
    for (uint32_t r = gap.first; r < gap.next; ++r) {
      // The longer the bytes are away, the more it gains, as long as the host is free.
      if (!has_host_ && stay_[stays + r - gap.first].gain + later - lowest_out_ <= best) break;
      while (boundary < r) {
        const double before = host_[boundary++];
        copy.price += before;
        if (out_[3 * boundary] < copy.price) copy = {out_[3 * boundary], 3 * boundary};
        const Cheapest& early = cheap_out_[boundary];
        if (early.price + before < copy.price) copy = {early.price + before, early.slot};
      }
      const double gain = stay_[stays + r - gap.first].gain + later - copy.price;
      if (gain <= best) continue;
      best = gain;
      *first = g;
      release_[g] = r;
      out_slot_ = copy.slot;
    }
    stays += gap.next - gap.first;
  }
  return best;
}

double CourseFinder::Find(uint32_t alike) {
  const FluidChain& chain = step_.chains[step_.classes[alike].chain];
  double gain = 0;
  uint32_t stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    gain_[g] = Gap(gap, stays, &release_[g]);
    stays += gap.next - gap.first;
    gain += gain_[g];
  }
  uint32_t first = 0;
  out_slot_ = kNone;
  if (!chain.is_clean) gain = LeaveFirst(chain, gain, &first);
  stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    FluidStay& found = found_[chain.first_gap + g];
    found = FluidStay();
    if (g >= first && release_[g] != kNone) {
      const Stay& stay = stay_[stays + release_[g] - gap.first];
      found = {release_[g], stay.reserve, stay.in_slot};
    }
    stays += gap.next - gap.first;
  }
  return gain;
}

}  // namespace tidemark::core::planner
