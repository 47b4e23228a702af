// `tidemark completion SHELL`: a completion script made from the table of verbs. Threads: one.

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

std::vector<Flag> AllFlags(const Verb& verb) {
  std::vector<Flag> flags = verb.flags;
  flags.insert(flags.end(), GlobalFlags().begin(), GlobalFlags().end());
  return flags;
}

std::string FlagWords(const Verb& verb) {
  return absl::StrJoin(AllFlags(verb), " ",
                       [](std::string* out, const Flag& flag) { out->append(flag.name); });
}

// The values of "text|json"; none for a placeholder in capitals.
std::vector<std::string> ValuesOf(const Flag& flag) {
  const std::string placeholder = flag.placeholder;
  if (placeholder.find('|') == std::string::npos) return {};
  std::vector<std::string> values = absl::StrSplit(placeholder, '|');
  const bool closed = std::all_of(values.begin(), values.end(), [](const std::string& value) {
    return !value.empty() && absl::ascii_islower(static_cast<unsigned char>(value[0]));
  });
  return closed ? values : std::vector<std::string>();
}

// Values of every flag that has a closed set of them, by flag.
std::map<std::string, std::string> FlagValues() {
  std::map<std::string, std::string> values;
  for (const Verb* verb : Verbs()) {
    for (const Flag& flag : AllFlags(*verb)) {
      const std::vector<std::string> of_flag = ValuesOf(flag);
      if (!of_flag.empty()) values[flag.name] = absl::StrJoin(of_flag, " ");
    }
  }
  return values;
}

bool TakesJob(const Verb& verb) { return absl::StrContains(verb.arguments, "JOB"); }

// Files are offered where the arguments have a place for one.
bool TakesFiles(const Verb& verb) {
  return absl::StrContains(verb.arguments, "FILE") || absl::StrContains(verb.arguments, "COMMAND");
}

std::string VerbWords();

// The fixed words among a verb's arguments: "get | set NAME" gives get and set.
std::string ArgumentWords(const Verb& verb) {
  if (absl::StrContains(verb.arguments, "VERB")) return VerbWords();
  std::vector<std::string> fixed;
  for (absl::string_view way : absl::StrSplit(verb.arguments, '|', absl::SkipWhitespace())) {
    const std::vector<std::string> words = absl::StrSplit(way, ' ', absl::SkipEmpty());
    if (absl::ascii_islower(static_cast<unsigned char>(words[0][0]))) fixed.push_back(words[0]);
  }
  return absl::StrJoin(fixed, " ");
}

std::string VerbWords() {
  return absl::StrJoin(Verbs(), " ",
                       [](std::string* out, const Verb* verb) { out->append(verb->name); });
}

// Help texts stand between single quotes in the scripts, and in zsh's lists a colon ends the word
// that is explained.
std::string ZshText(const char* text) {
  return absl::StrReplaceAll(text, {{"'", "'\\''"}, {":", "\\:"}});
}

std::string FishText(const char* text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}});
}

// Names of the attached jobs, asked for when they are needed.
constexpr char kJobNames[] = "$(tidemark jobs 2>/dev/null | awk 'NR > 1 { print $2 }')";

std::string Bash() {
  std::string out =
      "_tidemark() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words= i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    if [[ ${COMP_WORDS[i]} == -- ]]; then COMPREPLY=(); return; fi\n"
      "  done\n"
      "  case $before in\n";
  for (const auto& [flag, values] : FlagValues()) {
    absl::StrAppendFormat(&out, "    %s) words='%s' ;;\n", flag, values);
  }
  absl::StrAppend(&out, "  esac\n  [ -n \"$words\" ] || case ${COMP_WORDS[1]} in\n");
  for (const Verb* verb : Verbs()) {
    absl::StrAppendFormat(&out, "    %s) words=\"%s %s%s\" ;;\n", verb->name, ArgumentWords(*verb),
                          FlagWords(*verb), TakesJob(*verb) ? absl::StrCat(" ", kJobNames) : "");
  }
  absl::StrAppend(&out, "  esac\n  [ \"$COMP_CWORD\" -ne 1 ] || words='", VerbWords(),
                  "'\n  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n"
                  "complete -o default -F _tidemark tidemark\n");
  return out;
}

std::string Zsh() {
  std::string out =
      "#compdef tidemark\n_tidemark() {\n"
      "  local command=${words[(i)--]}\n"
      "  if (( command < CURRENT )); then\n"
      "    (( CURRENT -= command )); shift $command words; _normal; return\n"
      "  fi\n"
      "  if (( CURRENT == 2 )); then\n    local verbs=(";
  for (const Verb* verb : Verbs())
    absl::StrAppendFormat(&out, "\n      '%s:%s'", verb->name, ZshText(verb->summary));
  absl::StrAppend(&out, ")\n    _describe verb verbs\n    return\n  fi\n");
  absl::StrAppend(&out, "  case ${words[CURRENT-1]} in\n");
  for (const auto& [flag, values] : FlagValues()) {
    absl::StrAppendFormat(&out, "    %s) compadd -- %s; return ;;\n", flag, values);
  }
  absl::StrAppend(&out, "  esac\n  case ${words[2]} in\n");
  for (const Verb* verb : Verbs()) {
    absl::StrAppendFormat(&out, "    %s) compadd -- %s %s%s%s ;;\n", verb->name,
                          ArgumentWords(*verb), FlagWords(*verb),
                          TakesJob(*verb) ? absl::StrCat(" ", kJobNames) : "",
                          TakesFiles(*verb) ? "; _files" : "");
  }
  absl::StrAppend(&out, "  esac\n}\ncompdef _tidemark tidemark\n");
  return out;
}

std::string Fish() {
  std::string out = "complete -c tidemark -n __fish_use_subcommand -f\n";
  for (const Verb* verb : Verbs()) {
    absl::StrAppendFormat(&out, "complete -c tidemark -n __fish_use_subcommand -a %s -d '%s'\n",
                          verb->name, FishText(verb->summary));
    if (!TakesFiles(*verb)) {
      absl::StrAppendFormat(&out, "complete -c tidemark -n '__fish_seen_subcommand_from %s' -f\n",
                            verb->name);
    }
    for (const Flag& flag : AllFlags(*verb)) {
      const std::string values = absl::StrJoin(ValuesOf(flag), " ");
      absl::StrAppendFormat(
          &out, "complete -c tidemark -n '__fish_seen_subcommand_from %s' -l %s%s -d '%s'\n",
          verb->name, flag.name + 2, values.empty() ? "" : absl::StrCat(" -xa '", values, "'"),
          FishText(flag.help));
    }
    const std::string jobs = TakesJob(*verb) ? "(tidemark jobs 2>/dev/null | tail -n +2 | "
                                               "string replace -rf \"^ *\\S+ +(\\S+).*\" \"\\$1\")"
                                             : "";
    const std::string words = absl::StrCat(ArgumentWords(*verb), " ", jobs);
    if (words == " ") continue;
    absl::StrAppendFormat(&out,
                          "complete -c tidemark -n '__fish_seen_subcommand_from %s' -a '%s'\n",
                          verb->name, words);
  }
  return out;
}

int Completion(const Invocation& call) {
  const std::string& shell = call.arguments[0];
  if (shell == "bash") absl::PrintF("%s", Bash());
  if (shell == "zsh") absl::PrintF("%s", Zsh());
  if (shell == "fish") absl::PrintF("%s", Fish());
  if (shell == "bash" || shell == "zsh" || shell == "fish") return kOk;
  absl::FPrintF(stderr, "tidemark: completion for '%s' is not there; bash, zsh and fish are\n",
                shell);
  return kUsage;
}

}  // namespace

const Verb kCompletion = {"completion",
                          "bash|zsh|fish",
                          "print a shell's completion script",
                          "  source <(tidemark completion bash)",
                          {},
                          1,
                          1,
                          Completion};

}  // namespace tidemark::client
