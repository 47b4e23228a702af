// From the words of a command line to a verb and its exit status. Threads: one.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/parse.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

int Complain(const std::string& sentence) {
  absl::FPrintF(stderr, "tidemark: %s\n", sentence);
  return kUsage;
}

// "--flag value" of a flag for every verb, as opposed to "--flag=value".
bool TakesNextWord(const std::string& word) {
  for (const Flag& flag : GlobalFlags()) {
    if (word == flag.name) return flag.takes == Takes::kValue;
  }
  return false;
}

// Flags for every verb may stand before it: `tidemark --format json status`.
size_t VerbIndex(const std::vector<std::string>& words) {
  size_t at = 0;
  while (at < words.size() && absl::StartsWith(words[at], "--")) {
    at += TakesNextWord(words[at]) ? 2 : 1;
  }
  return at;
}

int UnknownVerb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb* verb : Verbs()) names.emplace_back(verb->name);
  const std::string closest = Closest(word, names);
  return Complain(absl::StrCat("there is no verb '", word, "'",
                               closest.empty() ? "; `tidemark help` lists them"
                                               : absl::StrCat("; did you mean ", closest, "?")));
}

}  // namespace

int Main(const std::vector<std::string>& arguments) {
  const size_t at = VerbIndex(arguments);
  if (at >= arguments.size()) {
    const bool asked = !arguments.empty() && arguments[0] == "--help";
    if (!arguments.empty() && arguments[0] == "--version") return kVersion.run({});
    absl::FPrintF(asked ? stdout : stderr, "%s", Overview());
    return asked ? kOk : kUsage;
  }
  const Verb* verb = FindVerb(arguments[at]);
  if (verb == nullptr) return UnknownVerb(arguments[at]);
  std::vector<std::string> words(arguments.begin(), arguments.begin() + static_cast<long>(at));
  words.insert(words.end(), arguments.begin() + static_cast<long>(at) + 1, arguments.end());
  absl::StatusOr<Invocation> call = Parse(*verb, words);
  if (!call.ok()) return Complain(std::string(call.status().message()));
  if (call->has("--help")) {
    absl::PrintF("%s", HelpOf(*verb));
    return kOk;
  }
  return verb->run(*call);
}

}  // namespace tidemark::client
