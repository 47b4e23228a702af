#include "core/bounds/window_bound.h"

#include <algorithm>
#include <bit>

namespace tidemark::core {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
constexpr uint32_t kMostJointOps = 4096;  // 64 MiB of window traffic
constexpr size_t kFewestCuts = 8;
constexpr size_t kMostChainSteps = 5'000'000;  // of all cuts together
constexpr uint32_t kRefinedCuts = 8;

// The largest float that is not above `value`, 0 or more. By its bits, which go up with the number:
// the preloaded library must not need libm.
float Down(double value) {
  const auto rounded = static_cast<float>(value);
  return rounded <= value ? rounded : std::bit_cast<float>(std::bit_cast<uint32_t>(rounded) - 1);
}

}  // namespace

double TransferTime(const Machine& machine, double bytes_out, double bytes_in) {
  const double out = bytes_out / machine.out_rate * kNanosecondsPerSecond;
  const double in = bytes_in / machine.in_rate * kNanosecondsPerSecond;
  const double out_share = machine.out_rate_duplex / machine.out_rate;
  const double in_share = machine.in_rate_duplex / machine.in_rate;
  if (out_share + in_share <= 1) return out + in;
  const double out_first = out + in * (1 - out_share) / in_share;
  const double in_first = in + out * (1 - in_share) / out_share;
  return std::max({out, in, out_first, in_first});
}

double WindowBound::Stall(double operations, int64_t out, int64_t in) const {
  if (out == 0 && in == 0) return 0;
  const double transfer = TransferTime(machine_, static_cast<double>(out), static_cast<double>(in));
  return std::max(static_cast<double>(machine_.safepoint), transfer - operations);
}

// A window of one boundary: copies out end before its safepoint, and what comes back across it gets
// its memory, and starts, after that.
double WindowBound::BoundaryStall(int64_t out, int64_t in) const {
  if (out == 0 && in == 0) return 0;
  return TransferTime(machine_, static_cast<double>(out), 0) +
         static_cast<double>(machine_.safepoint) +
         TransferTime(machine_, 0, static_cast<double>(in));
}

bool WindowBound::Run() {
  n_ = static_cast<uint32_t>(gaps_.demand.size());
  const bool loss =
      machine_.out_rate_duplex < machine_.out_rate || machine_.in_rate_duplex < machine_.in_rate;
  joint_ = loss && n_ <= kMostJointOps;
  if (!before_.Resize(2 * size_t{n_} + 1, 0) || !row_.Resize(n_ + 1, 0) ||
      !out_at_boundary_.Resize(n_, 0)) {
    return false;
  }
  for (uint32_t i = 0; i < 2 * n_; ++i) {
    before_[i + 1] = before_[i] + static_cast<double>(gaps_.duration[i % n_]);
  }
  if (joint_ && !out_traffic_.Resize(size_t{n_} * (n_ + 1), 0)) return false;
  if (!CollectOut() || !CollectIn() || !SortEdges()) return false;
  if (!chain_.Resize(n_ + 1) || !from_.Resize(n_ + 1)) return false;
  TryCuts();
  return true;
}

// Any cut gives a sound bound; the best one lies at a window's end of the longest chain. Cuts are
// tried evenly spaced, as many as the limit allows, and some of them lead on to a better one.
void WindowBound::TryCuts() {
  const size_t affordable = std::max(kMostChainSteps / (edges_.size() + n_), kFewestCuts);
  const auto cuts = static_cast<uint32_t>(std::min<size_t>(affordable, n_));
  const uint32_t refined = std::max(cuts / kRefinedCuts, 1U);
  for (uint32_t c = 0; c < cuts; ++c) {
    auto cut = static_cast<uint32_t>(uint64_t{c} * n_ / cuts);
    uint32_t next = cut;
    double chain = LongestChain(cut, &next);
    stall_ = std::max(stall_, chain);
    for (double last = -1; c % refined == 0 && chain > last && next != cut;) {
      last = chain;
      cut = next;
      chain = LongestChain(cut, &next);
      stall_ = std::max(stall_, chain);
    }
  }
}

bool WindowBound::CollectOut() {
  Array<int64_t> demand;
  Array<IdleGap> spans;
  WindowSweep sweep;
  if (!Mirror(gaps_.dirty_demand, &demand) || !Mirror(gaps_.spans, n_, &spans)) return false;
  if (!sweep.Init(demand, spans)) return false;
  for (uint32_t m = 0; m < n_; ++m) {
    sweep.Run(m, row_.begin());
    double best = 0;
    out_at_boundary_[(2 * n_ - 2 - m) % n_] = row_[1];
    for (uint32_t length = 1; length <= n_; ++length) {
      const uint32_t start = (2 * n_ - 1 - m - length) % n_;
      if (joint_) {
        out_traffic_[size_t{start} * (n_ + 1) + length] = Down(static_cast<double>(row_[length]));
        continue;
      }
      if (row_[length] == row_[length - 1]) continue;  // like the window before, and longer
      const double operations = before_[start + length] - before_[start + 1];
      const double stall = Stall(operations, row_[length], 0);
      if (stall <= best) continue;  // a window inside this one says as much
      best = stall;
      if (!edges_.Append({start, length, Down(stall)})) return false;
    }
  }
  return true;
}

bool WindowBound::CollectIn() {
  WindowSweep sweep;
  if (!sweep.Init(gaps_.demand, gaps_.gaps)) return false;
  for (uint32_t start = 0; start < n_; ++start) {
    sweep.Run(start, row_.begin());
    const uint32_t first = granularity_ == Granularity::kBoundary ? start + 1 : start;
    double best = 0;
    for (uint32_t length = 1; length <= n_; ++length) {
      // Like the window before, and longer. Each length has traffic out of its own.
      if (!joint_ && length > 2 && row_[length] == row_[length - 1]) continue;
      const double operations = before_[start + length] - before_[first];
      const float out = joint_ ? out_traffic_[size_t{start} * (n_ + 1) + length] : 0;
      double stall = Stall(operations, static_cast<int64_t>(out), row_[length]);
      if (length == 1 && granularity_ == Granularity::kBoundary) {
        stall = BoundaryStall(out_at_boundary_[start], row_[1]);
      }
      if (stall <= best) continue;
      best = stall;
      if (!edges_.Append({start, length, Down(stall)})) return false;
    }
  }
  return true;
}

bool WindowBound::SortEdges() {
  std::sort(edges_.begin(), edges_.end(),
            [](const Edge& a, const Edge& b) { return a.start < b.start; });
  if (!first_.Resize(n_ + 1, 0)) return false;
  for (const Edge& edge : edges_) ++first_[edge.start + 1];
  for (uint32_t i = 0; i < n_; ++i) first_[i + 1] += first_[i];
  return true;
}

// Over one iteration that starts after operation `cut`. `*next_cut`: where a window of the longest
// chain starts, in the middle of the iteration; a chain from there may use windows across `cut`.
double WindowBound::LongestChain(uint32_t cut, uint32_t* next_cut) {
  std::fill(chain_.begin(), chain_.end(), 0);
  for (uint32_t k = 0; k <= n_; ++k) from_[k] = k;
  for (uint32_t k = 0; k < n_; ++k) {
    const uint32_t op = (cut + k) % n_;
    if (k > 0 && chain_[k - 1] > chain_[k]) {
      chain_[k] = chain_[k - 1];
      from_[k] = k - 1;
    }
    for (uint32_t e = first_[op]; e < first_[op + 1]; ++e) {
      const Edge& edge = edges_[e];
      if (k + edge.length > n_ || chain_[k] + edge.stall <= chain_[k + edge.length]) continue;
      chain_[k + edge.length] = chain_[k] + edge.stall;
      from_[k + edge.length] = k;
    }
  }
  if (chain_[n_ - 1] > chain_[n_]) {
    chain_[n_] = chain_[n_ - 1];
    from_[n_] = n_ - 1;
  }
  for (uint32_t k = n_; from_[k] != k; k = from_[k]) {
    if (k - from_[k] > 1) *next_cut = (cut + from_[k]) % n_;
    if (from_[k] < n_ / 2) break;
  }
  return chain_[n_];
}

}  // namespace tidemark::core
