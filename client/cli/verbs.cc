// The list of verbs, the flags all of them take, and the help made from both. Threads: stateless.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

std::string FlagWord(const Flag& flag) {
  switch (flag.takes) {
    case Takes::kNothing:
      return flag.name;
    case Takes::kValue:
      return absl::StrCat(flag.name, " ", flag.placeholder);
    case Takes::kOptionalValue:
      return absl::StrCat(flag.name, "[=", flag.placeholder, "]");
  }
  return flag.name;
}

constexpr size_t kHelpColumns = 100;

// `text` broken between words, its lines after the first indented by `indent`.
std::string Wrapped(const std::string& text, size_t indent) {
  std::string out;
  size_t column = indent;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    if (column > indent && column + 1 + word.size() > kHelpColumns) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
    }
    absl::StrAppend(&out, column > indent ? " " : "", word);
    column += (column > indent ? 1 : 0) + word.size();
  }
  return out;
}

void AppendFlags(const std::vector<Flag>& flags, std::string* out) {
  size_t width = 0;
  for (const Flag& flag : flags) width = std::max(width, FlagWord(flag).size());
  for (const Flag& flag : flags) {
    std::string text = flag.help;
    if (*flag.default_value != '\0') absl::StrAppend(&text, " (default ", flag.default_value, ")");
    absl::StrAppendFormat(out, "  %-*s  %s\n", static_cast<int>(width), FlagWord(flag),
                          Wrapped(text, width + 4));
  }
}

constexpr char kExits[] =
    "Exit status: 0 done, 1 refused or failed, 2 wrong command line, 3 tidemarkd unreachable;\n"
    "`run` passes on the job's own, or 128 + signal.\n";

int RunHelp(const Invocation& call) {
  const Verb* verb = call.arguments.empty() ? nullptr : FindVerb(call.arguments[0]);
  if (!call.arguments.empty() && verb == nullptr) {
    absl::FPrintF(stderr, "tidemark: there is no verb '%s'; `tidemark help` lists them\n",
                  call.arguments[0]);
    return kUsage;
  }
  absl::PrintF("%s", verb == nullptr ? Overview() : HelpOf(*verb));
  return kOk;
}

}  // namespace

const Verb kHelp = {"help", "[VERB]", "show this list, or one verb's help", "", {}, 0, 1, RunHelp};

const std::vector<const Verb*>& Verbs() {
  static const auto* verbs = new std::vector<const Verb*>{
      &kRun, &kStatus, &kJobs,   &kTop,      &kMap,        &kPolicy,  &kEvict, &kPrefetch,
      &kPin, &kEvents, &kDoctor, &kSnapshot, &kCompletion, &kVersion, &kHelp};
  return *verbs;
}

const Verb* FindVerb(const std::string& name) {
  for (const Verb* verb : Verbs()) {
    if (name == verb->name) return verb;
  }
  return nullptr;
}

const std::vector<Flag>& GlobalFlags() {
  static const auto* flags = new std::vector<Flag>{
      {"--format", Takes::kValue, "text|json", "text", "how data is printed"},
      {"--admin", Takes::kValue, "ADDRESS", "",
       "tidemarkd's admin address, unix:PATH or HOST:PORT; else "
       "$TIDEMARK_ADMIN, else where this user's tidemarkd listens, else the node's"},
      {"--tls-ca", Takes::kValue, "FILE", "$TIDEMARK_TLS_CA",
       "for an admin address over TCP: who signed tidemarkd's certificate"},
      {"--tls-certificate", Takes::kValue, "FILE", "$TIDEMARK_TLS_CERTIFICATE",
       "and the certificate to show to it"},
      {"--tls-key", Takes::kValue, "FILE", "$TIDEMARK_TLS_KEY", "and its key"},
      {"--help", Takes::kNothing, "", "", "show the verb's help"},
  };
  return *flags;
}

std::string HelpOf(const Verb& verb) {
  std::string out = absl::StrCat("tidemark ", verb.name);
  if (!verb.flags.empty()) absl::StrAppend(&out, " [FLAG...]");
  if (*verb.arguments != '\0') absl::StrAppend(&out, " ", verb.arguments);
  absl::StrAppend(&out, "\n  ", verb.summary, "\n");
  if (*verb.details != '\0') absl::StrAppend(&out, "\n", verb.details, "\n");
  if (!verb.flags.empty()) {
    absl::StrAppend(&out, "\nFlags:\n");
    AppendFlags(verb.flags, &out);
  }
  absl::StrAppend(&out, "\nFor every verb:\n");
  AppendFlags(GlobalFlags(), &out);
  absl::StrAppend(&out, "\n", kExits);
  return out;
}

std::string Overview() {
  std::string out =
      "tidemark: run GPU jobs past their memory, and ask the node's tidemarkd how they do.\n\n"
      "  tidemark run -- python train.py      the job fits, no change to the script\n"
      "  tidemark status                      who holds which memory, as a sum\n\nVerbs:\n";
  for (const Verb* verb : Verbs())
    absl::StrAppendFormat(&out, "  %-11s %s\n", verb->name, verb->summary);
  absl::StrAppend(&out, "\nFor every verb:\n");
  AppendFlags(GlobalFlags(), &out);
  absl::StrAppend(&out, "\n", kExits);
  return out;
}

}  // namespace tidemark::client
