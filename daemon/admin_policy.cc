// Validation and merge of policy entries.

#include "daemon/admin_policy.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "daemon/policy.h"
#include "daemon/quota.h"

namespace tidemark::daemon {
namespace {

constexpr absl::string_view kDefault = "default";
constexpr size_t kLongestName = TM_WIRE_NAME_BYTES - 1;
constexpr int32_t kHighestPriority = 100;
constexpr uint32_t kLargestSlowdown = 10000;
constexpr uint64_t kLargestBytes = uint64_t{1} << 50;

absl::Status Refuse(absl::string_view entry, absl::string_view field, absl::string_view value,
                    absl::string_view accepted) {
  return absl::InvalidArgumentError(absl::StrCat("Policy entry \"", entry, "\": ", field, " is ",
                                                 value, "; accepted: ", accepted));
}

absl::Status CheckName(const std::string& name) {
  const bool good_characters = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == ':';
  });
  if (name == "uid:*") return absl::OkStatus();
  if (!name.empty() && name.size() <= kLongestName && good_characters) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("Policy entry name is \"", name,
                                                 "\"; accepted: 1 to ", kLongestName,
                                                 " of the characters A-Z a-z 0-9 . _ - / :"));
}

absl::Status CheckBytes(const v1::PolicyEntry& entry, absl::string_view field, uint64_t bytes) {
  if (bytes <= kLargestBytes) return absl::OkStatus();
  return Refuse(entry.name(), field, absl::StrCat(bytes), absl::StrCat("0 to ", kLargestBytes));
}

absl::Status CheckClasses(const v1::PolicyEntry& entry) {
  std::set<std::string> seen;
  for (const std::string& word : entry.movable_classes()) {
    const bool alone_all = word == "all" && entry.movable_classes_size() == 1;
    const bool known =
        std::find(std::begin(kClassNames), std::end(kClassNames), word) != std::end(kClassNames);
    if ((!alone_all && !known) || !seen.insert(word).second) {
      return Refuse(entry.name(), "movable_classes", absl::StrCat("\"", word, "\""),
                    absl::StrCat("each at most once of ", absl::StrJoin(kClassNames, " "),
                                 ", or the one word all"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckEntry(const v1::PolicyEntry& entry) {
  if (absl::Status status = CheckName(entry.name()); !status.ok()) return status;
  if (entry.has_level() &&
      (entry.level() < v1::LEVEL_OFF || entry.level() > v1::LEVEL_AGGRESSIVE)) {
    return Refuse(entry.name(), "level", absl::StrCat(static_cast<int>(entry.level())),
                  "LEVEL_OFF, LEVEL_NORMAL, LEVEL_AGGRESSIVE");
  }
  const struct {
    absl::string_view field;
    uint64_t bytes;
  } sizes[] = {{"device_budget_bytes", entry.device_budget_bytes()},
               {"host_budget_bytes", entry.host_budget_bytes()},
               {"guarantee_bytes", entry.guarantee_bytes()},
               {"min_size_bytes", entry.min_size_bytes()}};
  for (const auto& size : sizes) {
    if (absl::Status status = CheckBytes(entry, size.field, size.bytes); !status.ok())
      return status;
  }
  if (entry.priority() < -kHighestPriority || entry.priority() > kHighestPriority) {
    return Refuse(entry.name(), "priority", absl::StrCat(entry.priority()), "-100 to 100");
  }
  if (entry.max_slowdown_permille() > kLargestSlowdown) {
    return Refuse(entry.name(), "max_slowdown_permille",
                  absl::StrCat(entry.max_slowdown_permille()), "0 to 10000");
  }
  return CheckClasses(entry);
}

// A guarantee above the entry's own budget can never be honoured.
absl::Status CheckTogether(const PolicyEntry& entry) {
  if (entry.device_budget_bytes == 0 || entry.guarantee_bytes <= entry.device_budget_bytes) {
    return absl::OkStatus();
  }
  return Refuse(entry.name, "guarantee_bytes", absl::StrCat(entry.guarantee_bytes),
                absl::StrCat("at most its device_budget_bytes, ", entry.device_budget_bytes));
}

Level FromProto(v1::Level level) {
  if (level == v1::LEVEL_OFF) return Level::kOff;
  return level == v1::LEVEL_AGGRESSIVE ? Level::kAggressive : Level::kNormal;
}

PolicyEntry Apply(PolicyEntry entry, const v1::PolicyEntry& change) {
  entry.name = change.name();
  if (change.has_level()) entry.level = FromProto(change.level());
  if (change.has_device_budget_bytes()) entry.device_budget_bytes = change.device_budget_bytes();
  if (change.has_host_budget_bytes()) entry.host_budget_bytes = change.host_budget_bytes();
  if (change.has_guarantee_bytes()) entry.guarantee_bytes = change.guarantee_bytes();
  if (change.has_priority()) entry.priority = change.priority();
  if (change.has_min_size_bytes()) entry.min_size_bytes = change.min_size_bytes();
  if (change.has_max_slowdown_permille()) {
    entry.max_slowdown_permille = change.max_slowdown_permille();
  }
  if (change.movable_classes_size() > 0) {
    entry.movable_classes.assign(change.movable_classes().begin(), change.movable_classes().end());
    if (entry.movable_classes.front() == "all") {
      entry.movable_classes.assign(std::begin(kClassNames), std::end(kClassNames));
    }
  }
  return entry;
}

absl::Status CheckNames(const Policy& current, const v1::SetPolicyRequest& request) {
  std::set<std::string> named;
  for (const v1::PolicyEntry& entry : request.entries()) {
    if (absl::Status status = CheckEntry(entry); !status.ok()) return status;
    if (!named.insert(entry.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("Policy entry \"", entry.name(), "\" is given twice; accepted: once"));
    }
  }
  for (const std::string& name : request.remove()) {
    if (name == kDefault) {
      return absl::InvalidArgumentError(
          "remove names \"default\"; accepted: any other entry, because jobs without an entry of "
          "their own use it");
    }
    if (current.entries.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "remove names \"", name, "\"; accepted: an entry that exists: ",
          absl::StrJoin(current.entries, " ",
                        [](std::string* out, const auto& entry) { out->append(entry.first); })));
    }
    if (named.count(name) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Policy entry \"", name, "\" is both set and removed; accepted: one of them"));
    }
  }
  if (request.replace_all() && named.count(std::string(kDefault)) == 0) {
    return absl::InvalidArgumentError(
        "replace_all without an entry named \"default\"; accepted: a policy that holds it, because "
        "jobs without an entry of their own use it");
  }
  if (named.empty() && request.remove_size() == 0) {
    return absl::InvalidArgumentError(
        "The request changes nothing; accepted: at least one entry or one name to remove");
  }
  return absl::OkStatus();
}

const v1::PolicyEntry* FindDefault(const v1::SetPolicyRequest& request) {
  for (const v1::PolicyEntry& entry : request.entries()) {
    if (entry.name() == kDefault) return &entry;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<PolicyChange> MergePolicy(const Policy& current,
                                         const v1::SetPolicyRequest& request) {
  if (absl::Status status = CheckNames(current, request); !status.ok()) return status;

  std::map<std::string, PolicyEntry> base;
  if (!request.replace_all()) base = current.entries;
  PolicyEntry base_default =
      request.replace_all() ? DefaultEntry() : base.at(std::string(kDefault));
  if (const v1::PolicyEntry* change = FindDefault(request)) {
    base_default = Apply(base_default, *change);
  }

  PolicyChange change;
  change.replace_all = request.replace_all();
  change.remove.assign(request.remove().begin(), request.remove().end());
  for (const v1::PolicyEntry& entry : request.entries()) {
    const auto found = base.find(entry.name());
    const bool known = found != base.end() && entry.name() != kDefault;
    const PolicyEntry fresh = IsQuotaName(entry.name()) ? DefaultEntry() : base_default;
    change.set.push_back(Apply(known ? found->second : fresh, entry));
    if (absl::Status status = CheckTogether(change.set.back()); !status.ok()) return status;
    if (absl::Status status = ValidateQuota(change.set.back()); !status.ok()) return status;
  }
  return change;
}

}  // namespace tidemark::daemon
