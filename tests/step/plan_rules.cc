#include "tests/step/plan_rules.h"

#include <vector>

namespace tidemark::steps {
namespace {

using core::Move;
using core::MoveIndex;
using core::Plan;
using core::Step;
using core::StepAccess;
using core::StepBuffer;
using core::StepOp;

std::string BrokenStep(const Step& step) {
  if (step.ops.empty()) return "the step has no operations";
  for (size_t i = 0; i < step.ops.size(); ++i) {
    const StepOp& op = step.ops[i];
    const std::string name = "operation " + std::to_string(i);
    if (op.duration < 0) return name + " has a negative duration";
    if (uint64_t{op.first_access} + op.access_count > step.accesses.size()) {
      return name + " has accesses outside the list of accesses";
    }
    for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
      const StepAccess& access = step.accesses[a];
      if (access.buffer >= step.buffers.size()) {
        return name + " uses buffer " + std::to_string(access.buffer) + ", which does not exist";
      }
      const StepBuffer& b = step.buffers[access.buffer];
      if (!b.persistent && (i < b.born || i > b.freed)) {
        return name + " uses buffer " + std::to_string(access.buffer) + ", which is not alive then";
      }
    }
  }
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    const StepBuffer& b = step.buffers[i];
    if (b.persistent || (b.born <= b.freed && b.freed < step.ops.size())) continue;
    return "buffer " + std::to_string(i) + " is not born and freed inside the step";
  }
  return "";
}

std::string BrokenPart(const Step& step, const core::Machine& machine, const Move& move) {
  if (move.buffer >= step.buffers.size()) return "names a buffer that does not exist";
  const StepBuffer& b = step.buffers[move.buffer];
  if (!b.movable) return "moves a buffer that is not movable";
  if (b.bytes < machine.min_bytes) {
    return "moves " + std::to_string(b.bytes) + " bytes, below the minimum of " +
           std::to_string(machine.min_bytes);
  }
  if (move.bytes == 0) return "moves nothing";
  if (move.offset > b.bytes || move.bytes > b.bytes - move.offset) {
    return "moves bytes beyond the buffer's end";
  }
  const bool to_end = move.offset + move.bytes == b.bytes;
  if (move.offset % machine.chunk_bytes != 0 ||
      (!to_end && move.bytes % machine.chunk_bytes != 0)) {
    return "moves a part that is not whole chunks";
  }
  return "";
}

std::string BrokenOrder(const Step& step, const Move& move) {
  const size_t n = step.ops.size();
  if ((!move.clean && move.after >= n) || move.release >= n || move.reserve >= n ||
      move.ready >= n) {
    return "names an operation that does not exist";
  }
  if (move.release == move.reserve) return "gives its chunks back and takes them at one boundary";
  uint64_t length = uint64_t{CyclicDistance(move.release, move.reserve, n)} +
                    CyclicDistance(move.reserve, move.ready, n);
  if (!move.clean) {
    const uint32_t out = CyclicDistance(move.after, move.release, n);
    length += out == 0 ? n : out;
  }
  if (length > n) return "has after, release, reserve and ready out of order";
  const StepBuffer& b = step.buffers[move.buffer];
  if (b.persistent) return "";
  const bool in_order = (move.clean || (move.after < move.release && move.after >= b.born)) &&
                        move.release < move.reserve && move.reserve <= move.ready;
  if (!in_order) return "goes across the iteration's end with a buffer that is not persistent";
  if (move.release <= b.born || move.ready > b.freed) return "is away when its buffer is not alive";
  return "";
}

std::string BrokenParking(const Step& step, const core::Machine& machine, const Plan& plan) {
  std::vector<bool> busy(step.buffers.size());
  for (const StepAccess& access : step.accesses) busy[access.buffer] = true;
  for (const Move& move : plan.moves) busy[move.buffer] = true;
  for (const core::Parked& parked : plan.parked) {
    const std::string name = "buffer " + std::to_string(parked.buffer) + " is parked and ";
    if (parked.buffer >= step.buffers.size()) return name + "does not exist";
    const std::string broken =
        BrokenPart(step, machine, {.buffer = parked.buffer, .bytes = parked.bytes});
    if (!broken.empty()) return name + broken;
    if (!step.buffers[parked.buffer].persistent) return name + "is not persistent";
    if (busy[parked.buffer]) return name + "is used, moved or parked twice";
    busy[parked.buffer] = true;
  }
  return "";
}

std::string BrokenQueue(const Plan& plan, const core::Array<MoveIndex>& queue, bool out) {
  std::vector<int> seen(plan.moves.size(), 0);
  const std::string name = out ? "the queue of copies out" : "the queue of copies in";
  for (MoveIndex m : queue) {
    if (m >= plan.moves.size())
      return name + " names move " + std::to_string(m) + ", which is none";
    if (out && plan.moves[m].clean)
      return name + " holds " + MoveName(plan, m) + ", which is clean";
    if (++seen[m] > 1) return name + " holds " + MoveName(plan, m) + " twice";
  }
  for (MoveIndex m = 0; m < plan.moves.size(); ++m) {
    if (seen[m] == 0 && !(out && plan.moves[m].clean)) return name + " lacks " + MoveName(plan, m);
  }
  return "";
}

}  // namespace

std::string MoveName(const Plan& plan, MoveIndex move) {
  return "move " + std::to_string(move) + " of buffer " + std::to_string(plan.moves[move].buffer);
}

std::string BrokenRule(const Step& step, const core::Machine& machine, const Plan& plan) {
  std::string broken = BrokenStep(step);
  if (!broken.empty()) return broken;
  if (machine.chunk_bytes == 0) return "the machine's chunk_bytes is 0";
  if (!(machine.out_rate > 0 && machine.in_rate > 0 && machine.out_rate_duplex > 0 &&
        machine.in_rate_duplex > 0)) {
    return "a rate of the machine is not above 0";
  }
  for (MoveIndex m = 0; m < plan.moves.size(); ++m) {
    broken = BrokenPart(step, machine, plan.moves[m]);
    if (broken.empty()) broken = BrokenOrder(step, plan.moves[m]);
    if (!broken.empty()) return MoveName(plan, m) + " " + broken;
  }
  broken = BrokenParking(step, machine, plan);
  if (!broken.empty()) return broken;
  broken = BrokenQueue(plan, plan.out_queue, true);
  return broken.empty() ? BrokenQueue(plan, plan.in_queue, false) : broken;
}

}  // namespace tidemark::steps
