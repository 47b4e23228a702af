// Finds good prices for absent bytes, per moment, and for the time of the links, per slot of time:
// the linear program that they are the dual of is the user's, who says after each step what its
// value depends on. Two methods: a subgradient method with deflection (Camerini, Fratta, Maffioli
// 1975), which raises the value fast; and the volume algorithm (Barahona and Anbil 2000), which
// goes on rising where that comes to a halt. Prices are numbers around 1; the user gives them
// units. Threads: none of its own.

#ifndef TIDEMARK_CORE_PRICE_ASCENT_H_
#define TIDEMARK_CORE_PRICE_ASCENT_H_

#include <cstdint>

#include "core/array.h"
#include "core/step.h"

namespace tidemark::core {

class PriceAscent {
 public:
  // `demand`, per moment, is kept by reference: where it is 0, bytes have no price. None is above
  // `highest`.
  PriceAscent(const Machine& machine, const Array<double>& demand, uint32_t slots, double highest);
  // Prices of 0. False: no host memory.
  [[nodiscard]] bool Allocate();

  uint32_t moments() const { return moments_; }
  uint32_t slots() const { return slots_; }

  // Of absent bytes in moment k, of the link's time out and in during a slot.
  double& away(uint32_t k) { return price_[k]; }
  double& out(uint32_t slot) { return price_[moments_ + slot]; }
  double& in(uint32_t slot) { return price_[moments_ + slots_ + slot]; }
  double away(uint32_t k) const { return price_[k]; }
  double out(uint32_t slot) const { return price_[moments_ + slot]; }
  double in(uint32_t slot) const { return price_[moments_ + slots_ + slot]; }
  const Array<double>& prices() const { return price_; }  // in this order

  // How the value changes with each of them, counted on through the iterations.
  void ClearSlopes();
  double& away_slope(uint32_t k) { return slope_[k % moments_]; }
  double& out_slope(uint32_t slot) { return slope_[moments_ + slot % slots_]; }
  double& in_slope(uint32_t slot) { return slope_[moments_ + slots_ + slot % slots_]; }

  // What the links' time during a slot is worth, at most; its slopes are taken down accordingly.
  double SellTime(uint32_t slot, double duration);
  // One step, as long as a rise of the value by `rise` needs at the least.
  void Ascend(double rise);

  // The volume algorithm steps from a centre, the best prices so far, along a mean of slopes.
  // The prices become the centre; with their slopes, which become the mean at first.
  void SetCentre();
  void ReturnToCentre();  // the centre becomes the prices
  void StartMean();
  // To prices as far from the centre as a rise of the value by `rise` needs; false: none is near.
  [[nodiscard]] bool StepFromCentre(double rise);
  // Puts the slopes into the mean, with the weight with which it is the shortest, `most` at most.
  void MixSlopes(double most);
  // Whether the slopes still point where the step went.
  bool PointsOn() const;

  // To the nearest allowed prices.
  void Project();

 private:
  double Worth(double out, double in) const;
  void KeepInside();
  [[nodiscard]] bool Go(double rise);

  const Array<double>& demand_;
  const uint32_t moments_;
  const uint32_t slots_;
  const double highest_;
  // A slot's time is worth max(p, q, p * out_share_ + q * in_share_) of out price p, in price q.
  double out_share_ = 0, in_share_ = 0;
  Array<double> price_, slope_, direction_;  // moments, slots out, slots in
  Array<double> centre_, mean_;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_PRICE_ASCENT_H_
