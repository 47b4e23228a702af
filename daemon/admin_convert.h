// Node's structs as tidemark.v1 messages, and the two ratios that are derived from a job's
// counters. Pure functions.

#ifndef TIDEMARK_DAEMON_ADMIN_CONVERT_H_
#define TIDEMARK_DAEMON_ADMIN_CONVERT_H_

#include <string>
#include <vector>

#include "daemon/node.h"
#include "proto/tidemark/v1/admin.pb.h"

namespace tidemark::daemon {

// 1 - largest free / free, over the holes in mapped chunks; 0 when nothing is free.
double ExternalFragmentation(const tm_wire_counters_device& counters);
// Peak active / peak reserved; 0 before anything was reserved.
double PeakUtilisation(const tm_wire_counters_device& counters);

void FillNode(const NodeSnapshot& snapshot, v1::GetNodeResponse* out);
void FillMemoryMap(const std::vector<ChunkRun>& runs, v1::GetMemoryMapResponse* out);
void FillPolicy(const Policy& policy, v1::GetPolicyResponse* out);
void FillEvent(const Event& event, v1::Event* out);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_ADMIN_CONVERT_H_
