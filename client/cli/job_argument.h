// A JOB argument, by number or by name. Threads: one.

#ifndef TIDEMARK_CLIENT_CLI_JOB_ARGUMENT_H_
#define TIDEMARK_CLIENT_CLI_JOB_ARGUMENT_H_

#include <cstdint>
#include <string>

#include "client/cli/verb.h"

namespace tidemark::client {

// The id of the attached job that `word` names. On failure prints one sentence and returns the exit
// status in `*failed`; names that two jobs share must be given as numbers.
uint64_t JobArgument(const Invocation& call, const std::string& word, int* failed);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_JOB_ARGUMENT_H_
