// `tidemark completion SHELL`: a completion script made from the table of verbs. Threads: one.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

std::string FlagWords(const Verb& verb) {
  std::vector<std::string> words;
  for (const Flag& flag : verb.flags) words.push_back(flag.name);
  for (const Flag& flag : GlobalFlags()) words.push_back(flag.name);
  return absl::StrJoin(words, " ");
}

std::string VerbWords() {
  return absl::StrJoin(Verbs(), " ",
                       [](std::string* out, const Verb* verb) { out->append(verb->name); });
}

// Help texts stand between single quotes in the scripts.
std::string Unquoted(const char* text) {
  std::string out = text;
  std::replace(out.begin(), out.end(), '\'', ' ');
  std::replace(out.begin(), out.end(), ':', ';');
  return out;
}

std::string Bash() {
  std::string out =
      "_tidemark() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} i\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    if [[ ${COMP_WORDS[i]} == -- ]]; then COMPREPLY=(); return; fi\n"
      "  done\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const Verb* verb : Verbs()) {
    absl::StrAppendFormat(&out,
                          "    %s) [ \"$COMP_CWORD\" -gt 1 ] && COMPREPLY=($(compgen -W '%s' -- "
                          "\"$word\")) && return ;;\n",
                          verb->name, FlagWords(*verb));
  }
  absl::StrAppend(&out, "  esac\n  [ \"$COMP_CWORD\" -eq 1 ] && COMPREPLY=($(compgen -W '",
                  VerbWords(), "' -- \"$word\"))\n}\ncomplete -o default -F _tidemark tidemark\n");
  return out;
}

std::string Zsh() {
  std::string out =
      "#compdef tidemark\n_tidemark() {\n  if (( CURRENT == 2 )); then\n    local verbs=(";
  for (const Verb* verb : Verbs())
    absl::StrAppendFormat(&out, "\n      '%s:%s'", verb->name, Unquoted(verb->summary));
  absl::StrAppend(&out, ")\n    _describe verb verbs\n    return\n  fi\n  case ${words[2]} in\n");
  for (const Verb* verb : Verbs()) {
    absl::StrAppendFormat(&out, "    %s) compadd -- %s; _files ;;\n", verb->name, FlagWords(*verb));
  }
  absl::StrAppend(&out, "  esac\n}\ncompdef _tidemark tidemark\n");
  return out;
}

std::string Fish() {
  std::string out = "complete -c tidemark -n __fish_use_subcommand -f\n";
  for (const Verb* verb : Verbs()) {
    absl::StrAppendFormat(&out, "complete -c tidemark -n __fish_use_subcommand -a %s -d '%s'\n",
                          verb->name, Unquoted(verb->summary));
    for (const Flag& flag : verb->flags) {
      absl::StrAppendFormat(
          &out, "complete -c tidemark -n '__fish_seen_subcommand_from %s' -l %s -d '%s'\n",
          verb->name, flag.name + 2, Unquoted(flag.help));
    }
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
