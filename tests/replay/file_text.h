// A file's whole content; gzip is unpacked on the way (known by its first two bytes). The file is
// untrusted: what it unpacks to is limited. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_FILE_TEXT_H_
#define TIDEMARK_TESTS_REPLAY_FILE_TEXT_H_

#include <cstddef>
#include <string>

namespace tidemark::replay {

inline constexpr size_t kLargestFile = size_t{2} << 30;

// False: `*error` says in one sentence what is wrong with the file at `path`.
bool ReadFileText(const std::string& path, size_t limit, std::string* text, std::string* error);

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_FILE_TEXT_H_
