// What one verb of the `tidemark` command is: a row that parsing, help and completion are made
// from. Threads: constant data.

#ifndef TIDEMARK_CLIENT_CLI_VERB_H_
#define TIDEMARK_CLIENT_CLI_VERB_H_

#include <map>
#include <string>
#include <vector>

namespace tidemark::client {

// Exit statuses that scripts may rely on.
enum Exit { kOk = 0, kFailed = 1, kUsage = 2, kUnreachable = 3 };

enum class Takes { kNothing, kValue, kOptionalValue };

struct Flag {
  const char* name;  // with its dashes
  Takes takes;
  const char* placeholder;    // "BYTES"; "" when it takes nothing
  const char* default_value;  // shown in help; "" for none
  const char* help;
};

// A parsed command line. Flags appear with their given value, or "" for those without one.
struct Invocation {
  std::map<std::string, std::string> flags;
  std::vector<std::string> arguments;

  bool has(const std::string& flag) const { return flags.count(flag) != 0; }
  std::string value(const std::string& flag, const std::string& otherwise = "") const {
    auto found = flags.find(flag);
    return found == flags.end() ? otherwise : found->second;
  }
  bool json() const { return value("--format", "text") == "json"; }
};

struct Verb {
  const char* name;
  const char*
      arguments;  // "JOB", "get|set|apply|explain ...", "-- COMMAND [ARGUMENT...]"; "" for none
  const char* summary;  // one line, for the list of verbs
  const char* details;  // further help, with examples; may be ""
  std::vector<Flag> flags;
  int least_arguments;
  int most_arguments;  // -1: any number
  int (*run)(const Invocation&);
};

extern const Verb kRun, kStatus, kJobs, kTop, kMap, kPolicy, kEvict, kPrefetch, kPin, kEvents,
    kDoctor, kSnapshot, kCompletion, kVersion, kHelp;

// All verbs, in the order in which help lists them.
const std::vector<const Verb*>& Verbs();
const Verb* FindVerb(const std::string& name);
// Flags that every verb takes.
const std::vector<Flag>& GlobalFlags();

std::string HelpOf(const Verb& verb);
std::string Overview();

// Runs `tidemark` with these arguments (without argv[0]) and returns its exit status.
int Main(const std::vector<std::string>& arguments);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_VERB_H_
