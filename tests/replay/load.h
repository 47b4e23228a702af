// Loads traces from a file of any known format, or all of a folder. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_LOAD_H_
#define TIDEMARK_TESTS_REPLAY_LOAD_H_

#include <string>
#include <vector>

#include "tests/replay/trace.h"

namespace tidemark::replay {

// Appends the traces of the file at `path`: an allocation trace (csv_trace.h, also .gz), an RMM log
// (rmm_log.h) or a PyTorch memory snapshot (torch_snapshot.h), told apart by how they begin.
// False: `*error` is one sentence that begins with the path.
bool LoadFile(const std::string& path, std::vector<Trace>* traces, std::string* error);

// Every *.csv and *.csv.gz of `folder`/alloc, by name. An absent folder leaves `*traces` empty.
// False: some could not be read, and `*errors` has a sentence for each; the others were.
bool LoadFolder(const std::string& folder, std::vector<Trace>* traces,
                std::vector<std::string>* errors);

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_LOAD_H_
