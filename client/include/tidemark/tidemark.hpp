// C++ face of tidemark.h: statuses as a type, a scope that pins, snapshots as vectors. Header only;
// link with -ltidemark. Throws nothing but what std::vector throws. Threads: as tidemark.h.

#ifndef TIDEMARK_TIDEMARK_HPP_
#define TIDEMARK_TIDEMARK_HPP_

#include <vector>

#include "tidemark/tidemark.h"

namespace tidemark {

class Status {
 public:
  Status(int code) : code_(code) {}  // NOLINT: what every C call returns
  int code() const { return code_; }
  bool ok() const { return code_ == TM_OK; }
  // Understood, whether or not this version acts on it.
  bool accepted() const { return code_ == TM_OK || code_ == TM_NOT_USED_YET; }
  const char* text() const { return tm_status_text(code_); }

 private:
  int code_;
};

inline bool Active() { return tm_active() == TM_OK; }

// Keeps a buffer on the device for as long as it lives.
class Pin {
 public:
  Pin(const void* buffer, size_t bytes)
      : buffer_(buffer), bytes_(bytes), status_(tm_pin(buffer, bytes)) {}
  ~Pin() {
    if (status_.ok()) tm_unpin(buffer_, bytes_);
  }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  Status status() const { return status_; }

 private:
  const void* buffer_;
  size_t bytes_;
  Status status_;
};

namespace internal {

// Asks again while the answer grows under our hands.
template <typename Entry>
Status Fill(int (*ask)(Entry*, size_t, size_t*), std::vector<Entry>* entries) {
  size_t count = 0;
  Status status = ask(nullptr, 0, &count);
  while (status.ok() && count != entries->size()) {
    entries->resize(count);
    const size_t room = count;
    status = ask(entries->data(), room, &count);
    if (count < room) entries->resize(count);
  }
  return status;
}

}  // namespace internal

inline Status Devices(std::vector<tm_device_memory>* devices) {
  devices->clear();
  return internal::Fill(tm_snapshot_devices, devices);
}
inline Status Buffers(std::vector<tm_buffer_memory>* buffers) {
  buffers->clear();
  return internal::Fill(tm_snapshot_buffers, buffers);
}

}  // namespace tidemark

#endif  // TIDEMARK_TIDEMARK_HPP_
