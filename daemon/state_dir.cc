#include "daemon/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/policy.h"
#include "daemon/policy_text.h"

namespace tidemark::daemon {
namespace {

constexpr char kLockFile[] = "lock";
constexpr char kPolicyFile[] = "policy";
constexpr char kAuditFile[] = "audit.log";
constexpr char kNumbersFile[] = "numbers";
constexpr uint64_t kJobIdsPerWrite = 1024;
constexpr uint64_t kMostStarts = 0x7fffffff;  // the part of a chunk id that holds it has 31 bits
constexpr off_t kMostFileBytes = 4 << 20;

absl::Status Errno(const std::string& what) { return absl::ErrnoToStatus(errno, what); }

absl::Status WriteAll(int fd, absl::string_view text, const std::string& what) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Errno(what);
    text.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? absl::OkStatus() : Errno(what);
}

// NotFound when there is no such file.
absl::StatusOr<std::string> ReadAll(int folder, const char* name) {
  UniqueFd fd(openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return Errno(absl::StrCat("opening ", name));
  struct stat facts = {};
  if (fstat(fd.get(), &facts) != 0) return Errno(absl::StrCat("reading ", name));
  if (!S_ISREG(facts.st_mode) || facts.st_size > kMostFileBytes) {
    return absl::DataLossError(
        absl::StrCat(name, " is not a regular file of at most ", kMostFileBytes, " bytes"));
  }
  std::string text(static_cast<size_t>(facts.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

std::string NumbersText(uint64_t starts, uint64_t next_job_id) {
  return absl::StrCat("starts = ", starts, "\nnext_job_id = ", next_job_id, "\n");
}

bool ParseNumbers(const std::string& text, uint64_t* starts, uint64_t* next_job_id) {
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" =\n"), absl::SkipEmpty());
  return words.size() == 4 && words[0] == "starts" && absl::SimpleAtoi(words[1], starts) &&
         words[2] == "next_job_id" && absl::SimpleAtoi(words[3], next_job_id) && *starts > 0 &&
         *starts<kMostStarts&& * next_job_id> 0 && *next_job_id < (uint64_t{1} << 62);
}

std::string OneLine(absl::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return line;
}

}  // namespace

absl::Status MakeFolders(const std::string& path, unsigned mode) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      return Errno(absl::StrCat("creating the folder ", part));
    }
    if (slash == std::string::npos) return absl::OkStatus();
  }
}

StateDir::StateDir(std::string path, UniqueFd folder, UniqueFd lock)
    : path_(std::move(path)), folder_(std::move(folder)), lock_(std::move(lock)) {}

StateDir::~StateDir() {
  // Failing is harmless: the reserved ids are skipped then.
  if (start_number_ != 0 && reserved_job_id_ > next_job_id_)
    SaveNumbers(next_job_id_).IgnoreError();
}

absl::StatusOr<std::unique_ptr<StateDir>> StateDir::Open(const std::string& path) {
  if (absl::Status status = MakeFolders(path, 0700); !status.ok()) return status;
  UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return Errno(absl::StrCat("opening state_dir ", path));
  UniqueFd lock(openat(folder.get(), kLockFile, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return Errno(absl::StrCat("opening ", path, "/", kLockFile));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Errno(absl::StrCat("locking ", path, "/", kLockFile));
    return absl::FailedPreconditionError(absl::StrCat(
        "another tidemarkd is running and uses state_dir ", path, "; stop it or choose another"));
  }
  std::unique_ptr<StateDir> state(new StateDir(path, std::move(folder), std::move(lock)));
  if (absl::Status status = state->LoadNumbers(); !status.ok()) return status;
  state->LoadPolicy();
  return state;
}

void StateDir::SetAside(const std::string& name, const std::string& why) {
  const std::string aside = name + ".corrupt";
  const bool kept = renameat(folder_.get(), name.c_str(), folder_.get(), aside.c_str()) == 0;
  complaints_.push_back(absl::StrCat(path_, "/", name, " cannot be used (", why,
                                     "); it is kept as ", kept ? aside : name,
                                     " and defaults are in force"));
}

void StateDir::LoadPolicy() {
  policy_ = DefaultPolicy();
  absl::StatusOr<std::string> text = ReadAll(folder_.get(), kPolicyFile);
  if (absl::IsNotFound(text.status())) return;
  if (!text.ok()) return SetAside(kPolicyFile, std::string(text.status().message()));
  absl::StatusOr<Policy> policy = ParsePolicy(*text);
  if (!policy.ok()) return SetAside(kPolicyFile, std::string(policy.status().message()));
  policy_ = *std::move(policy);
}

absl::Status StateDir::LoadNumbers() {
  absl::StatusOr<std::string> text = ReadAll(folder_.get(), kNumbersFile);
  uint64_t starts = 0;
  if (text.ok() && ParseNumbers(*text, &starts, &next_job_id_)) {
    start_number_ = starts + 1;
  } else if (absl::IsNotFound(text.status())) {
    start_number_ = 1;
  } else {
    // The clock is the best guess at a number that no earlier start reached by counting.
    SetAside(kNumbersFile, "it does not hold starts and next_job_id");
    const auto clock = static_cast<uint64_t>(absl::ToUnixSeconds(absl::Now()));
    start_number_ = clock % kMostStarts + 1;
    next_job_id_ = clock << 20;
  }
  return SaveNumbers(next_job_id_ + kJobIdsPerWrite);
}

absl::Status StateDir::SaveNumbers(uint64_t reserved) {
  absl::Status status = Replace(kNumbersFile, NumbersText(start_number_, reserved));
  if (status.ok()) reserved_job_id_ = reserved;
  return status;
}

absl::StatusOr<uint64_t> StateDir::NextJobId() {
  if (next_job_id_ >= reserved_job_id_) {
    if (absl::Status status = SaveNumbers(next_job_id_ + kJobIdsPerWrite); !status.ok()) {
      return status;
    }
  }
  return next_job_id_++;
}

absl::Status StateDir::Replace(const std::string& name, absl::string_view text) {
  const std::string fresh = name + ".new";
  const std::string what = absl::StrCat("writing ", path_, "/", name);
  UniqueFd fd(openat(folder_.get(), fresh.c_str(),
                     O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return Errno(what);
  absl::Status status = WriteAll(fd.get(), text, what);
  if (status.ok() && renameat(folder_.get(), fresh.c_str(), folder_.get(), name.c_str()) != 0) {
    status = Errno(what);
  }
  if (!status.ok()) {
    unlinkat(folder_.get(), fresh.c_str(), 0);
    return status;
  }
  return fsync(folder_.get()) == 0 ? absl::OkStatus() : Errno(what);
}

absl::Status StateDir::AppendAudit(const std::string& line, int64_t* length_before) {
  const std::string what = absl::StrCat("writing ", path_, "/", kAuditFile);
  UniqueFd fd(openat(folder_.get(), kAuditFile,
                     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat facts = {};
  if (!fd.valid() || fstat(fd.get(), &facts) != 0) return Errno(what);
  *length_before = facts.st_size;
  absl::Status status = WriteAll(fd.get(), line, what);
  if (!status.ok()) CutAudit(*length_before);
  return status;
}

void StateDir::CutAudit(int64_t length) {
  UniqueFd fd(openat(folder_.get(), kAuditFile, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() || ftruncate(fd.get(), length) != 0) {
    complaints_.push_back(
        absl::StrCat(path_, "/", kAuditFile, " ends with a change that was refused"));
  }
}

absl::Status StateDir::SavePolicy(const Policy& next, const std::string& actor, absl::Time now) {
  const std::string line = absl::StrCat(
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", now, absl::UTCTimeZone()), " generation ",
      next.generation, " by ", OneLine(actor), ":", OneLine(DescribeChange(policy_, next)), "\n");
  int64_t length_before = 0;
  // The log first: a change that is in force is always in the log.
  if (absl::Status status = AppendAudit(line, &length_before); !status.ok()) return status;
  if (absl::Status status = Replace(kPolicyFile, FormatPolicy(next)); !status.ok()) {
    CutAudit(length_before);
    return status;
  }
  policy_ = next;
  return absl::OkStatus();
}

}  // namespace tidemark::daemon
