#include "core/planner/fit_host.h"

#include <algorithm>

#include "core/planner/heap.h"

namespace tidemark::core::planner {
namespace {

// Slots of a part's copy that can be had back, before slot `to`; counted on from this iteration's
// start.
struct Idle {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t away = 0;
  uint32_t behind = 0;  // boundaries from `to` to the part's release
};

class Saver {
 public:
  Saver(const Timeline& timeline, const Machine& machine, HostSaving saving, const Plan& plan,
        Array<Bytes>* host, Draft* draft)
      : n_(timeline.ops()),
        budget_(machine.host_budget),
        saving_(saving),
        plan_(plan),
        host_(*host),
        aways_(draft->aways) {}

  bool Run() {
    if (!List()) return false;
    size_t next = 0;
    for (uint32_t i = 0; i < n_; ++i) {
      for (; next < starts_.size() && starts_[next].slot <= i; ++next) {
        const Start& it = starts_[next];
        if (!PushHeap<FarthestOnTop>(&open_,
                                     Entry{idle_[it.idle].to - it.base, it.idle, it.base})) {
          return false;
        }
      }
      while (host_[i] > budget_ && !open_.empty()) {
        const Entry top = open_[0];
        if (top.key > i) TakeBack(&idle_[top.piece], i + top.base);
        const bool is_over = top.key <= i || idle_[top.piece].from >= idle_[top.piece].to;
        if (is_over || host_[i] > budget_) PopHeap<FarthestOnTop>(&open_);
      }
    }
    return true;
  }

 private:
  // Where slots of this iteration first are among the idle ones, which may go on into the next one.
  struct Start {
    uint32_t slot;
    uint32_t idle;
    uint32_t base;  // 0, or n_ for what goes on
  };
  struct Entry {
    uint32_t key;  // the first slot behind
    uint32_t piece;
    uint32_t base;
  };

  bool List() {
    for (size_t first = 0, end = 0; first < aways_.size(); first = end) {
      end = PartEnd(aways_, first);
      for (size_t k = first; k < end; ++k) {
        if (!Add(k, k == first ? end - 1 : k - 1)) return false;
      }
    }
    std::sort(starts_.begin(), starts_.end(), [](const Start& a, const Start& b) {
      return a.slot != b.slot ? a.slot < b.slot : a.idle < b.idle;
    });
    return true;
  }

  bool Add(size_t k, size_t before) {
    const Move& move = plan_.moves[k];
    if (saving_ == HostSaving::kBack) return AddReturn(k);
    if (move.clean != (saving_ == HostSaving::kAgain)) return true;
    const Away& a = aways_[k];
    const OpIndex held = move.clean ? plan_.moves[before].ready : move.after;
    const uint32_t length = (move.release + n_ - held - 1) % n_;
    uint32_t behind = 0;
    if (saving_ == HostSaving::kWait) {
      const int64_t ahead = std::max<int64_t>(int64_t{a.release} - a.issue, 0);
      behind = static_cast<uint32_t>(std::min<int64_t>(ahead, length));
    }
    return AddSlots(k, (held + 1) % n_, length - behind, behind);
  }

  bool AddReturn(size_t k) {
    const Away& a = aways_[k];
    if (plan_.moves[k].keeps_copy || a.back == 0 || a.back >= a.ready) return true;
    return AddSlots(k, (a.back + 1) % n_, a.ready - a.back, 0);
  }

  bool AddSlots(size_t k, uint32_t from, uint32_t length, uint32_t behind) {
    if (length == 0) return true;
    const uint32_t to = from + length;
    const auto idle = static_cast<uint32_t>(idle_.size());
    if (to > n_ && !starts_.Append({0, idle, n_})) return false;
    return idle_.Append({from, to, static_cast<uint32_t>(k), behind}) &&
           starts_.Append({from, idle, 0});
  }

  // Up to slot `last`; all of it where that costs nothing.
  void TakeBack(Idle* idle, uint32_t last) {
    Away& a = aways_[idle->away];
    const bool is_free = saving_ == HostSaving::kWait || saving_ == HostSaving::kBack;
    const uint32_t end = is_free ? idle->to : last + 1;
    for (; idle->from < end; ++idle->from) host_[idle->from % n_] -= a.bytes;
    if (saving_ == HostSaving::kBack) {
      a.ready = std::max(a.back, a.reserve);
      return;
    }
    a.copies_late = true;
    if (saving_ == HostSaving::kWait) return;
    a.copies_again = a.copies_again || saving_ == HostSaving::kAgain;
    a.issue = static_cast<int32_t>(a.release - idle->behind - (idle->to - end));
  }

  const uint32_t n_;
  const Bytes budget_;
  const HostSaving saving_;
  const Plan& plan_;
  Array<Bytes>& host_;
  Array<Away>& aways_;
  Array<Idle> idle_;
  Array<Start> starts_;
  Array<Entry> open_;
};

}  // namespace

bool SaveHost(const Timeline& timeline, const Machine& machine, HostSaving saving, const Plan& plan,
              Array<Bytes>* host, Draft* draft) {
  return Saver(timeline, machine, saving, plan, host, draft).Run();
}

}  // namespace tidemark::core::planner
