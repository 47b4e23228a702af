#include "daemon/event_ring.h"

#include <utility>

namespace tidemark::daemon {

void EventRing::Add(absl::Time time, std::string kind, uint64_t job_id, std::string sentence) {
  absl::MutexLock lock(&mutex_);
  events_.push_back({++last_id_, time, std::move(kind), job_id, std::move(sentence)});
  if (events_.size() > capacity_) events_.pop_front();
}

std::vector<Event> EventRing::After(uint64_t id) const {
  absl::MutexLock lock(&mutex_);
  std::vector<Event> after;
  for (const Event& event : events_) {
    if (event.id > id) after.push_back(event);
  }
  return after;
}

void EventRing::WaitAfter(uint64_t id, absl::Duration timeout) const {
  absl::MutexLock lock(&mutex_);
  const auto arrived = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return last_id_ > id; };
  mutex_.AwaitWithTimeout(absl::Condition(&arrived), timeout);
}

}  // namespace tidemark::daemon
