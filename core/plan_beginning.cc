// The part of core/placement_plan.h that says by which requests one knows where a job is in the
// period, when it may have done something else: by some in a row that come but once in it, as
// layers and passes over the data often are alike. Threads: none of its own.

#include <algorithm>

#include "core/placement_plan.h"
#include "core/rolling_hash.h"

namespace tidemark::core {

// The last such requests before the one with which following begins. If there are none, or no
// memory, those before the first one of the plan stay.
void PlacementPlan::FindBeginning() {
  const uint32_t period = period_length_;
  if (!contexts_.Resize(period) || !sorted_contexts_.Resize(period)) return;
  const auto sign_at = [&](uint32_t i) { return SignOf(plan_[i % period]); };
  uint64_t context = 0;
  for (uint32_t i = 0; i < kContext; ++i) context = Roll<kContext>(context, sign_at(i));
  for (uint32_t i = 0; i < period; ++i) {  // of the requests from i on
    contexts_[i] = sorted_contexts_[i] = context;
    context = Roll<kContext>(context, sign_at(i + kContext), sign_at(i));
  }
  std::sort(sorted_contexts_.begin(), sorted_contexts_.end());
  for (uint32_t before = 0; before < period; ++before) {
    const uint32_t at = (cut_ + period - before) % period;
    const uint64_t known = contexts_[(at + period - kContext) % period];
    const auto [first, end] =
        std::equal_range(sorted_contexts_.begin(), sorted_contexts_.end(), known);
    if (end - first != 1) continue;
    begins_in_ = known;
    begins_at_ = at;
    return;
  }
}

}  // namespace tidemark::core
