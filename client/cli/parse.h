// From words to an Invocation. Threads: stateless.

#ifndef TIDEMARK_CLIENT_CLI_PARSE_H_
#define TIDEMARK_CLIENT_CLI_PARSE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/verb.h"

namespace tidemark::client {

// `words` follow the verb's name. InvalidArgument is one sentence: which word, what is accepted,
// and the closest flag when one is close.
absl::StatusOr<Invocation> Parse(const Verb& verb, const std::vector<std::string>& words);

// The candidate within two edits of `word`, or "".
std::string Closest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_PARSE_H_
