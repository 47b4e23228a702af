#include "daemon/policy.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/byte_text.h"
#include "daemon/quota.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 50;
constexpr int32_t kMaxPriority = 100;
constexpr uint32_t kMaxSlowdownPermille = 10000;
constexpr size_t kMaxEntries = 1024;

absl::Status OutOfRange(const PolicyEntry& entry, const std::string& rest) {
  return absl::InvalidArgumentError(absl::StrCat("policy entry \"", entry.name, "\": ", rest));
}

absl::Status ValidateName(const PolicyEntry& entry) {
  if (entry.name.empty() || entry.name.size() >= TM_WIRE_NAME_BYTES) {
    return OutOfRange(entry, absl::StrCat("a name has 1 to ", TM_WIRE_NAME_BYTES - 1, " bytes"));
  }
  for (const char c : entry.name) {
    if (!absl::ascii_isgraph(c) || c == '[' || c == ']' || c == '#') {
      return OutOfRange(entry, "a name holds printable ASCII without spaces, brackets and #");
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateBytes(const PolicyEntry& entry, const char* field, uint64_t bytes) {
  if (bytes <= kMaxBytes) return absl::OkStatus();
  return OutOfRange(entry, absl::StrCat(field, " ", bytes, " is out of range: 0 to ", kMaxBytes));
}

absl::Status ValidateClasses(const PolicyEntry& entry) {
  std::set<std::string> seen;
  for (const std::string& name : entry.movable_classes) {
    if (std::find(std::begin(kClassNames), std::end(kClassNames), name) == std::end(kClassNames)) {
      return OutOfRange(entry, absl::StrCat("movable_classes \"", name, "\" is not one of ",
                                            absl::StrJoin(kClassNames, ", ")));
    }
    if (!seen.insert(name).second) {
      return OutOfRange(entry, absl::StrCat("movable_classes names \"", name, "\" twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

const char* LevelName(Level level) {
  switch (level) {
    case Level::kOff:
      return "off";
    case Level::kNormal:
      return "normal";
    case Level::kAggressive:
      return "aggressive";
  }
  return "normal";
}

absl::StatusOr<Level> ParseLevel(absl::string_view text) {
  for (const Level level : {Level::kOff, Level::kNormal, Level::kAggressive}) {
    if (text == LevelName(level)) return level;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a level: off, normal or aggressive"));
}

PolicyEntry DefaultEntry() {
  PolicyEntry entry;
  entry.name = kDefaultEntry;
  entry.movable_classes.assign(std::begin(kClassNames), std::end(kClassNames));
  return entry;
}

Policy DefaultPolicy() {
  Policy policy;
  policy.generation = 1;
  policy.entries[kDefaultEntry] = DefaultEntry();
  return policy;
}

absl::Status ValidateEntry(const PolicyEntry& entry) {
  if (absl::Status status = ValidateName(entry); !status.ok()) return status;
  const std::pair<const char*, uint64_t> sizes[] = {
      {"device_budget_bytes", entry.device_budget_bytes},
      {"host_budget_bytes", entry.host_budget_bytes},
      {"guarantee_bytes", entry.guarantee_bytes},
      {"min_size_bytes", entry.min_size_bytes}};
  for (const auto& [field, bytes] : sizes) {
    if (absl::Status status = ValidateBytes(entry, field, bytes); !status.ok()) return status;
  }
  if (entry.device_budget_bytes != 0 && entry.guarantee_bytes > entry.device_budget_bytes) {
    return OutOfRange(
        entry, absl::StrCat("guarantee_bytes ", entry.guarantee_bytes,
                            " is more than device_budget_bytes ", entry.device_budget_bytes));
  }
  if (entry.priority < -kMaxPriority || entry.priority > kMaxPriority) {
    return OutOfRange(entry, absl::StrCat("priority ", entry.priority, " is out of range: -",
                                          kMaxPriority, " to ", kMaxPriority));
  }
  if (entry.max_slowdown_permille > kMaxSlowdownPermille) {
    return OutOfRange(entry, absl::StrCat("max_slowdown_permille ", entry.max_slowdown_permille,
                                          " is out of range: 0 to ", kMaxSlowdownPermille));
  }
  if (absl::Status status = ValidateClasses(entry); !status.ok()) return status;
  return ValidateQuota(entry);
}

absl::StatusOr<Policy> Changed(const Policy& policy, const PolicyChange& change) {
  Policy next;
  next.generation = policy.generation + 1;
  if (!change.replace_all) next.entries = policy.entries;
  for (const std::string& name : change.remove) {
    if (name == kDefaultEntry) {
      return absl::InvalidArgumentError("the policy entry \"default\" cannot be removed");
    }
    if (next.entries.erase(name) == 0 && !change.replace_all) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no policy entry \"", name, "\" to remove"));
    }
  }
  for (const PolicyEntry& entry : change.set) {
    if (absl::Status status = ValidateEntry(entry); !status.ok()) return status;
    next.entries[entry.name] = entry;
  }
  if (next.entries.count(kDefaultEntry) == 0) next.entries[kDefaultEntry] = DefaultEntry();
  if (next.entries.size() > kMaxEntries) {
    return absl::InvalidArgumentError(absl::StrCat("a policy has at most ", kMaxEntries,
                                                   " entries, this one would have ",
                                                   next.entries.size()));
  }
  return next;
}

const PolicyEntry& EntryFor(const Policy& policy, const std::string& job_name) {
  const auto found = IsQuotaName(job_name) ? policy.entries.end() : policy.entries.find(job_name);
  return found != policy.entries.end() ? found->second : policy.entries.at(kDefaultEntry);
}

LeaseAnswer Answer(const LeaseQuestion& question) {
  const uint64_t in_budget = question.budget > question.held ? question.budget - question.held : 0;
  const uint64_t possible =
      std::min({question.count, in_budget, question.room, question.quota.room()});
  LeaseAnswer answer;
  if (possible >= question.at_least) {
    answer.granted = possible;
    return answer;
  }
  answer.chunks_short = question.at_least - possible;
  const auto bytes = [&](uint64_t chunks) { return ReadableBytes(chunks * question.chunk_bytes); };
  const std::string wish = absl::StrCat(bytes(question.at_least), " more on ", question.place);
  const std::string have = absl::StrCat("the job holds ", bytes(question.held));
  if (question.held + question.at_least > question.limit) {
    answer.reason = absl::StrCat(wish, ": ", have, " of its limit ", bytes(question.limit));
  } else if (question.quota.room() < question.at_least) {
    // Other jobs of the same user can make room, nobody else's can.
    answer.contended = question.quota.held > question.held;
    answer.reason =
        absl::StrCat(wish, ": ", have, ", and the jobs of its user ", bytes(question.quota.held),
                     " of their quota ", bytes(question.quota.limit));
  } else if (question.held + question.at_least > question.budget) {
    answer.contended = true;
    answer.reason =
        absl::StrCat(wish, ": ", have, " of its present share ", bytes(question.budget));
  } else {
    answer.contended = true;
    answer.reason =
        absl::StrCat(wish, ": only ", bytes(question.room), " is free; others are asked to shrink");
  }
  return answer;
}

}  // namespace tidemark::daemon
