// A small step cut into pieces of one chunk, as the exact search sees it. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_EXACT_PIECES_H_
#define TIDEMARK_TESTS_STEP_EXACT_PIECES_H_

#include <vector>

#include "core/step.h"

namespace tidemark::steps {

struct Piece {
  core::BufferIndex buffer = 0;
  double bytes = 0;
  bool persistent = false;
  // Per operation.
  std::vector<char> alive, used, written;
  std::vector<char> idle;           // between two uses: it may be away
  std::vector<char> worth_leaving;  // memory is short here or later, before its next use
  std::vector<char> worth_copying;  // memory is short in a gap after this, before its next write
  std::vector<int> next_use;        // operations ahead

  bool SameAs(const Piece& other) const { return buffer == other.buffer && bytes == other.bytes; }
};

struct PieceStep {
  int ops = 0;
  std::vector<double> duration;  // ns
  std::vector<double> held;      // bytes on the device if nothing leaves
  std::vector<Piece> pieces;     // of buffers that can leave at all
  bool persistent = false;       // some of them are
  double device = 0, host = 0, safepoint = 0;
  double out_rate = 0, in_rate = 0, out_duplex = 0, in_duplex = 0;  // bytes per ns

  // False: more than `most_pieces`. The step and the machine are valid.
  bool Build(const core::Step& step, const core::Machine& machine, size_t most_pieces);

 private:
  Piece Describe(const core::Step& step, core::BufferIndex b) const;
  void LookAhead(Piece* piece) const;
};

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_EXACT_PIECES_H_
