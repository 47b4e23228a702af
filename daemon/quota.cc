#include "daemon/quota.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/policy.h"

namespace tidemark::daemon {
namespace {

constexpr char kPrefix[] = "uid:";

bool NamesAUser(const std::string& name) {
  const std::string user = name.substr(sizeof(kPrefix) - 1);
  uint32_t uid = 0;
  // As it is looked up: "uid:007" would never be found.
  return user == "*" || (absl::SimpleAtoi(user, &uid) && user == absl::StrCat(uid));
}

}  // namespace

bool IsQuotaName(const std::string& name) { return absl::StartsWith(name, kPrefix); }

absl::Status ValidateQuota(const PolicyEntry& entry) {
  if (!IsQuotaName(entry.name)) return absl::OkStatus();
  if (!NamesAUser(entry.name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("policy entry \"", entry.name,
                     "\": a quota is named uid:N, N a user's number, or uid:* for the others"));
  }
  PolicyEntry plain = DefaultEntry();
  plain.device_budget_bytes = entry.device_budget_bytes;
  plain.host_budget_bytes = entry.host_budget_bytes;
  const bool quota_only =
      entry.level == plain.level && entry.guarantee_bytes == plain.guarantee_bytes &&
      entry.priority == plain.priority && entry.min_size_bytes == plain.min_size_bytes &&
      entry.max_slowdown_permille == plain.max_slowdown_permille &&
      entry.movable_classes == plain.movable_classes;
  if (quota_only) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("policy entry \"", entry.name,
                   "\": only device_budget_bytes and host_budget_bytes apply to a user's quota"));
}

const PolicyEntry* QuotaEntry(const Policy& policy, uid_t uid) {
  for (const std::string& name : {absl::StrCat(kPrefix, uid), absl::StrCat(kPrefix, "*")}) {
    const auto found = policy.entries.find(name);
    if (found != policy.entries.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace tidemark::daemon
