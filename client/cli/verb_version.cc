// `tidemark version`: this command's, and the running daemon's. Threads: one.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/connection.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

int Version(const Invocation& call) {
  v1::GetVersionResponse daemon;
  const grpc::Status status =
      Connect(call)->GetVersion(Deadline(absl::Seconds(1)).get(), {}, &daemon);
  if (call.json()) {
    absl::PrintF("{\"tidemark\": \"%s\", \"tidemarkd\": \"%s\"}\n", TIDEMARK_VERSION,
                 daemon.version());
    return kOk;
  }
  absl::PrintF("tidemark %s\n", TIDEMARK_VERSION);
  if (!status.ok()) {
    const std::string barred = WhyBarred(AdminAddress(call));
    absl::PrintF("%s\n", !barred.empty()
                             ? barred
                             : absl::StrCat("tidemarkd does not answer on ", AdminAddress(call)));
    return kOk;
  }
  absl::PrintF("tidemarkd %s, wire %d, driver %s (CUDA %d.%d)\n", daemon.version(),
               daemon.wire_version(), daemon.driver_path(), daemon.driver_version() / 1000,
               daemon.driver_version() % 1000 / 10);
  return kOk;
}

}  // namespace

const Verb kVersion = {
    "version", "", "versions of this command and of the running tidemarkd", "", {}, 0, 0, Version};

}  // namespace tidemark::client
