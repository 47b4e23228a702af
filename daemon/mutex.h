// A mutex that clang's thread-safety analysis and ThreadSanitizer both understand: absl::Mutex of a
// distribution is built without the sanitizer, which then reports races that do not exist.
//
// Threads: that is what it is for.

#ifndef TIDEMARK_DAEMON_MUTEX_H_
#define TIDEMARK_DAEMON_MUTEX_H_

#include <mutex>

#include "absl/base/thread_annotations.h"

namespace tidemark::daemon {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  std::mutex& native() { return mutex_; }  // for a condition variable

 private:
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_MUTEX_H_
