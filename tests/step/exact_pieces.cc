#include "tests/step/exact_pieces.h"

#include <algorithm>
#include <limits>

namespace tidemark::steps {
namespace {

double Limit(core::Bytes bytes) {
  return bytes == core::kNoLimit ? std::numeric_limits<double>::infinity()
                                 : static_cast<double>(bytes);
}

bool Any(const std::vector<char>& flags) {
  return std::find(flags.begin(), flags.end(), 1) != flags.end();
}

}  // namespace

bool PieceStep::Build(const core::Step& step, const core::Machine& machine, size_t most_pieces) {
  ops = static_cast<int>(step.ops.size());
  held.assign(ops, 0);
  for (const core::StepOp& op : step.ops) duration.push_back(static_cast<double>(op.duration));
  device = Limit(machine.device_budget);
  host = Limit(machine.host_budget);
  safepoint = static_cast<double>(machine.safepoint);
  out_rate = machine.out_rate / 1e9;
  in_rate = machine.in_rate / 1e9;
  out_duplex = machine.out_rate_duplex / 1e9;
  in_duplex = machine.in_rate_duplex / 1e9;
  for (core::BufferIndex b = 0; b < step.buffers.size(); ++b) {
    const core::StepBuffer& buffer = step.buffers[b];
    Piece piece = Describe(step, b);
    for (int i = 0; i < ops; ++i) held[i] += piece.alive[i] * static_cast<double>(buffer.bytes);
    if (!buffer.movable || buffer.bytes < machine.min_bytes || !Any(piece.idle)) continue;
    persistent = persistent || buffer.persistent;
    for (core::Bytes at = 0; at < buffer.bytes; at += machine.chunk_bytes) {
      piece.bytes = static_cast<double>(std::min(machine.chunk_bytes, buffer.bytes - at));
      if (pieces.size() == most_pieces) return false;
      pieces.push_back(piece);
    }
  }
  for (Piece& piece : pieces) LookAhead(&piece);
  return true;
}

Piece PieceStep::Describe(const core::Step& step, core::BufferIndex b) const {
  const core::StepBuffer& buffer = step.buffers[b];
  Piece piece;
  piece.buffer = b;
  piece.persistent = buffer.persistent;
  for (std::vector<char>* flags : {&piece.alive, &piece.used, &piece.written, &piece.idle,
                                   &piece.worth_leaving, &piece.worth_copying}) {
    flags->assign(ops, 0);
  }
  piece.next_use.assign(ops, ops);
  int first = ops;
  int last = -1;
  for (int i = 0; i < ops; ++i) {
    const core::StepOp& op = step.ops[i];
    for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
      if (step.accesses[a].buffer != b) continue;
      piece.used[i] = 1;
      piece.written[i] = step.accesses[a].write ? 1 : 0;
      first = std::min(first, i);
      last = i;
    }
    const auto at = static_cast<core::OpIndex>(i);
    piece.alive[i] = buffer.persistent || (at >= buffer.born && at <= buffer.freed) ? 1 : 0;
  }
  for (int i = 0; i < ops; ++i) {
    const bool between = buffer.persistent ? last >= 0 : i > first && i < last;
    piece.idle[i] = between && piece.used[i] == 0 ? 1 : 0;
  }
  return piece;
}

void PieceStep::LookAhead(Piece* piece) const {
  for (int i = 0; i < ops; ++i) {
    bool in_gap = true;
    for (int ahead = 0; ahead <= ops; ++ahead) {
      const int op = (i + ahead) % ops;
      if (piece->alive[op] == 0 || (ahead > 0 && op == 0 && !piece->persistent)) break;
      if (in_gap && piece->used[op] != 0 && ahead < ops) {
        piece->next_use[i] = ahead;
        in_gap = false;
      }
      if (ahead > 0 && piece->written[op] != 0) break;
      if (piece->idle[op] == 0 || held[op] <= device) continue;
      if (in_gap) piece->worth_leaving[i] = 1;
      if (ahead > 0) piece->worth_copying[i] = 1;
    }
  }
}

}  // namespace tidemark::steps
