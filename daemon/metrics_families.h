// The list of everything /metrics shows: one table of families in metrics_families.cc. Turns a
// NodeSnapshot into prometheus-cpp's families; serves nothing.
//
// Labels: `gpu` is the device's UUID, `job` the job's name. Two jobs of one name that live at the
// same time must stay apart, or a counter would fall when one of them ends and read as a reset: the
// one that was seen later is called NAME-ID, until it ends.

#ifndef TIDEMARK_DAEMON_METRICS_FAMILIES_H_
#define TIDEMARK_DAEMON_METRICS_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/node.h"

namespace tidemark::daemon {

// Remembers which label value each living job got. Not thread-safe.
class JobLabels {
 public:
  // Drops the jobs that `jobs` lacks and names new ones, in order of id.
  void Update(const std::vector<JobSnapshot>& jobs);
  const std::string& Of(uint64_t job_id) const { return labels_.at(job_id); }

 private:
  std::map<uint64_t, std::string> labels_;
};

// What build_info says besides the version.
struct BuildFacts {
  int driver_version = 0;  // as cuDriverGetVersion
};

// `labels` was updated with the jobs of `snapshot`.
std::vector<prometheus::MetricFamily> CollectFamilies(const NodeSnapshot& snapshot,
                                                      const JobLabels& labels,
                                                      const BuildFacts& facts);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_METRICS_FAMILIES_H_
