// Table-driven parsing of flags and arguments; see parse.h. Threads: stateless.

#include "client/cli/parse.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tidemark::client {
namespace {

size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::vector<Flag> AllFlags(const Verb& verb) {
  std::vector<Flag> flags = verb.flags;
  flags.insert(flags.end(), GlobalFlags().begin(), GlobalFlags().end());
  return flags;
}

const Flag* Find(const std::vector<Flag>& flags, const std::string& name) {
  for (const Flag& flag : flags) {
    if (name == flag.name) return &flag;
  }
  return nullptr;
}

absl::Status Unknown(const Verb& verb, const std::vector<Flag>& flags, const std::string& name) {
  std::vector<std::string> names;
  names.reserve(flags.size());
  for (const Flag& flag : flags) names.push_back(flag.name);
  const std::string closest = Closest(name, names);
  return absl::InvalidArgumentError(absl::StrCat(
      "tidemark ", verb.name, " has no flag '", name, "'",
      closest.empty() ? "" : absl::StrCat("; did you mean ", closest, "?"),
      closest.empty() ? absl::StrCat("; `tidemark help ", verb.name, "` lists them") : ""));
}

// Takes the flag at words[*at], and its value.
absl::Status TakeFlag(const Verb& verb, const std::vector<std::string>& words, size_t* at,
                      Invocation* call) {
  const std::vector<Flag> flags = AllFlags(verb);
  const std::string& word = words[*at];
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const Flag* flag = Find(flags, name);
  if (flag == nullptr) return Unknown(verb, flags, name);
  std::string value;
  if (equals != std::string::npos) {
    if (flag->takes == Takes::kNothing) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " takes no value, and got '", word, "'"));
    }
    value = word.substr(equals + 1);
  } else if (flag->takes == Takes::kValue) {
    if (*at + 1 == words.size()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " needs a value: ", flag->placeholder));
    }
    value = words[++*at];
  }
  call->flags[name] = value;
  return absl::OkStatus();
}

absl::Status CheckCount(const Verb& verb, const Invocation& call) {
  const auto count = static_cast<int>(call.arguments.size());
  const bool few = count < verb.least_arguments;
  const bool many = verb.most_arguments >= 0 && count > verb.most_arguments;
  if (!few && !many) return absl::OkStatus();
  const std::string wants = *verb.arguments == '\0' ? "no arguments" : verb.arguments;
  return absl::InvalidArgumentError(absl::StrCat(
      "tidemark ", verb.name, " takes ", wants, ", and got ",
      count == 0 ? "nothing" : absl::StrCat("'", call.arguments.back(), "' as argument ", count)));
}

}  // namespace

std::string Closest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  size_t least = 3;
  for (const std::string& candidate : candidates) {
    const size_t distance = Distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

absl::StatusOr<Invocation> Parse(const Verb& verb, const std::vector<std::string>& words) {
  Invocation call;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      call.arguments.insert(call.arguments.end(), words.begin() + static_cast<long>(i) + 1,
                            words.end());
      break;
    }
    if (words[i].size() < 2 || words[i][0] != '-') {
      call.arguments.push_back(words[i]);
      continue;
    }
    if (absl::Status bad = TakeFlag(verb, words, &i, &call); !bad.ok()) return bad;
  }
  const std::string format = call.value("--format", "text");
  if (format != "text" && format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("--format '", format, "' is not accepted; text and json are"));
  }
  if (!call.has("--help")) {
    if (absl::Status bad = CheckCount(verb, call); !bad.ok()) return bad;
  }
  return call;
}

}  // namespace tidemark::client
