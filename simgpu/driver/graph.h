// Graphs and stream capture. A graph is nodes with typed parameters; instantiating flattens it into
// a list in topological order with one lane per branch; launching queues that list.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_GRAPH_H_
#define SIMGPU_DRIVER_GRAPH_H_

#include <cuda.h>

#include <map>
#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

#include "simgpu/driver/engine_state.h"
#include "simgpu/driver/launch.h"

namespace simgpu {

class GraphMemory;

// What a node does, in the terms of the API.
struct NodeParams {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  CUcontext context = nullptr;
  std::shared_ptr<const Launch> launch;  // owners: the node, executable graphs, queued operations
  CUDA_MEMCPY3D copy{};
  CUDA_MEMSET_NODE_PARAMS memset{};
  CUDA_HOST_NODE_PARAMS host{};
  CUevent event = nullptr;
  CUgraph child = nullptr;              // owned by the node
  std::shared_ptr<GraphMemory> memory;  // of allocation and free nodes; owners: graph_memory.h
};

}  // namespace simgpu

struct CUgraphNode_st {
  CUgraph graph = nullptr;
  CUgraphNode origin = nullptr;  // the node this one was cloned from
  simgpu::NodeParams params;
  std::vector<CUgraphNode> from;
  std::vector<CUgraphNode> to;
};

struct CUgraph_st {
  CUgraph owner = nullptr;  // of a child graph: the graph it is part of
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

namespace simgpu {

struct ExecItem {
  CUgraphNode node = nullptr;  // in the graph that was instantiated; a name, perhaps of the dead
  NodeParams params;
  bool enabled = true;
  std::vector<size_t> from;
  size_t lane = 0;
  bool leaf = true;
};

}  // namespace simgpu

struct CUgraphExec_st {
  cuuint64_t flags = 0;
  CUgraph source = nullptr;             // a copy of the graph, for a launch that is captured
  std::vector<simgpu::ExecItem> items;  // in an order that respects the edges
  std::vector<std::unique_ptr<simgpu::Lane>> lanes;
  simgpu::NodePtr last;  // launches of one executable graph never overlap
};

namespace simgpu {

struct Capture {
  CUgraph graph = nullptr;
  bool owns_graph = true;
  uint64_t id = 0;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  CUstream origin = nullptr;
  bool invalid = false;
  std::map<CUstream, std::vector<CUgraphNode>> frontier;  // what each stream's next node depends on
  std::unordered_set<CUgraphNode> made;
};

class Graphs {
 public:
  static Graphs& Get();
  bool IsGraph(CUgraph graph) const { return graphs_.count(graph) != 0; }
  bool IsExec(CUgraphExec exec) const { return execs_.count(exec) != 0; }
  bool IsNode(CUgraphNode node) const { return nodes_.count(node) != 0; }

  CUgraph Create();
  CUgraph Clone(CUgraph graph);
  void Destroy(CUgraph graph);
  CUgraphNode AddNode(CUgraph graph, const std::vector<CUgraphNode>& from, NodeParams params);
  void RemoveNode(CUgraphNode node);
  CUresult Instantiate(CUgraph graph, cuuint64_t flags, CUgraphExec* exec);
  void DestroyExec(CUgraphExec exec);
  CUresult Launch(CUgraphExec exec, CUstream stream, Lock& lock);
  CUresult Update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info);

 private:
  Graphs() = default;
  // Some executable graph holds a memory node of these.
  bool IsInstantiated(const std::vector<ExecItem>& items) const;
  std::unordered_set<CUgraph> graphs_;
  std::unordered_set<CUgraphExec> execs_;
  std::unordered_set<CUgraphNode> nodes_;
};

void AddEdge(CUgraphNode from, CUgraphNode to);

// Capture.
std::vector<Capture*>& Captures();
Capture* FindCapture(uint64_t id);
// Adds what `op` means as a node; the op must carry params.
CUresult CaptureOperation(CUstream stream, const Operation& op);
CUresult CaptureNode(CUstream stream, NodeParams params);
CUresult CaptureEventRecord(CUstream stream, CUevent event, bool external);
CUresult CaptureEventWait(CUstream stream, CUevent event, bool external);
// The event was recorded under a capture that still goes on.
bool EventIsCaptured(CUevent event);
CUresult BeginCapture(CUstream stream, CUgraph graph, std::vector<CUgraphNode> from,
                      CUstreamCaptureMode mode);
CUresult EndCapture(CUstream stream, CUgraph* graph);
void DropCaptureOf(CUstream stream);
// A call that may not meet a capturing stream: invalidates and answers the error, or CUDA_SUCCESS.
CUresult ForbidOnCapturing(CUstream stream);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_GRAPH_H_
