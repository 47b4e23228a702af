// Implementation of tests/replay/file_text.h over zlib's file interface, which passes plain files
// through unchanged. Threads: none.

#include "tests/replay/file_text.h"

#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace tidemark::replay {
namespace {

constexpr unsigned kPieceBytes = 1u << 20;

struct CloseGzip {
  void operator()(gzFile file) const { gzclose(file); }
};

}  // namespace

bool ReadFileText(const std::string& path, size_t limit, std::string* text, std::string* error) {
  text->clear();
  errno = 0;
  const std::unique_ptr<gzFile_s, CloseGzip> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    *error = path + ": cannot be opened: " + std::strerror(errno);
    return false;
  }
  for (;;) {
    const size_t before = text->size();
    text->resize(before + kPieceBytes);
    const int got = gzread(file.get(), text->data() + before, kPieceBytes);
    text->resize(before + static_cast<size_t>(got > 0 ? got : 0));
    if (text->size() > limit) {
      *error =
          path + ": unpacks to more than " + std::to_string(limit) + " bytes, the most accepted";
      return false;
    }
    if (got > 0) continue;
    int code = Z_OK;
    const char* reason = gzerror(file.get(), &code);
    if (code == Z_OK || code == Z_STREAM_END) return true;
    const std::string damaged = std::string("its gzip data is damaged or cut off (") + reason + ")";
    *error = path + ": cannot be read: " + (code == Z_ERRNO ? std::strerror(errno) : damaged);
    return false;
  }
}

}  // namespace tidemark::replay
