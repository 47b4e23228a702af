// See log.h.

#include "interpose/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

namespace tidemark::interpose {
namespace {

constexpr int kMostWarnings = 16;
constexpr size_t kLongestLine = 1024;

// A bounded output buffer; what does not fit is dropped.
class Line {
 public:
  Line(char* buffer, size_t bytes) : buffer_(buffer), room_(bytes - 1) {}
  void Put(char c) {
    if (used_ < room_) buffer_[used_++] = c;
  }
  void Put(const char* text) {
    for (; *text != '\0'; ++text) Put(*text);
  }
  void PutNumber(uint64_t value, unsigned base) {
    char digits[24];
    int count = 0;
    do {
      digits[count++] = "0123456789abcdef"[value % base];
      value /= base;
    } while (value != 0);
    while (count > 0) Put(digits[--count]);
  }
  size_t Finish() {
    buffer_[used_] = '\0';
    return used_;
  }

 private:
  char* buffer_;
  size_t room_;
  size_t used_ = 0;
};

// The length modifier as a count of bytes; moves past it.
size_t ReadLength(const char** at) {
  if (**at == 'z') return ++*at, sizeof(size_t);
  size_t bytes = sizeof(int);
  for (; **at == 'l'; ++*at) bytes = sizeof(long);  // long and long long are one size here
  return bytes;
}

void PutSigned(Line* line, int64_t value) {
  if (value < 0) line->Put('-');
  line->PutNumber(value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value), 10);
}

// Open each time: a descriptor kept for hours could be closed or reused by the job.
int OpenLog() {
  const char* path = getenv("TIDEMARK_LOG");
  if (path == nullptr || *path == '\0') return STDERR_FILENO;
  int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  return fd >= 0 ? fd : STDERR_FILENO;
}

void WriteLine(const char* text, size_t bytes) {
  int fd = OpenLog();
  ssize_t written = write(fd, text, bytes);
  static_cast<void>(written);  // nowhere left to say that it failed
  if (fd != STDERR_FILENO) close(fd);
}

}  // namespace

size_t FormatList(char* buffer, size_t bytes, const char* format, va_list list) {
  Line line(buffer, bytes);
  for (const char* at = format; *at != '\0'; ++at) {
    if (*at != '%') {
      line.Put(*at);
      continue;
    }
    ++at;
    size_t length = ReadLength(&at);
    bool wide = length == sizeof(uint64_t);
    switch (*at) {
      case 's': {
        const char* text = va_arg(list, const char*);
        line.Put(text != nullptr ? text : "(null)");
        break;
      }
      case 'c':
        line.Put(static_cast<char>(va_arg(list, int)));
        break;
      case 'd':
        PutSigned(&line, wide ? va_arg(list, int64_t) : va_arg(list, int));
        break;
      case 'u':
        line.PutNumber(wide ? va_arg(list, uint64_t) : va_arg(list, unsigned), 10);
        break;
      case 'x':
        line.PutNumber(wide ? va_arg(list, uint64_t) : va_arg(list, unsigned), 16);
        break;
      case 'p':
        line.Put("0x");
        line.PutNumber(reinterpret_cast<uintptr_t>(va_arg(list, void*)), 16);
        break;
      case '\0':
        return line.Finish();
      default:
        line.Put(*at);
        break;
    }
  }
  return line.Finish();
}

size_t Format(char* buffer, size_t bytes, const char* format, ...) {
  va_list list;
  va_start(list, format);
  size_t used = FormatList(buffer, bytes, format, list);
  va_end(list);
  return used;
}

void Warn(const char* format, ...) {
  static std::atomic<int> said{0};
  int count = said.fetch_add(1, std::memory_order_relaxed) + 1;
  if (count > kMostWarnings) {
    said.store(kMostWarnings, std::memory_order_relaxed);
    return;
  }
  int kept_errno = errno;
  char text[kLongestLine];
  size_t used = Format(text, sizeof(text), "tidemark: ");
  va_list list;
  va_start(list, format);
  used += FormatList(text + used, sizeof(text) - used - 64, format, list);
  va_end(list);
  if (count == kMostWarnings) {
    used += Format(text + used, sizeof(text) - used, " (further warnings are not shown)");
  }
  text[used++] = '\n';
  WriteLine(text, used);
  errno = kept_errno;
}

}  // namespace tidemark::interpose
