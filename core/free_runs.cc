// Implementation of core/free_runs.h. Threads: as the header says.

#include "core/free_runs.h"

namespace tidemark::core {

void FreeRuns::Add(Block* unmapped) {
  unmapped->number = static_cast<uint32_t>(runs_.size());
  (void)runs_.Append({unmapped, kMarked, kMarked});
  ++marked_;
}

// The last entry takes its place.
void FreeRuns::Remove(Block* unmapped) {
  const uint32_t at = unmapped->number;
  if (runs_[at].begin == kMarked) --marked_;
  runs_[at] = runs_[runs_.size() - 1];
  runs_[at].lowest->number = at;
  runs_.Shrink(runs_.size() - 1);
  unmapped->number = 0;
}

void FreeRuns::WalkMarked() {
  for (size_t i = 0; marked_ != 0; ++i) {
    if (runs_[i].begin == kMarked) Walk(runs_[i].lowest);
  }
}

// All entries of the run that `unmapped` is in.
void FreeRuns::Walk(Block* unmapped) {
  Block* lowest = LowestOf(unmapped);
  Set(RunFrom(lowest), lowest);
  for (const Block* b = lowest->next; IsFreeForAll(b); b = b->next) {
    if (!b->mapped) Set(Run(), b);
  }
}

Block* FreeRuns::LowestOf(Block* unmapped) {
  Block* lowest = unmapped;
  for (Block* b = unmapped->previous; IsFreeForAll(b); b = b->previous) {
    if (!b->mapped) lowest = b;
  }
  return lowest;
}

FreeRuns::Run FreeRuns::RunFrom(Block* lowest) {
  Run run{lowest, 0, 0};
  const Block* last = lowest;
  while (IsFreeForAll(last->next)) last = last->next;
  run.begin = static_cast<uint32_t>(run.first()->offset / kBlockBytes);
  run.end = static_cast<uint32_t>(last->end() / kBlockBytes);
  return run;
}

void FreeRuns::Set(const Run& run, const Block* unmapped) {
  Run& entry = runs_[unmapped->number];
  if (entry.begin == kMarked) --marked_;
  entry.begin = run.begin;
  entry.end = run.end;
}

// Whoever asks next walks the run that `lowest` stands for.
bool FreeRuns::WillBeWalked(const Block* lowest) const {
  for (const Block* b = lowest; IsFreeForAll(b); b = b->next) {
    if (!b->mapped && runs_[b->number].begin == kMarked) return true;
  }
  return false;
}

bool FreeRuns::Validate(size_t unmapped) const {
  size_t marked = 0;
  for (uint32_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    if (!IsUnmapped(run.lowest) || run.lowest->number != i) return false;
    if (run.begin == kMarked) ++marked;
    Block* lowest = LowestOf(run.lowest);
    if (WillBeWalked(lowest)) continue;
    const Run now = lowest == run.lowest ? RunFrom(lowest) : Run();
    if (run.begin != now.begin || run.end != now.end) return false;
  }
  return marked == marked_ && runs_.size() == unmapped;
}

}  // namespace tidemark::core
