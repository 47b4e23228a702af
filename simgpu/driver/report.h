// The summary at exit (report=1 or report=PATH): virtual time, traffic, counts, faults, as `key:
// value` lines.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_REPORT_H_
#define SIMGPU_DRIVER_REPORT_H_

#include <string>

#include "simgpu/driver/engine.h"

namespace simgpu {

// Counts an operation that was submitted; the first call arranges for the summary at exit.
void CountOperation(const Operation& op);

std::string ReportText();

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_REPORT_H_
