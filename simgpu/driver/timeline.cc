// See timeline.h.

#include "simgpu/driver/timeline.h"

#include <limits>

#include "simgpu/driver/engine_state.h"

namespace simgpu {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

bool HasServer(Unit unit) { return unit != Unit::kNone && unit != Unit::kHost; }

}  // namespace

void Timeline::Add(const std::shared_ptr<Node>& node) {
  ++open_;
  order_.push_back(node);
  if (node->waiting_time == 0) {
    Start(node);
    while (Step(now_)) {
    }
  }
}

std::shared_ptr<Node> Timeline::Oldest() {
  while (!order_.empty() && order_.front()->simulated) order_.pop_front();
  return order_.empty() ? nullptr : order_.front();
}

void Timeline::AdvanceTo(double seconds) {
  while (Step(seconds)) {
  }
  if (seconds > now_) Pass(seconds);
  Oldest();
}

void Timeline::AdvanceUntil(const Node& node) {
  while (!node.simulated && Step(kNever)) {
  }
}

void Timeline::Drain() {
  while (Step(kNever)) {
  }
}

// Ends the next node that ends by `limit`; false when there is none.
bool Timeline::Step(double limit) {
  const double next = NextEnd();
  if (next == kNever || next > limit) return false;
  if (next > now_) Pass(next);
  if (!timers_.empty() && timers_.top().at <= now_) {
    const std::shared_ptr<Node> node = timers_.top().node;
    timers_.pop();
    End(node);
    return true;
  }
  for (Device& device : devices_) {
    for (Server& server : device) {
      if (!server.active || now_ + server.remaining / server.rate > next) continue;
      const std::shared_ptr<Node> node = std::move(server.active);
      server.active = nullptr;
      if (!server.queue.empty()) {
        server.active = std::move(server.queue.front());
        server.queue.pop_front();
        server.remaining = server.active->op.seconds;
      }
      SetRates(device);
      End(node);
      return true;
    }
  }
  return false;
}

double Timeline::NextEnd() const {
  double next = timers_.empty() ? kNever : timers_.top().at;
  for (const Device& device : devices_) {
    for (const Server& server : device) {
      if (server.active) next = std::min(next, now_ + server.remaining / server.rate);
    }
  }
  return next;
}

void Timeline::Pass(double seconds) {
  const double passed = seconds - now_;
  for (Device& device : devices_) {
    for (int unit = 0; unit < kUnits; ++unit) {
      Server& server = device[unit];
      if (!server.active) continue;
      // A node that ends exactly now may be left with a rounding residue, so that `now_ + rest`
      // would never be reached: residues below a picosecond are nothing.
      server.remaining -= passed * server.rate;
      if (server.remaining < 1e-12) server.remaining = 0;
      busy_[unit] += passed;
    }
  }
  now_ = seconds;
}

void Timeline::Start(const std::shared_ptr<Node>& node) {
  if (!HasServer(node->op.unit)) {
    timers_.push({now_ + node->op.seconds, node->sequence, node});
    return;
  }
  const size_t index = static_cast<size_t>(node->op.device);
  if (devices_.size() <= index) devices_.resize(index + 1);
  Device& device = devices_[index];
  Server& server = device[static_cast<int>(node->op.unit)];
  if (server.active) {
    server.queue.push_back(node);
    return;
  }
  server.active = node;
  server.remaining = node->op.seconds;
  SetRates(device);
}

void Timeline::End(const std::shared_ptr<Node>& node) {
  node->simulated = true;
  node->end_seconds = now_;
  --open_;
  std::vector<std::shared_ptr<Node>> next = std::move(node->time_next);
  node->time_next.clear();
  for (const std::shared_ptr<Node>& successor : next) {
    if (--successor->waiting_time == 0) Start(successor);
  }
}

void Timeline::SetRates(Device& device) {
  Server& in = device[static_cast<int>(Unit::kCopyToDevice)];
  Server& out = device[static_cast<int>(Unit::kCopyToHost)];
  const double rate = in.active && out.active ? GetConfig().duplex : 1.0;
  in.rate = rate;
  out.rate = rate;
}

}  // namespace simgpu
