#include "daemon/policy_text.h"

#include <functional>
#include <set>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/byte_text.h"
#include "daemon/policy.h"

namespace tidemark::daemon {
namespace {

constexpr char kHead[] =
    "# Policy of this node's Tidemark daemon, written by tidemarkd (`tidemark policy set`).\n"
    "# One [section] per job name; [default] serves every other job. A budget of 0 is a share of\n"
    "# what is free. [uid:N] and [uid:*] bound all jobs of a user together. The daemon\n"
    "# reads this file when it starts.\n";

template <typename Number>
absl::Status ReadNumber(absl::string_view text, Number* number) {
  if (absl::SimpleAtoi(text, number)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a whole number in range"));
}

absl::Status ReadBytes(absl::string_view text, uint64_t* bytes) {
  absl::StatusOr<uint64_t> parsed = ParseBytes(text);
  if (parsed.ok()) *bytes = *parsed;
  return parsed.status();
}

struct Field {
  const char* key;
  absl::Status (*read)(absl::string_view text, PolicyEntry* entry);
  std::string (*write)(const PolicyEntry& entry);
};

template <auto member>
constexpr Field BytesField(const char* key) {
  return {
      key,
      [](absl::string_view text, PolicyEntry* entry) { return ReadBytes(text, &(entry->*member)); },
      [](const PolicyEntry& entry) { return ExactBytes(entry.*member); }};
}

template <auto member>
constexpr Field NumberField(const char* key) {
  return {key,
          [](absl::string_view text, PolicyEntry* entry) {
            return ReadNumber(text, &(entry->*member));
          },
          [](const PolicyEntry& entry) { return absl::StrCat(entry.*member); }};
}

const Field kFields[] = {
    {"level",
     [](absl::string_view text, PolicyEntry* entry) {
       absl::StatusOr<Level> level = ParseLevel(text);
       if (level.ok()) entry->level = *level;
       return level.status();
     },
     [](const PolicyEntry& entry) { return std::string(LevelName(entry.level)); }},
    BytesField<&PolicyEntry::device_budget_bytes>("device_budget_bytes"),
    BytesField<&PolicyEntry::host_budget_bytes>("host_budget_bytes"),
    BytesField<&PolicyEntry::guarantee_bytes>("guarantee_bytes"),
    NumberField<&PolicyEntry::priority>("priority"),
    BytesField<&PolicyEntry::min_size_bytes>("min_size_bytes"),
    NumberField<&PolicyEntry::max_slowdown_permille>("max_slowdown_permille"),
    {"movable_classes",
     [](absl::string_view text, PolicyEntry* entry) {
       entry->movable_classes.clear();
       for (absl::string_view name : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
         entry->movable_classes.emplace_back(name);
       }
       return absl::OkStatus();
     },
     [](const PolicyEntry& entry) { return absl::StrJoin(entry.movable_classes, " "); }},
};

// Reads line by line; `entry` is the section being read.
class Reader {
 public:
  absl::Status Line(absl::string_view line) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) return absl::OkStatus();
    if (line.front() == '[') return Section(line);
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
    if (parts.size() != 2) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", line, "\" is neither [name] nor key = value"));
    }
    return Assign(absl::StripAsciiWhitespace(parts[0]), absl::StripAsciiWhitespace(parts[1]));
  }

  absl::StatusOr<Policy> Finish() {
    if (policy_.entries.count(kDefaultEntry) == 0) {
      return absl::InvalidArgumentError("there is no [default] section");
    }
    if (policy_.generation == 0) {
      return absl::InvalidArgumentError("there is no generation, or it is 0");
    }
    for (const auto& [name, entry] : policy_.entries) {
      if (absl::Status status = ValidateEntry(entry); !status.ok()) return status;
    }
    return policy_;
  }

 private:
  absl::Status Section(absl::string_view line) {
    if (line.back() != ']') {
      return absl::InvalidArgumentError(absl::StrCat("\"", line, "\" does not end with ]"));
    }
    const std::string name(line.substr(1, line.size() - 2));
    PolicyEntry fresh = DefaultEntry();
    fresh.name = name;
    if (absl::Status status = ValidateEntry(fresh); !status.ok()) return status;
    const auto [place, added] = policy_.entries.emplace(name, fresh);
    if (!added) return absl::InvalidArgumentError(absl::StrCat("[", name, "] appears twice"));
    entry_ = &place->second;
    seen_.clear();
    return absl::OkStatus();
  }

  absl::Status Assign(absl::string_view key, absl::string_view value) {
    if (!seen_.insert(std::string(key)).second) {
      return absl::InvalidArgumentError(absl::StrCat(key, " appears twice"));
    }
    if (entry_ == nullptr) {
      if (key == "generation") return ReadNumber(value, &policy_.generation);
      return absl::InvalidArgumentError(
          absl::StrCat("\"", key, "\" before the first [section]; only generation goes there"));
    }
    for (const Field& field : kFields) {
      if (key == field.key) return field.read(value, entry_);
    }
    return absl::InvalidArgumentError(absl::StrCat("there is no policy key \"", key, "\""));
  }

  Policy policy_;
  PolicyEntry* entry_ = nullptr;
  std::set<std::string> seen_;
};

std::string ChangedFields(const PolicyEntry& before, const PolicyEntry& next) {
  std::string text;
  for (const Field& field : kFields) {
    if (field.write(before) == field.write(next)) continue;
    absl::StrAppend(&text, " ", field.key, "=\"", field.write(next), "\" (was \"",
                    field.write(before), "\")");
  }
  return text;
}

}  // namespace

std::string FormatPolicy(const Policy& policy) {
  std::string text = absl::StrCat(kHead, "\ngeneration = ", policy.generation, "\n");
  for (const auto& [name, entry] : policy.entries) {
    absl::StrAppend(&text, "\n[", name, "]\n");
    for (const Field& field : kFields) {
      absl::StrAppend(&text, field.key, " = ", field.write(entry), "\n");
    }
  }
  return text;
}

absl::StatusOr<Policy> ParsePolicy(absl::string_view text) {
  Reader reader;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::Status status = reader.Line(line); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  return reader.Finish();
}

std::string DescribeChange(const Policy& before, const Policy& next) {
  std::string text;
  for (const auto& [name, entry] : next.entries) {
    const auto old = before.entries.find(name);
    PolicyEntry fresh = DefaultEntry();
    fresh.name = name;
    const std::string fields =
        ChangedFields(old == before.entries.end() ? fresh : old->second, entry);
    if (old == before.entries.end()) {
      absl::StrAppend(&text, " add [", name, "]", fields);
    } else if (!fields.empty()) {
      absl::StrAppend(&text, " set [", name, "]", fields);
    }
  }
  for (const auto& [name, entry] : before.entries) {
    if (next.entries.count(name) == 0) absl::StrAppend(&text, " remove [", name, "]");
  }
  return text.empty() ? " nothing" : text;
}

}  // namespace tidemark::daemon
