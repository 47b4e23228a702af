#include "core/planner/prices/fluid_mix.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kFewCourses = 16;  // of a class, beside one for each stretch of its gaps: with
                                      // fewer than it needs the mix comes nowhere near
constexpr uint32_t kMoves = 3;        // of bytes, in one visit of a class
constexpr double kNothing = 1e-9;     // of a class's bytes, or of the highest price
constexpr uint64_t kWorkOfGap = 10;   // in units of kPriceWork; a stretch of a gap is 1

// What is only in the span `from`, with -1, and only in `to`, with 1. Some of it may be empty, or
// end before it begins.
template <typename Span, typename Add>
void ForDifference(const Span& from, const Span& to, const Add& add) {
  if (from.to <= to.from || to.to <= from.from) {
    add(from.from, from.to, -1);
    add(to.from, to.to, 1);
    return;
  }
  add(from.from, to.from, -1);
  add(to.from, from.from, 1);
  add(to.to, from.to, -1);
  add(from.to, to.to, 1);
}

}  // namespace

FluidMix::FluidMix(const FluidStep& step, const Machine& machine)
    : step_(step), finder_(step), load_(step, machine, &finder_) {}

bool FluidMix::Allocate() {
  const auto classes = static_cast<uint32_t>(step_.classes.size());
  if (!of_classes_.Resize(classes)) return false;
  size_t courses = 0, stays = 0;
  for (uint32_t c = 0; c < classes; ++c) {
    const uint32_t most = kFewCourses + step_.classes[c].size;
    of_classes_[c] = {courses, stays, most, 0};
    courses += most;
    stays += size_t{most} * GapsOf(c);
  }
  const size_t sums = 2 * step_.demand.size() + 3;
  return finder_.Allocate() && courses_.Resize(courses) && stays_.Resize(stays) &&
         sums_.Resize(sums) && host_sums_.Resize(sums);
}

// With all bytes of a class on the course that is best at the first prices.
bool FluidMix::Start(const FluidPrices& prices, double stall) {
  if (!Allocate() || !load_.Start(prices, stall)) return false;
  const auto classes = static_cast<uint32_t>(step_.classes.size());
  for (uint32_t c = 0; c < classes; ++c) {
    finder_.Find(c);
    CourseOf(c, AddFound(c)).bytes = step_.classes[c].bytes;
  }
  AddAll();
  return true;
}

// What all courses take, where nothing was taken.
void FluidMix::AddAll() {
  for (uint32_t c = 0; c < step_.classes.size(); ++c) {
    for (uint32_t k = 0; k < of_classes_[c].count; ++k) {
      const double bytes = CourseOf(c, k).bytes;
      AddCopies(c, k, bytes);
      AddAways(c, k, bytes);
      const Span held = HeldBy(c, k);
      if (load_.minds_host()) load_.AddHost(held.from, held.to, bytes);
    }
  }
  load_.Follow();
}

void FluidMix::Improve(uint64_t most_work) {
  const auto classes = static_cast<uint32_t>(step_.classes.size());
  for (; work() < most_work; ++round_) {
    for (uint32_t c = 0; c < classes; ++c) Visit(round_ % 2 == 0 ? c : classes - 1 - c);
    load_.Follow();
  }
}

void FluidMix::Visit(uint32_t c) {
  finder_.Find(c);
  work_ += step_.classes[c].size + kWorkOfGap * GapsOf(c);
  AddFound(c);
  for (uint32_t k = 0; k < kMoves; ++k) {
    if (!MoveBytes(c)) break;
  }
}

// The course that was found becomes one of the class's, if it is not; returns its place.
uint32_t FluidMix::AddFound(uint32_t c) {
  uint32_t& count = of_classes_[c].count;
  uint32_t least = 0;
  for (uint32_t k = 0; k < count; ++k) {
    if (IsFound(c, k)) return k;
    if (CourseOf(c, k).bytes < CourseOf(c, least).bytes) least = k;
  }
  if (count == of_classes_[c].most) {
    Shift(c, least, least == 0 ? 1 : 0, CourseOf(c, least).bytes);
  } else if (count == 0 || CourseOf(c, least).bytes > 0) {
    least = count++;
  }
  CourseOf(c, least) = {0, finder_.out_slot()};
  const FluidChain& chain = ChainOf(c);
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    stays_[StaysAt(c, least) + g] = finder_.stay(chain.first_gap + g);
  }
  return least;
}

bool FluidMix::IsFound(uint32_t c, uint32_t course) const {
  if (CourseOf(c, course).out_slot != finder_.out_slot()) return false;
  const FluidChain& chain = ChainOf(c);
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    if (!(stays_[StaysAt(c, course) + g] == finder_.stay(chain.first_gap + g))) return false;
  }
  return true;
}

// From the dearest course to the cheapest. False: all are equal.
bool FluidMix::MoveBytes(uint32_t c) {
  SumPrices(c);
  uint32_t cheapest = 0, dearest = kNone;
  double least = 0, most = 0;
  for (uint32_t k = 0; k < of_classes_[c].count; ++k) {
    const double cost = Cost(c, k);
    if (k == 0 || cost < least) {
      least = cost;
      cheapest = k;
    }
    if (CourseOf(c, k).bytes > 0 && (dearest == kNone || cost > most)) {
      most = cost;
      dearest = k;
    }
  }
  work_ += of_classes_[c].count * (1 + GapsOf(c)) / 2;
  if (dearest == cheapest || most - least <= kNothing * load_.highest_away()) return false;
  const double best = (most - least) / Slope(c, dearest, cheapest);
  const double all = CourseOf(c, dearest).bytes;
  Shift(c, dearest, cheapest, all - best < kNothing * step_.classes[c].bytes ? all : best);
  return true;
}

void FluidMix::SumPrices(uint32_t c) {
  const FluidChain& chain = ChainOf(c);
  const uint32_t end = step_.gaps[chain.first_gap + chain.gap_count - 1].next + 1;
  sums_from_ =
      load_.minds_host() && !chain.is_clean ? chain.from : step_.gaps[chain.first_gap].first;
  double sum = 0, host_sum = 0;
  for (uint32_t k = sums_from_; k < end; ++k) {
    sums_[k - sums_from_] = sum;
    sum += finder_.away(k);
  }
  sums_[end - sums_from_] = sum;
  work_ += (end - sums_from_) / 2;
  if (!load_.minds_host() || chain.is_clean) return;
  for (uint32_t k = sums_from_; k < end; ++k) {
    host_sums_[k - sums_from_] = host_sum;
    host_sum += finder_.host(k);
  }
  host_sums_[end - sums_from_] = host_sum;
  work_ += (end - sums_from_) / 2;
}

// In ns per byte, at the prices that SumPrices() saw.
double FluidMix::Cost(uint32_t c, uint32_t course) const {
  const uint32_t out_slot = CourseOf(c, course).out_slot;
  double cost = out_slot == kNone ? 0 : finder_.out(out_slot);
  const FluidStay* stay = &stays_[StaysAt(c, course)];
  for (const FluidStay* end = stay + GapsOf(c); stay != end; ++stay) {
    if (!stay->is_away()) continue;
    cost += finder_.in(stay->in_slot);
    cost -= sums_[stay->reserve - sums_from_] - sums_[stay->release - sums_from_];
  }
  if (!load_.minds_host() || ChainOf(c).is_clean) return cost;
  const Span held = HeldBy(c, course);
  return cost + host_sums_[held.to - sums_from_] - host_sums_[held.from - sums_from_];
}

// From the copy out to the last return; what is never written has its copy there for good.
FluidMix::Span FluidMix::HeldBy(uint32_t c, uint32_t course) const {
  const FluidChain& chain = ChainOf(c);
  const FluidStay* stays = &stays_[StaysAt(c, course)];
  uint32_t last = chain.gap_count;
  while (last > 0 && !stays[last - 1].is_away()) --last;
  if (last == 0) return {chain.from, chain.from};
  if (chain.is_clean) return {0, static_cast<uint32_t>(step_.demand.size())};
  return {CourseOf(c, course).out_slot / 3, stays[last - 1].copy_end()};
}

// How much the difference between the costs of two courses shrinks with a byte that moves, at most.
double FluidMix::Slope(uint32_t c, uint32_t from, uint32_t to) const {
  const uint32_t out_from = CourseOf(c, from).out_slot, out_to = CourseOf(c, to).out_slot;
  uint32_t outs = 0, ins = 0, stretches = 0;
  if (out_from != out_to) outs = (out_from != kNone ? 1 : 0) + (out_to != kNone ? 1 : 0);
  for (uint32_t g = 0; g < GapsOf(c); ++g) {
    const FluidStay &a = stays_[StaysAt(c, from) + g], &b = stays_[StaysAt(c, to) + g];
    if (a.in_slot != b.in_slot) ins += (a.is_away() ? 1 : 0) + (b.is_away() ? 1 : 0);
    stretches += a.length() + b.length() - 2 * a.Common(b);
  }
  if (load_.minds_host()) {
    const Span a = HeldBy(c, from), b = HeldBy(c, to);
    stretches += std::max(a.from, b.from) - std::min(a.from, b.from);
    stretches += std::max(a.to, b.to) - std::min(a.to, b.to);
  }
  return outs * load_.out_slope() + ins * load_.in_slope() + stretches * load_.away_slope();
}

void FluidMix::Shift(uint32_t c, uint32_t from, uint32_t to, double bytes) {
  CourseOf(c, from).bytes -= bytes;
  CourseOf(c, to).bytes += bytes;
  AddCopies(c, from, -bytes);
  AddCopies(c, to, bytes);
  if (load_.minds_host()) {
    ForDifference(HeldBy(c, from), HeldBy(c, to), [&](uint32_t first, uint32_t end, int sign) {
      load_.AddHost(first, end, sign * bytes);
    });
  }
  for (uint32_t g = 0; g < GapsOf(c); ++g) {
    const FluidStay &a = stays_[StaysAt(c, from) + g], &b = stays_[StaysAt(c, to) + g];
    ForDifference(
        Span{a.release, a.reserve}, Span{b.release, b.reserve},
        [&](uint32_t first, uint32_t end, int sign) { load_.AddAway(first, end, sign * bytes); });
  }
}

void FluidMix::AddCopies(uint32_t c, uint32_t course, double bytes) {
  const uint32_t out_slot = CourseOf(c, course).out_slot;
  if (out_slot != kNone) load_.AddOut(out_slot, bytes);
  for (uint32_t g = 0; g < GapsOf(c); ++g) {
    const FluidStay& stay = stays_[StaysAt(c, course) + g];
    if (stay.is_away()) load_.AddIn(stay.in_slot, bytes);
  }
}

void FluidMix::AddAways(uint32_t c, uint32_t course, double bytes) {
  for (uint32_t g = 0; g < GapsOf(c); ++g) {
    const FluidStay& stay = stays_[StaysAt(c, course) + g];
    if (stay.is_away()) load_.AddAway(stay.release, stay.reserve, bytes);
  }
}

bool FluidMix::AllocateShares() {
  uint32_t size = 0;
  const auto take = [&](uint32_t first, uint32_t count) {
    size += count;
    return FluidShares{first, count, size - count};
  };
  if (!gap_shares_.Resize(step_.gaps.size()) || !out_shares_.Resize(step_.classes.size())) {
    return false;
  }
  for (uint32_t c = 0; c < step_.classes.size(); ++c) {
    const FluidChain& chain = ChainOf(c);
    for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
      const uint32_t first = step_.gaps[g].first, length = step_.gaps[g].next - first;
      gap_shares_[g] = {take(first, length), take(first + 1, length),
                        take(3 * first + 4, 3 * length)};
    }
    const uint32_t last = step_.gaps[chain.first_gap + chain.gap_count - 1].next;
    out_shares_[c] = take(3 * chain.from, 3 * (last - chain.from));
  }
  shares_.Clear();  // of a mix that was less good
  return shares_.Resize(size, 0);
}

bool FluidMix::FindShares() {
  if (!AllocateShares()) return false;
  double share = 0;
  const auto add = [&](const FluidShares& of, uint32_t when) {
    shares_[of.at + when - of.first] += share;
  };
  for (uint32_t c = 0; c < step_.classes.size(); ++c) {
    for (uint32_t k = 0; k < of_classes_[c].count; ++k) {
      const Course& course = CourseOf(c, k);
      share = course.bytes / step_.classes[c].bytes;
      if (course.out_slot != kNone) add(out_shares_[c], course.out_slot);
      for (uint32_t g = 0; g < GapsOf(c); ++g) {
        const FluidStay& stay = stays_[StaysAt(c, k) + g];
        const GapShares& of = gap_shares_[ChainOf(c).first_gap + g];
        if (!stay.is_away()) continue;
        add(of.release, stay.release);
        add(of.reserve, stay.reserve);
        add(of.in, stay.in_slot);
      }
    }
  }
  return true;
}

}  // namespace tidemark::core::planner
