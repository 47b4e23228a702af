// Reader of PyTorch CUDA memory snapshots (torch.cuda.memory._dump_snapshot): the allocation
// history of each device becomes one trace. Blocks alive before the history are rebuilt from the
// frees and from the final segment map; the peak of reserved bytes from the segment events. Nothing
// in the file is executed (pickle.h). Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_TORCH_SNAPSHOT_H_
#define TIDEMARK_TESTS_REPLAY_TORCH_SNAPSHOT_H_

#include <string>
#include <string_view>
#include <vector>

#include "tests/replay/trace.h"

namespace tidemark::replay {

bool LooksLikePickle(std::string_view text);

// One trace for each device that has a history. False: `*error` is one sentence.
bool ReadTorchSnapshot(std::string_view text, std::vector<Trace>* traces, std::string* error);

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_TORCH_SNAPSHOT_H_
