#include "core/price_ascent.h"

#include <algorithm>

namespace tidemark::core {
namespace {

// Four sums side by side: one after the other, each addition would wait for the one before.
template <typename Term>
double SumOf(size_t count, Term term) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t k = 0; k < 4; ++k) sums[k] += term(i + k);
  }
  for (; i < count; ++i) sums[0] += term(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

PriceAscent::PriceAscent(const Machine& machine, const Array<double>& demand, uint32_t slots,
                         double highest)
    : demand_(demand),
      moments_(static_cast<uint32_t>(demand.size())),
      slots_(slots),
      highest_(highest) {
  const double out_share = machine.out_rate_duplex / machine.out_rate;
  const double in_share = machine.in_rate_duplex / machine.in_rate;
  if (out_share + in_share <= 1) return;  // taking turns is as fast
  out_share_ = out_share;
  in_share_ = in_share;
}

bool PriceAscent::Allocate() {
  const size_t prices = moments_ + 2 * size_t{slots_};
  return price_.Resize(prices, 0) && slope_.Resize(prices, 0) && direction_.Resize(prices, 0) &&
         centre_.Resize(prices, 0) && mean_.Resize(prices, 0);
}

void PriceAscent::ClearSlopes() { std::fill(slope_.begin(), slope_.end(), 0); }

double PriceAscent::Worth(double out, double in) const {
  return std::max({out, in, out * out_share_ + in * in_share_});
}

double PriceAscent::SellTime(uint32_t slot, double duration) {
  const double p = out(slot);
  const double q = in(slot);
  const double both = p * out_share_ + q * in_share_;
  if (both >= p && both >= q) {
    out_slope(slot) -= duration * out_share_;
    in_slope(slot) -= duration * in_share_;
    return both * duration;
  }
  if (p >= q) {
    out_slope(slot) -= duration;
    return p * duration;
  }
  in_slope(slot) -= duration;
  return q * duration;
}

// Takes out of the slope what only leads out of the allowed prices.
void PriceAscent::KeepInside() {
  for (size_t i = 0; i < price_.size(); ++i) {
    if (price_[i] <= 0 && slope_[i] < 0) slope_[i] = 0;
  }
  for (uint32_t k = 0; k < moments_; ++k) {
    if (demand_[k] <= 0) slope_[k] = 0;
    if (price_[k] >= highest_) slope_[k] = std::min(slope_[k], 0.0);
  }
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    const double p = out(slot);
    const double q = in(slot);
    if (Worth(p, q) < 1 - 1e-9) continue;
    double& of_out = slope_[moments_ + slot];
    double& of_in = slope_[moments_ + slots_ + slot];
    if (q <= 0) of_out = std::min(of_out, 0.0);
    if (p <= 0) of_in = std::min(of_in, 0.0);
    const double both = (of_out + of_in) / 2;
    if (p <= 0 || q <= 0 || both <= 0) continue;
    of_out -= both;
    of_in -= both;
  }
}

void PriceAscent::Ascend(double rise) {
  KeepInside();
  const double across = SumOf(slope_.size(), [&](size_t i) { return slope_[i] * direction_[i]; });
  const double before =
      SumOf(slope_.size(), [&](size_t i) { return direction_[i] * direction_[i]; });
  const double keep = before > 0 && across < 0 ? -1.5 * across / before : 0;
  for (size_t i = 0; i < slope_.size(); ++i) direction_[i] = slope_[i] + keep * direction_[i];
  (void)Go(rise);
}

// Along the direction, as far as a rise of the value by `rise` needs. False: there is none.
bool PriceAscent::Go(double rise) {
  const double norm =
      SumOf(direction_.size(), [&](size_t i) { return direction_[i] * direction_[i]; });
  if (norm <= 0) return false;
  const double length = rise / norm;
  for (size_t i = 0; i < price_.size(); ++i) price_[i] += direction_[i] * length;
  Project();
  return true;
}

void PriceAscent::SetCentre() { std::copy(price_.begin(), price_.end(), centre_.begin()); }

void PriceAscent::ReturnToCentre() { std::copy(centre_.begin(), centre_.end(), price_.begin()); }

void PriceAscent::StartMean() { std::copy(slope_.begin(), slope_.end(), mean_.begin()); }

bool PriceAscent::StepFromCentre(double rise) {
  ReturnToCentre();
  std::copy(mean_.begin(), mean_.end(), slope_.begin());
  KeepInside();
  std::copy(slope_.begin(), slope_.end(), direction_.begin());
  return Go(rise);
}

void PriceAscent::MixSlopes(double most) {
  constexpr double kLeastPart = 0.1;
  const auto difference = [&](size_t i) { return slope_[i] - mean_[i]; };
  const double across = -SumOf(slope_.size(), [&](size_t i) { return mean_[i] * difference(i); });
  const double apart =
      SumOf(slope_.size(), [&](size_t i) { return difference(i) * difference(i); });
  const double best = apart > 0 ? across / apart : most;
  const double weight = std::min(std::max(best, most * kLeastPart), most);
  for (size_t i = 0; i < slope_.size(); ++i) mean_[i] += weight * (slope_[i] - mean_[i]);
}

bool PriceAscent::PointsOn() const {
  return SumOf(slope_.size(), [&](size_t i) { return slope_[i] * direction_[i]; }) >= 0;
}

void PriceAscent::Project() {
  for (double& price : price_) price = std::max(price, 0.0);
  for (uint32_t k = 0; k < moments_; ++k) {
    price_[k] = std::min(price_[k], demand_[k] > 0 ? highest_ : 0);
  }
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    double& p = out(slot);
    double& q = in(slot);
    const double worth = Worth(p, q);
    if (worth <= 1) continue;
    p /= worth;
    q /= worth;
  }
}

}  // namespace tidemark::core
