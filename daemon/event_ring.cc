#include "daemon/event_ring.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tidemark::daemon {

void EventRing::Add(absl::Time time, std::string kind, uint64_t job_id, std::string sentence) {
  MutexLock lock(&mutex_);
  events_.push_back({++last_id_, time, std::move(kind), job_id, std::move(sentence)});
  if (events_.size() > capacity_) events_.pop_front();
  arrived_.notify_all();
}

std::vector<Event> EventRing::After(uint64_t id) const {
  MutexLock lock(&mutex_);
  std::vector<Event> after;
  for (const Event& event : events_) {
    if (event.id > id) after.push_back(event);
  }
  return after;
}

void EventRing::WaitAfter(uint64_t id, absl::Duration timeout) const {
  const auto deadline =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(std::clamp(timeout, absl::ZeroDuration(), absl::Hours(24)));
  MutexLock lock(&mutex_);
  while (last_id_ <= id) {
    if (arrived_.wait_until(mutex_.native(), deadline) == std::cv_status::timeout) return;
  }
}

}  // namespace tidemark::daemon
