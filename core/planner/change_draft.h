// Small random changes of a draft, for a search that goes from one draft to the next. Threads: none
// of its own.

#ifndef TIDEMARK_CORE_PLANNER_CHANGE_DRAFT_H_
#define TIDEMARK_CORE_PLANNER_CHANGE_DRAFT_H_

#include "core/array.h"
#include "core/planner/dice.h"
#include "core/planner/draft.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

// One that could leave, by the use before it.
struct OpenWindow {
  uint32_t use = 0;
  BufferIndex buffer = 0;
};

class DraftChanger {
 public:
  DraftChanger(const Timeline& timeline, const Machine& machine, const Array<OpenWindow>& windows,
               bool is_bold, Dice* dice);

  // One to three changes: what leaves, when it leaves or returns, in which order; what that breaks,
  // CoverDemand repairs with *choice. There is an open window. False: no host memory.
  [[nodiscard]] bool Change(Draft* draft, CoverChoice* choice);
  // Parts, one after the other in random order, return sooner and leave later, or stay, where there
  // is room. False: no host memory.
  [[nodiscard]] bool Trim(Draft* draft);

 private:
  [[nodiscard]] bool AddPart(const OpenWindow& window, Draft* draft);
  [[nodiscard]] bool ChangePart(Draft* draft, CoverChoice* choice);
  [[nodiscard]] bool Cut(uint32_t part, Draft* draft);
  [[nodiscard]] bool ChangeWindow(Draft* draft);
  [[nodiscard]] bool DropWindow(const Away& any, bool takes_all, Draft* draft);
  [[nodiscard]] bool ClearBoundary(Draft* draft);
  void LeaveBoundary(uint32_t boundary, Away* a) const;
  void TakeOtherChunks(uint32_t part, Draft* draft);
  void MoveReturn(Away* a);
  void MoveLeave(Away* a);
  void MoveInQueue(const Draft& draft, Away* a);
  void Meet(const Draft& draft, Away* a);
  void ChangeTiming(const Draft& draft, Away* a);
  uint32_t From(uint32_t low, uint32_t high) { return low + dice_->Below(high - low + 1); }

  const Timeline& timeline_;
  const Bytes chunk_;
  const Bytes budget_;
  const Array<OpenWindow>& windows_;
  const bool is_bold_;  // few trials: only changes that matter much
  Dice* dice_;
  bool is_timed_;  // it matters when copies start and end, beyond their order
  bool has_safepoints_;
  Array<Bytes> room_;
  Array<bool> remaps_;  // boundaries at which a part leaves or returns
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_CHANGE_DRAFT_H_
