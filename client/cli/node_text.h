// A node's answer as text: what `status`, `jobs` and `top` print. Pure: the same answer gives the
// same text. Threads: stateless.

#ifndef TIDEMARK_CLIENT_CLI_NODE_TEXT_H_
#define TIDEMARK_CLIENT_CLI_NODE_TEXT_H_

#include <string>

#include "proto/tidemark/v1/admin.pb.h"

namespace tidemark::client {

// Per device a sum that adds up, then the jobs and the host.
std::string StatusText(const v1::GetNodeResponse& node);
std::string JobsText(const v1::GetNodeResponse& node);
// One screen of `top`, at most `columns` wide; `before` is the answer of `seconds` ago, for rates.
std::string TopText(const v1::GetNodeResponse& node, const v1::GetNodeResponse& before,
                    double seconds, int columns);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_NODE_TEXT_H_
