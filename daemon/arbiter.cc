#include "daemon/arbiter.h"

#include <algorithm>
#include <set>

namespace tidemark::daemon {
namespace {

constexpr uint64_t kMinimumDivisor = 8;  // of an equal share

uint64_t DemandOf(const Claim& claim) {
  const uint64_t demand = std::min(claim.wanted, claim.limit);
  return claim.movable ? demand : std::max(demand, claim.held);
}

// Chunks still to give, and what each claim has so far.
struct Division {
  uint64_t left;
  std::vector<uint64_t> demand;
  std::vector<uint64_t> part;

  void RaiseTo(size_t i, uint64_t level) {
    const uint64_t target = std::min(level, demand[i]);
    if (target <= part[i]) return;
    const uint64_t given = std::min(target - part[i], left);
    part[i] += given;
    left -= given;
  }

  uint64_t CostOf(const std::vector<size_t>& members, uint64_t level) const {
    uint64_t cost = 0;
    for (const size_t i : members) {
      const uint64_t target = std::min(level, demand[i]);
      if (target > part[i]) cost += target - part[i];
    }
    return cost;
  }

  // Raises the lowest of `members` together until nothing is left or wanted.
  void Fill(const std::vector<size_t>& members) {
    uint64_t low = 0;
    uint64_t high = 0;
    for (const size_t i : members) high = std::max(high, demand[i]);
    while (low < high) {  // the highest level that `left` pays for
      const uint64_t middle = low + (high - low + 1) / 2;
      if (CostOf(members, middle) <= left) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    for (const size_t i : members) RaiseTo(i, low);
    // Fewer chunks than members remain: one each, the earlier attached first.
    for (const size_t i : members) {
      if (part[i] <= low) RaiseTo(i, low + 1);
    }
  }
};

}  // namespace

std::vector<uint64_t> Divide(uint64_t capacity, const std::vector<Claim>& claims) {
  const size_t count = claims.size();
  Division division{capacity, std::vector<uint64_t>(count), std::vector<uint64_t>(count)};
  std::set<int32_t> priorities;
  for (size_t i = 0; i < count; ++i) {
    division.demand[i] = DemandOf(claims[i]);
    priorities.insert(claims[i].priority);
    if (claims[i].movable) continue;
    division.part[i] = claims[i].held;
    division.left -= std::min(division.left, claims[i].held);
  }
  for (size_t i = 0; i < count; ++i) division.RaiseTo(i, claims[i].guarantee);
  for (size_t i = 0; i < count; ++i) {
    division.RaiseTo(i, std::max<uint64_t>(capacity / count / kMinimumDivisor, 1));
  }
  for (auto priority = priorities.rbegin(); priority != priorities.rend(); ++priority) {
    std::vector<size_t> members;
    for (size_t i = 0; i < count; ++i) {
      if (claims[i].priority == *priority) members.push_back(i);
    }
    division.Fill(members);
  }
  return division.part;
}

uint64_t Entitlement(uint64_t capacity, std::vector<Claim> claims, size_t index) {
  claims[index].wanted = std::max(claims[index].wanted, claims[index].limit);
  return Divide(capacity, claims)[index];
}

}  // namespace tidemark::daemon
