// The exposer and the collectable behind it.

#include "daemon/metrics_server.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "daemon/metrics_families.h"

namespace tidemark::daemon {
namespace {

class NodeCollector final : public prometheus::Collectable {
 public:
  explicit NodeCollector(Node& node) : node_(node), facts_{node.DriverVersion()} {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    const NodeSnapshot snapshot = node_.Snapshot();
    absl::MutexLock lock(&mutex_);
    labels_.Update(snapshot.jobs);
    return CollectFamilies(snapshot, labels_, facts_);
  }

 private:
  Node& node_;
  const BuildFacts facts_;
  mutable absl::Mutex mutex_;
  mutable JobLabels labels_ ABSL_GUARDED_BY(mutex_);
};

class Server final : public MetricsServer {
 public:
  Server(const std::string& listen, Node& node)
      : collector_(std::make_shared<NodeCollector>(node)), exposer_(listen) {
    exposer_.RegisterCollectable(collector_);
  }
  int port() const override { return exposer_.GetListeningPorts().front(); }

 private:
  // Shared because the exposer keeps weak references: it and this server are the owners.
  std::shared_ptr<NodeCollector> collector_;
  prometheus::Exposer exposer_;
};

absl::Status CheckListen(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  uint32_t port = 0;
  if (colon != std::string::npos && colon > 0 &&
      absl::SimpleAtoi(listen.substr(colon + 1), &port) && port <= 65535) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("The metrics address \"", listen,
                                                 "\" is not understood; accepted: HOST:PORT with a "
                                                 "port of 0 to 65535"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen,
                                                                    Node& node) {
  if (absl::Status status = CheckListen(listen); !status.ok()) return status;
  // prometheus-cpp reports a port that cannot be bound by an exception; it ends here.
  try {
    return std::make_unique<Server>(listen, node);
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrCat("Cannot serve metrics at \"", listen,
                                               "\": the port is taken or not permitted (",
                                               error.what(), ")"));
  }
}

}  // namespace tidemark::daemon
