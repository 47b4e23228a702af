#include "core/planner/prices/fluid_nesting.h"

namespace tidemark::core::planner {

bool FluidNesting::Init() {
  const auto n = static_cast<uint32_t>(fine_.starts.size());
  const auto coarse_n = static_cast<uint32_t>(coarse_.starts.size());
  if (!coarse_of_.Resize(n) || !first_.Resize(size_t{coarse_n} + 1, n) ||
      !coarse_chain_.Resize(fine_.classes.size(), kNone)) {
    return false;
  }
  uint32_t coarse = 0;
  for (uint32_t k = 0; k < n; ++k) {
    if (coarse + 1 < coarse_n && coarse_.starts[coarse + 1] == fine_.starts[k]) ++coarse;
    if (coarse_.starts[coarse] == fine_.starts[k]) first_[coarse] = k;
    coarse_of_[k] = coarse;
  }
  // Chains stand in the same order; the coarse step lacks some.
  uint32_t c = 0;
  for (uint32_t k = 0; k < fine_.chains.size() && c < coarse_.chains.size(); ++k) {
    const FluidChain& chain = fine_.chains[k];
    if (coarse_.chains[c].write != chain.write) continue;
    if (fine_.classes[chain.alike].chain == k) coarse_chain_[chain.alike] = c;
    ++c;
  }
  return true;
}

bool SpreadCopies::Init() { return copies_.Resize(3 * coarse_.starts.size()); }

uint32_t SpreadCopies::Slot(uint32_t coarse, double bytes) {
  const uint32_t stretch = coarse / 3;
  uint32_t at = nesting_.FirstIn(stretch);
  if (coarse % 3 != 2) return 3 * at + coarse % 3;
  const auto n = static_cast<uint32_t>(coarse_.starts.size());
  Copies& copies = copies_[coarse % (3 * n)];
  const double part = copies.all > 0 ? (copies.placed + bytes / 2) / copies.all : 0;
  copies.placed += bytes;
  double time = part * coarse_.duration[stretch % n];
  for (uint32_t last = at + nesting_.CountIn(stretch % n) - 1; at < last; ++at) {
    time -= fine_.duration[at % fine_.starts.size()];
    if (time < 0) break;
  }
  return 3 * at + 2;
}

}  // namespace tidemark::core::planner
