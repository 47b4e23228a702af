// What survives a restart: the policy, the audit log, and the numbers that must never be used
// twice. Files are replaced by write, fsync, rename. One daemon at a time: the folder is locked.
//
// A file that cannot be read is kept beside as NAME.corrupt, and defaults are in force.
//
// Threads: Open from one thread; the rest under the broker's policy lock.

#ifndef TIDEMARK_DAEMON_STATE_DIR_H_
#define TIDEMARK_DAEMON_STATE_DIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/node.h"
#include "daemon/unique_fd.h"

namespace tidemark::daemon {

class StateDir {
 public:
  // Creates `path` (mode 0700) when it is missing, its parents too. FailedPrecondition when another
  // daemon has it.
  static absl::StatusOr<std::unique_ptr<StateDir>> Open(const std::string& path);

  // After a clean end job ids go on without a gap; after a crash they skip what was reserved.
  ~StateDir();
  StateDir(const StateDir&) = delete;
  StateDir& operator=(const StateDir&) = delete;

  // Sentences about files that were set aside while opening.
  const std::vector<std::string>& complaints() const { return complaints_; }

  const Policy& policy() const { return policy_; }
  // On success `next` is on disk and the change is in the audit log; else neither.
  absl::Status SavePolicy(const Policy& next, const std::string& actor, absl::Time now);

  // How often a daemon has started here, this start included; 1.. . Part of every chunk id.
  uint64_t start_number() const { return start_number_; }
  // A number no job of this folder had. Writes the disk only after a thousand, so
  // that jobs can attach while it is full.
  absl::StatusOr<uint64_t> NextJobId();
  // True for ids that NextJobId has given, in this run or an earlier one.
  bool Known(uint64_t job_id) const { return job_id != 0 && job_id < next_job_id_; }

 private:
  StateDir(std::string path, UniqueFd folder, UniqueFd lock);

  absl::Status LoadNumbers();
  void LoadPolicy();
  absl::Status SaveNumbers(uint64_t reserved);
  absl::Status Replace(const std::string& name, absl::string_view text);
  absl::Status AppendAudit(const std::string& line, int64_t* length_before);
  void CutAudit(int64_t length);
  void SetAside(const std::string& name, const std::string& why);

  const std::string path_;
  const UniqueFd folder_;
  const UniqueFd lock_;
  std::vector<std::string> complaints_;
  Policy policy_;
  uint64_t start_number_ = 0;
  uint64_t next_job_id_ = 1;
  uint64_t reserved_job_id_ = 1;  // ids below it are on disk as used
};

// Creates `path` and its parents, mode `mode` for those it makes.
absl::Status MakeFolders(const std::string& path, unsigned mode);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_STATE_DIR_H_
