#include "core/planner/change_draft.h"

#include <algorithm>
#include <utility>

namespace tidemark::core::planner {

DraftChanger::DraftChanger(const Timeline& timeline, const Machine& machine,
                           const Array<OpenWindow>& windows, bool is_bold, Dice* dice)
    : timeline_(timeline),
      chunk_(machine.chunk_bytes),
      budget_(machine.device_budget),
      windows_(windows),
      is_bold_(is_bold),
      dice_(dice) {
  const bool is_lossy =
      machine.in_rate_duplex < machine.in_rate || machine.out_rate_duplex < machine.out_rate;
  has_safepoints_ = machine.safepoint > 0;
  is_timed_ = is_lossy || machine.safepoint > 0 || machine.host_budget < timeline.peak();
}

bool DraftChanger::Change(Draft* draft, CoverChoice* choice) {
  for (uint32_t k = 1 + dice_->Below(3); k-- > 0;) {
    choice->stays = kNone;
    if (has_safepoints_ && !is_bold_ && !draft->aways.empty() && dice_->Below(6) == 0) {
      if (!ClearBoundary(draft)) return false;
      continue;
    }
    if (!is_bold_ && !draft->aways.empty() && dice_->Below(3) == 0) {
      if (!ChangeWindow(draft)) return false;
      continue;
    }
    const bool adds = draft->aways.empty() || dice_->Below(4) == 0;
    const OpenWindow& window = windows_[dice_->Below(static_cast<uint32_t>(windows_.size()))];
    if (adds ? !AddPart(window, draft) : !ChangePart(draft, choice)) return false;
  }
  if (!is_bold_ && dice_->Below(4) != 0) choice->dice = dice_;
  return true;
}

// A part of a window, all of the buffer or some chunks, where none is yet; away for as long as it
// can be, or for less.
bool DraftChanger::AddPart(const OpenWindow& window, Draft* draft) {
  const Use& use = timeline_.use(window.use);
  const Bytes whole = timeline_.buffer(window.buffer).bytes;
  const auto chunks = static_cast<uint32_t>((whole + chunk_ - 1) / chunk_);
  Away part;
  part.buffer = window.buffer;
  part.use = window.use;
  part.offset = dice_->Below(2) == 0 ? 0 : chunk_ * dice_->Below(chunks);
  part.bytes = std::min(whole - part.offset, chunk_ * (1 + dice_->Below(chunks)));
  part.release = use.op + 1;
  part.reserve = part.ready = use.next;
  if (!is_bold_ && dice_->Below(3) == 0) MoveReturn(&part);
  if (!is_bold_ && dice_->Below(3) == 0) MoveLeave(&part);
  part.issue = static_cast<int32_t>(use.op + 1);
  if (!is_bold_ && dice_->Below(2) == 0) part.issue = use.FirstIssue();
  for (const Away& a : draft->aways) {
    const bool overlaps = a.use == part.use && a.offset < part.offset + part.bytes &&
                          part.offset < a.offset + a.bytes;
    if (overlaps) return true;
  }
  if (!is_bold_ && !draft->aways.empty() && dice_->Below(2) == 0) MoveInQueue(*draft, &part);
  return draft->aways.Append(part);
}

bool DraftChanger::ChangePart(Draft* draft, CoverChoice* choice) {
  const auto parts = static_cast<uint32_t>(draft->aways.size());
  const uint32_t k = dice_->Below(parts);
  Away& a = draft->aways[k];
  if (!is_bold_ && dice_->Below(2) == 0) choice->stays = k;
  switch (dice_->Below(is_bold_ ? 6 : is_timed_ ? 12 : 9)) {
    case 0:
    case 1:
      MoveReturn(&a);
      return true;
    case 2:
    case 6:
      MoveLeave(&a);
      return true;
    case 3:
      MoveInQueue(*draft, &a);
      return true;
    case 4:  // stays
      a = draft->aways[parts - 1];
      choice->stays = kNone;
      return draft->aways.Resize(parts - 1);
    case 5:
      if (is_bold_ || dice_->Below(2) == 0) return Cut(k, draft);
      TakeOtherChunks(k, draft);
      return true;
    case 7:
    case 8:
      Meet(*draft, &a);
      return true;
    default:
      ChangeTiming(*draft, &a);
      return true;
  }
}

void DraftChanger::MoveReturn(Away* a) {
  const uint32_t first = a->release + 1, last = timeline_.use(a->use).next;
  const bool is_near = !is_bold_ && dice_->Below(2) == 0;
  const uint32_t low = is_near && a->reserve > first + 2 ? a->reserve - 2 : first;
  a->reserve = From(low, is_near ? std::min(last, a->reserve + 2) : last);
  a->ready = last;
}

void DraftChanger::MoveLeave(Away* a) {
  const uint32_t first = timeline_.use(a->use).op + 1, last = a->reserve - 1;
  const bool is_near = !is_bold_ && dice_->Below(2) == 0;
  const uint32_t low = is_near && a->release > first + 2 ? a->release - 2 : first;
  a->release = From(low, is_near ? std::min(last, a->release + 2) : last);
  a->issue = std::min(a->issue, static_cast<int32_t>(a->release));
}

// Next to another part in the queue of copies out.
void DraftChanger::MoveInQueue(const Draft& draft, Away* a) {
  const Away& other = draft.aways[dice_->Below(static_cast<uint32_t>(draft.aways.size()))];
  a->order = other.order;
  if (is_bold_) {
    a->issue = std::min(a->issue, static_cast<int32_t>(timeline_.use(a->use).op + 1));
    return;
  }
  const int32_t earliest = timeline_.use(a->use).FirstIssue();
  if (dice_->Below(2) == 0)
    a->order += other.order == kNone ? 0 : 1;
  else if (a->order > 0)
    --a->order;
  const auto latest = static_cast<int32_t>(a->release);
  const bool goes_first = dice_->Below(2) == 0;
  a->issue = goes_first ? std::min(a->issue, earliest)
                        : std::max(std::min(other.issue, latest), std::min(a->issue, earliest));
}

// Returns where another part leaves, or leaves where another returns.
void DraftChanger::Meet(const Draft& draft, Away* a) {
  const uint32_t n = timeline_.ops();
  const Away& other = draft.aways[dice_->Below(static_cast<uint32_t>(draft.aways.size()))];
  const Use& use = timeline_.use(a->use);
  const auto inside = [&](uint32_t boundary) {
    const uint32_t at = boundary % n;
    return at > use.op ? at : at + n;
  };
  if (dice_->Below(2) == 0) {
    const uint32_t at = inside(dice_->Below(4) == 0 ? other.reserve : other.release);
    if (at > a->release && at <= use.next) a->reserve = at;
    a->ready = std::max(a->ready, a->reserve);
  } else {
    const uint32_t at = inside(dice_->Below(4) == 0 ? other.release : other.reserve);
    if (at > use.op && at < a->reserve) a->release = at;
    a->issue = std::min(a->issue, static_cast<int32_t>(a->release));
  }
}

void DraftChanger::ChangeTiming(const Draft& draft, Away* a) {
  const Use& use = timeline_.use(a->use);
  const uint32_t n = timeline_.ops();
  switch (dice_->Below(5)) {
    case 0:
      a->copies_late = !a->copies_late;
      return;
    case 1:
      a->copies_again = !a->copies_again;
      return;
    case 2:
      a->ready = From(a->reserve, use.next);
      return;
    case 3: {
      const Away& other = draft.aways[dice_->Below(static_cast<uint32_t>(draft.aways.size()))];
      const uint32_t at = (dice_->Below(2) == 0 ? other.ready : other.release) % n;
      const uint32_t inside = at > use.op ? at : at + n;
      if (inside >= a->reserve && inside <= use.next) a->ready = inside;
      return;
    }
    default:
      a->issue = use.FirstIssue();
      a->issue +=
          static_cast<int32_t>(dice_->Below(a->release + 1 - static_cast<uint32_t>(a->issue)));
      a->copies_late = true;
  }
}

bool DraftChanger::Cut(uint32_t part, Draft* draft) {
  Away& a = draft->aways[part];
  if (a.bytes <= chunk_) return true;
  Away rest = a;
  a.bytes = chunk_ * (1 + dice_->Below(static_cast<uint32_t>((a.bytes - 1) / chunk_)));
  rest.offset += a.bytes;
  rest.bytes -= a.bytes;
  // One of them does something else, or all of this would be undone.
  if (!is_bold_ && dice_->Below(2) == 0)
    MoveReturn(&rest);
  else if (!is_bold_)
    MoveLeave(&rest);
  return draft->aways.Append(rest);
}

// As many or other chunks of the buffer, if they are free.
void DraftChanger::TakeOtherChunks(uint32_t part, Draft* draft) {
  Away& a = draft->aways[part];
  const Bytes whole = timeline_.buffer(a.buffer).bytes;
  const auto chunks = static_cast<uint32_t>((whole - 1) / chunk_ + 1);
  const Bytes offset = chunk_ * dice_->Below(chunks);
  const auto most = static_cast<uint32_t>((whole - offset - 1) / chunk_ + 1);
  const Bytes wanted =
      dice_->Below(2) == 0 ? RoundUp(a.bytes, chunk_) : chunk_ * (1 + dice_->Below(most));
  const Bytes bytes = std::min(wanted, whole - offset);
  for (uint32_t k = 0; k < draft->aways.size(); ++k) {
    const Away& other = draft->aways[k];
    if (k != part && other.use == a.use && other.offset < offset + bytes &&
        offset < other.offset + other.bytes) {
      return;
    }
  }
  a.offset = offset;
  a.bytes = bytes;
}

bool DraftChanger::Trim(Draft* draft) {
  const uint32_t n = timeline_.ops();
  if (!SumAways(n, draft->aways, &room_)) return false;
  for (uint32_t i = 0; i < n; ++i) room_[i] += budget_ - timeline_.live(i);
  const auto at = [n](uint32_t i) { return i < n ? i : i - n; };
  Array<Away>& aways = draft->aways;
  const auto parts = static_cast<uint32_t>(aways.size());
  const uint32_t start = parts == 0 ? 0 : dice_->Below(parts);
  const bool returns_first = dice_->Below(2) == 0;
  for (uint32_t k = 0; k < parts; ++k) {
    Away& a = aways[(start + k) % parts];
    const auto soonen = [&] {
      while (a.reserve > a.release && room_[at(a.reserve - 1)] >= a.bytes) {
        room_[at(--a.reserve)] -= a.bytes;
      }
    };
    if (returns_first) soonen();
    while (a.reserve > a.release && room_[at(a.release)] >= a.bytes) {
      room_[at(a.release++)] -= a.bytes;
    }
    if (!returns_first) soonen();
  }
  uint32_t kept = 0;
  for (const Away& a : aways) {
    if (a.release < a.reserve) aways[kept++] = a;
  }
  return aways.Resize(kept);
}

}  // namespace tidemark::core::planner
