#include "core/planner/prices/fluid_load.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
// How much prices rise: of a slot by this part of a stall's for as much as it stalls in the mean;
// of room by this multiple of what a byte's way out and in takes for all that must be away in the
// mean.
constexpr double kSlotSlope = 0.3;
constexpr double kRoomSlope = 1;
constexpr double kFollow = 0.2;      // part of the way from the centre to the prices
constexpr double kSpareHost = 0.02;  // of its budget: rounding is not exact
// In units of kPriceWork.
constexpr uint64_t kWorkOfCopy = 10;
constexpr uint64_t kWorkOfStretch = 24;

}  // namespace

FluidLoad::FluidLoad(const FluidStep& step, const Machine& machine, CourseFinder* finder)
    : step_(step),
      finder_(*finder),
      n_(static_cast<uint32_t>(step.demand.size())),
      host_budget_(static_cast<double>(machine.host_budget) * (1 - kSpareHost)) {
  out_unit_ = kNanosecondsPerSecond / machine.out_rate;
  in_unit_ = kNanosecondsPerSecond / machine.in_rate;
  const double out_share = machine.out_rate_duplex / machine.out_rate;
  const double in_share = machine.in_rate_duplex / machine.in_rate;
  const bool take_turns = out_share + in_share <= 1;  // that is as fast
  in_to_out_ = take_turns ? 1 : (1 - out_share) / in_share;
  out_to_in_ = take_turns ? 1 : (1 - in_share) / out_share;
}

bool FluidLoad::Allocate(double stall) {
  double bytes = 0;
  for (const FluidClass& alike : step_.classes) bytes += alike.bytes;
  if (!slots_.Resize(3 * size_t{n_}) || !rooms_.Resize(n_)) return false;
  if (bytes > host_budget_ && !hosts_.Resize(n_)) return false;
  double demand = 0;
  for (uint32_t k = 0; k < n_; ++k) demand += step_.demand[k];
  slot_slope_ = kSlotSlope * n_ / std::max(stall, 1.0);
  room_slope_ = kRoomSlope * highest_away() * n_ / std::max(demand, 1.0);
  for (uint32_t k = 0; k < 3 * n_; ++k) {
    slots_[k].time = k % 3 == 2 ? step_.duration[k / 3] : 0;
  }
  return true;
}

bool FluidLoad::Start(const FluidPrices& prices, double stall) {
  if (!Allocate(stall)) return false;
  const double apart = 1 - in_to_out_ * out_to_in_;  // 0: both sums are the same
  for (uint32_t k = 0; k < 3 * n_; ++k) {
    Slot& slot = slots_[k];
    const double out = prices.out_price(k) / out_unit_, in = prices.in_price(k) / in_unit_;
    const bool is_one = apart < 1e-9;
    slot.prices[0] = slot.centre[0] =
        is_one ? std::max(out, in) / 2 : std::max(out - in * out_to_in_, 0.0) / apart;
    slot.prices[1] = slot.centre[1] =
        is_one ? std::max(out, in) / 2 : std::max(in - out * in_to_out_, 0.0) / apart;
  }
  for (uint32_t k = 0; k < n_; ++k) rooms_[k].price = rooms_[k].centre = prices.away_price(k);
  StartFinder();
  return true;
}

bool FluidLoad::Start(const FluidLoad& coarser, const FluidNesting& nesting, double stall) {
  if (!Allocate(stall)) return false;
  for (uint32_t k = 0; k < 3 * n_; ++k) {
    const Slot& from = coarser.slots_[nesting.CoarseSlot(k)];
    for (const int i : {0, 1}) slots_[k].prices[i] = slots_[k].centre[i] = from.centre[i];
  }
  for (uint32_t k = 0; k < n_; ++k) {
    const uint32_t coarse = nesting.CoarseOf(k);
    rooms_[k].price = rooms_[k].centre = coarser.rooms_[coarse].centre / nesting.CountIn(coarse);
    if (!hosts_.empty() && !coarser.hosts_.empty()) {
      hosts_[k].price = hosts_[k].centre = coarser.hosts_[coarse].centre / nesting.CountIn(coarse);
    }
  }
  StartFinder();
  return true;
}

// As if all were just enough, at first.
void FluidLoad::StartFinder() {
  for (uint32_t k = 0; k < n_; ++k) finder_.SetAway(k, rooms_[k].price);
  for (uint32_t k = 0; k < hosts_.size(); ++k) finder_.SetHost(k, hosts_[k].price);
  for (uint32_t k = 0; k < 3 * n_; ++k) {
    const double* prices = slots_[k].prices;
    finder_.SetLinks(k, (prices[0] + prices[1] * out_to_in_) * out_unit_,
                     (prices[1] + prices[0] * in_to_out_) * in_unit_);
  }
  for (uint32_t k = 0; k < n_; ++k) finder_.Compare(k);
}

void FluidLoad::AddOut(uint32_t slot, double bytes) {
  slot %= 3 * n_;
  slots_[slot].out += bytes * out_unit_;
  PriceAgain(slot);
}

void FluidLoad::AddIn(uint32_t slot, double bytes) {
  slot %= 3 * n_;
  slots_[slot].in += bytes * in_unit_;
  PriceAgain(slot);
}

void FluidLoad::PriceAgain(uint32_t slot) {
  PriceSlot(slot);
  finder_.CompareAround(slot);
  work_ += kWorkOfCopy;
}

void FluidLoad::AddAway(uint32_t from, uint32_t to, double bytes) {
  AddTo<&FluidLoad::PriceRoom>(&rooms_, from, to, bytes);
}

void FluidLoad::AddHost(uint32_t from, uint32_t to, double bytes) {
  AddTo<&FluidLoad::PriceHost>(&hosts_, from, to, bytes);
}

template <void (FluidLoad::*price)(uint32_t)>
void FluidLoad::AddTo(Array<Room>* rooms, uint32_t from, uint32_t to, double bytes) {
  for (uint32_t k = from; k < to; ++k) {
    const uint32_t stretch = k % n_;
    (*rooms)[stretch].bytes += bytes;
    (this->*price)(stretch);
  }
  if (from < to) work_ += to - from;
}

void FluidLoad::Follow() {
  for (Slot& slot : slots_) {
    for (const int i : {0, 1}) slot.centre[i] += kFollow * (slot.prices[i] - slot.centre[i]);
  }
  for (Array<Room>* all : {&rooms_, &hosts_}) {
    for (Room& room : *all) room.centre += kFollow * (room.price - room.centre);
  }
  PriceAll();
}

void FluidLoad::PriceSlot(uint32_t k) {
  Slot& slot = slots_[k];
  const double sums[2] = {slot.out + slot.in * in_to_out_, slot.in + slot.out * out_to_in_};
  double* prices = slot.prices;
  for (const int i : {0, 1}) {
    prices[i] = std::max(slot.centre[i] + slot_slope_ * (sums[i] - slot.time), 0.0);
  }
  const double above = prices[0] + prices[1] - 1;
  if (above > 0) {  // to the nearest allowed ones
    const double less = std::min(above / 2, std::min(prices[0], prices[1]));
    for (const int i : {0, 1}) prices[i] = std::min(prices[i] - less, 1.0);
  }
  finder_.SetLinks(k, (prices[0] + prices[1] * out_to_in_) * out_unit_,
                   (prices[1] + prices[0] * in_to_out_) * in_unit_);
}

void FluidLoad::PriceRoom(uint32_t k) {
  Room& room = rooms_[k];
  const double asked = room.centre + room_slope_ * (step_.demand[k] - room.bytes);
  room.price = step_.demand[k] > 0 ? std::min(std::max(asked, 0.0), highest_away()) : 0;
  finder_.SetAway(k, room.price);
}

void FluidLoad::PriceHost(uint32_t k) {
  Room& room = hosts_[k];
  const double asked = room.centre + room_slope_ * (room.bytes - host_budget_);
  room.price = std::min(std::max(asked, 0.0), highest_away());
  finder_.SetHost(k, room.price);
}

void FluidLoad::PriceAll() {
  for (uint32_t k = 0; k < 3 * n_; ++k) PriceSlot(k);
  for (uint32_t k = 0; k < n_; ++k) {
    PriceRoom(k);
    finder_.Compare(k);
  }
  for (uint32_t k = 0; k < hosts_.size(); ++k) PriceHost(k);
  work_ += kWorkOfStretch * n_;
}

}  // namespace tidemark::core::planner
