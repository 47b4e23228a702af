// The HTTP endpoint /metrics: every family of metrics_families.cc, read from one Node snapshot at
// each scrape. Nothing is sampled between scrapes.
//
// Thread rule: Start from one thread; scrapes run on the exposer's own threads.

#ifndef TIDEMARK_DAEMON_METRICS_SERVER_H_
#define TIDEMARK_DAEMON_METRICS_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/node.h"

namespace tidemark::daemon {

class MetricsServer {
 public:
  // `listen` is "HOST:PORT" (port 0: any free one), e.g. "127.0.0.1:9877". `node` outlives the
  // server.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& listen,
                                                              Node& node);

  virtual ~MetricsServer() = default;  // stops serving
  virtual int port() const = 0;        // really bound
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_METRICS_SERVER_H_
