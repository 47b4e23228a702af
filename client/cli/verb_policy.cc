// `tidemark policy get|set|apply|explain`. Threads: one.

#include <google/protobuf/util/json_util.h>

#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/connection.h"
#include "client/cli/job_argument.h"
#include "client/cli/text.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

constexpr int kClassCount = 6;  // parameter to unknown, as admin.proto lists them

int Complain(const std::string& sentence) {
  absl::FPrintF(stderr, "tidemark: %s\n", sentence);
  return kUsage;
}

const char* LevelWord(v1::Level level) {
  switch (level) {
    case v1::LEVEL_OFF:
      return "off";
    case v1::LEVEL_NORMAL:
      return "normal";
    case v1::LEVEL_AGGRESSIVE:
      return "aggressive";
    default:
      return "unknown";
  }
}

std::string BytesOrShare(uint64_t bytes) { return bytes == 0 ? "fair share" : HumanBytes(bytes); }

std::string BytesOrNone(uint64_t bytes) { return bytes == 0 ? "no bound" : HumanBytes(bytes); }

int Print(const Invocation& call, const v1::GetPolicyResponse& policy) {
  if (call.json()) return PrintJson(policy);
  Table table({"ENTRY", "LEVEL", "DEVICE", "HOST", "GUARANTEE", "PRIORITY", "MIN SIZE", "SLOWER",
               "CLASSES"});
  for (const v1::PolicyEntry& entry : policy.entries()) {
    if (entry.name().rfind("uid:", 0) == 0) {
      table.Add({entry.name(), "quota", BytesOrNone(entry.device_budget_bytes()),
                 BytesOrNone(entry.host_budget_bytes()), "-", "-", "-", "-", "-"});
      continue;
    }
    const bool all = entry.movable_classes_size() == kClassCount;
    const std::string classes = all ? "all" : absl::StrJoin(entry.movable_classes(), ",");
    table.Add({entry.name(), LevelWord(entry.level()), BytesOrShare(entry.device_budget_bytes()),
               BytesOrShare(entry.host_budget_bytes()), HumanBytes(entry.guarantee_bytes()),
               absl::StrCat(entry.priority()), HumanBytes(entry.min_size_bytes()),
               absl::StrFormat("%.1f%%", entry.max_slowdown_permille() / 10.0),
               classes.empty() ? "none" : classes});
  }
  absl::PrintF("policy, generation %d\n\n%s", policy.generation(), table.str());
  return kOk;
}

int Get(const Invocation& call) {
  v1::GetPolicyResponse policy;
  const int failed = Ask(call, &v1::Admin::Stub::GetPolicy, v1::GetPolicyRequest(), &policy);
  return failed == kOk ? Print(call, policy) : failed;
}

// Each field of an entry: its flag, and how its value is put in. They return the sentence on what
// is wrong, or "".
using Put = std::string (*)(const std::string& value, v1::PolicyEntry* entry);

template <void (v1::PolicyEntry::*Set)(uint64_t)>
std::string PutBytes(const std::string& value, v1::PolicyEntry* entry) {
  uint64_t bytes = 0;
  std::string wrong = ParseBytes(value, 0, "the amount", &bytes);
  if (wrong.empty()) (entry->*Set)(bytes);
  return wrong;
}

std::string PutLevel(const std::string& value, v1::PolicyEntry* entry) {
  for (v1::Level level : {v1::LEVEL_OFF, v1::LEVEL_NORMAL, v1::LEVEL_AGGRESSIVE}) {
    if (value != LevelWord(level)) continue;
    entry->set_level(level);
    return "";
  }
  return absl::StrCat("--level '", value, "' is not accepted; off, normal and aggressive are");
}

std::string PutPriority(const std::string& value, v1::PolicyEntry* entry) {
  int32_t priority = 0;
  if (!absl::SimpleAtoi(value, &priority)) {
    return absl::StrCat("--priority '", value, "' is not a whole number; -100 to 100 is accepted");
  }
  entry->set_priority(priority);
  return "";
}

std::string PutSlowdown(const std::string& value, v1::PolicyEntry* entry) {
  double percent = 0;
  std::string number = value;
  if (!number.empty() && number.back() == '%') number.pop_back();
  if (!absl::SimpleAtod(number, &percent) || !(percent >= 0 && percent <= 1000)) {
    return absl::StrCat("--max-slowdown '", value, "' is not accepted; 0% to 1000% is");
  }
  entry->set_max_slowdown_permille(static_cast<uint32_t>(percent * 10 + 0.5));
  return "";
}

std::string PutClasses(const std::string& value, v1::PolicyEntry* entry) {
  for (const auto& word : absl::StrSplit(value, ',', absl::SkipEmpty())) {
    entry->add_movable_classes(std::string(word));
  }
  return "";
}

struct Field {
  Flag flag;
  Put put;
};

const std::vector<Field>& Fields() {
  static const auto* fields = new std::vector<Field>{
      {{"--level", Takes::kValue, "off|normal|aggressive", "", "set: how much may move"}, PutLevel},
      {{"--device-budget", Takes::kValue, "BYTES", "",
        "set: device memory a job may hold; 0: fair share"},
       PutBytes<&v1::PolicyEntry::set_device_budget_bytes>},
      {{"--host-budget", Takes::kValue, "BYTES", "",
        "set: host memory a job may hold; 0: fair share"},
       PutBytes<&v1::PolicyEntry::set_host_budget_bytes>},
      {{"--guarantee", Takes::kValue, "BYTES", "", "set: device memory that a job always gets"},
       PutBytes<&v1::PolicyEntry::set_guarantee_bytes>},
      {{"--priority", Takes::kValue, "N", "", "set: -100 to 100; higher wins what is left over"},
       PutPriority},
      {{"--min-size", Takes::kValue, "BYTES", "", "set: smaller buffers leave last"},
       PutBytes<&v1::PolicyEntry::set_min_size_bytes>},
      {{"--max-slowdown", Takes::kValue, "PERCENT", "", "set: how much slower a job may become"},
       PutSlowdown},
      {{"--classes", Takes::kValue, "LIST", "", "set: classes of buffers that may move, or all"},
       PutClasses},
  };
  return *fields;
}

std::vector<Flag> PolicyFlags() {
  std::vector<Flag> flags;
  for (const Field& field : Fields()) flags.push_back(field.flag);
  flags.push_back({"--remove", Takes::kNothing, "", "", "set: remove the entry"});
  return flags;
}

int Send(const Invocation& call, const v1::SetPolicyRequest& request) {
  v1::GetPolicyResponse policy;
  const int failed = Ask(call, &v1::Admin::Stub::SetPolicy, request, &policy);
  return failed == kOk ? Print(call, policy) : failed;
}

int Set(const Invocation& call) {
  if (call.arguments.size() != 2)
    return Complain("policy set takes the NAME of one entry, such as default");
  v1::SetPolicyRequest request;
  if (call.has("--remove")) {
    request.add_remove(call.arguments[1]);
    return Send(call, request);
  }
  v1::PolicyEntry* entry = request.add_entries();
  entry->set_name(call.arguments[1]);
  bool any = false;
  for (const Field& field : Fields()) {
    if (!call.has(field.flag.name)) continue;
    any = true;
    const std::string wrong = field.put(call.value(field.flag.name), entry);
    if (!wrong.empty()) return Complain(wrong);
  }
  if (!any) return Complain("policy set needs at least one field, such as --device-budget 4GiB");
  return Send(call, request);
}

int Apply(const Invocation& call) {
  if (call.arguments.size() != 2)
    return Complain(
        "policy apply takes one FILE, as `tidemark policy get --format json` prints it");
  std::ifstream file(call.arguments[1]);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return Complain(absl::StrCat("cannot read '", call.arguments[1], "'"));
  v1::GetPolicyResponse wanted;
  google::protobuf::util::JsonParseOptions strict;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text.str(), &wanted, strict);
  if (!parsed.ok()) {
    return Complain(
        absl::StrCat("'", call.arguments[1], "' is not a policy: ", std::string(parsed.message())));
  }
  v1::SetPolicyRequest request;
  *request.mutable_entries() = wanted.entries();
  request.set_replace_all(true);
  return Send(call, request);
}

int Explain(const Invocation& call) {
  if (call.arguments.size() != 2) return Complain("policy explain takes one JOB");
  int failed = kOk;
  v1::ExplainPolicyRequest request;
  request.set_job_id(JobArgument(call, call.arguments[1], &failed));
  if (failed != kOk) return failed;
  v1::ExplainPolicyResponse response;
  failed = Ask(call, &v1::Admin::Stub::ExplainPolicy, request, &response);
  if (failed != kOk) return failed;
  if (call.json()) return PrintJson(response);
  for (const std::string& sentence : response.sentences()) absl::PrintF("%s\n", sentence);
  return kOk;
}

int Policy(const Invocation& call) {
  const std::string& what = call.arguments[0];
  if (what == "get" && call.arguments.size() == 1) return Get(call);
  if (what == "set") return Set(call);
  if (what == "apply") return Apply(call);
  if (what == "explain") return Explain(call);
  return Complain(absl::StrCat("policy '", absl::StrJoin(call.arguments, " "),
                               "' is not accepted; get, set NAME, apply FILE and explain JOB are"));
}

}  // namespace

const Verb kPolicy = {
    "policy",
    "get | set NAME | apply FILE | explain JOB",
    "read, change and explain the policy, at run time",
    "NAME is a job's name, or `default` for jobs without an entry of their own. Fields that are "
    "not\n"
    "given stay as they are. A change is on disk and in the audit log when this returns.\n"
    "uid:N is the quota of user N, uid:* that of each user without one: --device-budget (on each "
    "GPU) and\n"
    "--host-budget bound all jobs of the user together.\n\n"
    "  tidemark policy set default --level normal --device-budget 8GiB\n"
    "  tidemark policy set uid:1000 --device-budget 16GiB\n"
    "  tidemark policy get --format json > policy.json; tidemark policy apply policy.json",
    PolicyFlags(),
    1,
    2,
    Policy};

}  // namespace tidemark::client
