// The one place where a driver's result becomes an absl::Status. Which code the caller sees decides
// what it does: ResourceExhausted may be retried or answered with NO_MEMORY, anything else is a
// fault.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_DRIVER_STATUS_H_
#define TIDEMARK_DAEMON_DRIVER_STATUS_H_

#include <cuda.h>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/driver.h"

namespace tidemark::daemon {

// OK for CUDA_SUCCESS; else "<what>: <driver's sentence> (<driver's name> <number>)".
absl::Status DriverStatus(const kernels::Driver& driver, CUresult result, absl::string_view what);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_DRIVER_STATUS_H_
