// The changes of core/planner/change_draft.h that touch several parts at once: those of one window,
// or what leaves or returns at one boundary.

#include <algorithm>

#include "core/planner/change_draft.h"

namespace tidemark::core::planner {

// All parts of one window at once, where each by itself would only get in the others' way: they
// stay, become one part, or leave or return together.
bool DraftChanger::ChangeWindow(Draft* draft) {
  Array<Away>& aways = draft->aways;
  Away like = aways[dice_->Below(static_cast<uint32_t>(aways.size()))];
  const uint32_t last = timeline_.use(like.use).next;
  const uint32_t kind = dice_->Below(6);
  if (kind < 3) return DropWindow(like, /*takes_all=*/kind == 2, draft);
  const bool returns = kind != 4, leaves = kind != 3;
  if (returns) MoveReturn(&like);
  if (leaves) MoveLeave(&like);
  for (Away& a : aways) {
    if (a.use != like.use) continue;
    if (returns) {
      a.reserve = std::max(like.reserve, a.release + 1);
      a.ready = last;
    }
    if (leaves) {
      a.release = std::min(like.release, a.reserve - 1);
      a.issue = std::min(a.issue, static_cast<int32_t>(a.release));
    }
  }
  return true;
}

// The parts of the window of `any` stay; or all of it leaves and returns with that one.
bool DraftChanger::DropWindow(const Away& any, bool takes_all, Draft* draft) {
  Array<Away>& aways = draft->aways;
  uint32_t kept = 0;
  for (const Away& a : aways) {
    if (a.use != any.use) aways[kept++] = a;
  }
  if (!aways.Resize(kept)) return false;
  if (!takes_all) return true;
  Away all = any;
  all.offset = 0;
  all.bytes = timeline_.buffer(any.buffer).bytes;
  return aways.Append(all);
}

// What leaves or returns at one boundary does so at another one where something does, or stays.
bool DraftChanger::ClearBoundary(Draft* draft) {
  const uint32_t n = timeline_.ops();
  Array<Away>& aways = draft->aways;
  remaps_.Clear();
  if (!remaps_.Resize(n, false)) return false;
  for (const Away& a : aways) remaps_[a.release % n] = remaps_[a.ready % n] = true;
  const Away& any = aways[dice_->Below(static_cast<uint32_t>(aways.size()))];
  const uint32_t boundary = (dice_->Below(2) == 0 ? any.release : any.ready) % n;
  remaps_[boundary] = false;
  const bool drops = dice_->Below(3) == 0;
  uint32_t kept = 0;
  for (Away a : aways) {
    const bool is_there = a.release % n == boundary || a.ready % n == boundary;
    if (is_there && drops) continue;
    if (is_there) LeaveBoundary(boundary, &a);
    aways[kept++] = a;
  }
  return aways.Resize(kept);
}

void DraftChanger::LeaveBoundary(uint32_t boundary, Away* a) const {
  const Use& use = timeline_.use(a->use);
  const uint32_t n = timeline_.ops();
  const bool goes_back = dice_->Below(3) != 0;
  if (a->release % n == boundary) {
    uint32_t at = a->release;
    while (goes_back && at > use.op + 1 && !remaps_[at % n]) --at;
    while (!goes_back && at + 1 < a->reserve && !remaps_[at % n]) ++at;
    a->release = at;
    a->issue = std::min(a->issue, static_cast<int32_t>(at));
  }
  if (a->ready % n == boundary) {
    uint32_t at = a->ready;
    while (goes_back && at > a->release + 1 && !remaps_[at % n]) --at;
    while (!goes_back && at < use.next && !remaps_[at % n]) ++at;
    a->ready = at;
    a->reserve = std::min(a->reserve, at);
  }
}

}  // namespace tidemark::core::planner
