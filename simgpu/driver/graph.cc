// Graphs as data, and executable graphs: flattening, launching, updating. See graph.h.

#include "simgpu/driver/graph.h"

#include <algorithm>

#include "simgpu/driver/copy.h"
#include "simgpu/driver/graph_memory.h"
#include "simgpu/driver/report.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

// The operation a node stands for. Addresses are looked up now: a graph names memory, not mappings.
Operation OperationOf(const NodeParams& params, int device) {
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return MakeLaunchOperation(params.launch, device);
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CopyShape shape;
      Side dst = Side::kUnified;
      Side src = Side::kUnified;
      ShapeOf(params.copy, &shape, &dst, &src);
      return MakeCopyOperation("graph memcpy node", shape, false);
    }
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return MakeMemsetOperation("graph memset node", params.memset);
    case CU_GRAPH_NODE_TYPE_HOST: {
      Operation op;
      op.name = "graph host node";
      op.unit = Unit::kHost;
      op.host_callback = true;
      const CUDA_HOST_NODE_PARAMS host = params.host;
      op.run = [host](Operation&) {
        host.fn(host.userData);
        return CUDA_SUCCESS;
      };
      return op;
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return MemoryOperation(params);
    default: {
      Operation op;
      op.name = "graph node";
      return op;
    }
  }
}

// Appends `graph` in topological order; `after` are the items its roots depend on. Answers the
// items that something after the graph has to depend on, or false for a cycle.
bool Flatten(CUgraph graph, const std::vector<size_t>& after, std::vector<ExecItem>* items,
             std::vector<size_t>* ends) {
  std::map<CUgraphNode, std::vector<size_t>> done;
  size_t left = graph->nodes.size();
  while (left > 0) {
    const size_t before = left;
    for (const auto& node : graph->nodes) {
      if (done.count(node.get()) != 0) continue;
      const bool ready = std::all_of(node->from.begin(), node->from.end(),
                                     [&](CUgraphNode from) { return done.count(from) != 0; });
      if (!ready) continue;
      std::vector<size_t> from = node->from.empty() ? after : std::vector<size_t>();
      for (const CUgraphNode source : node->from) {
        from.insert(from.end(), done[source].begin(), done[source].end());
      }
      if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH) {
        std::vector<size_t> child_ends;
        if (!Flatten(node->params.child, from, items, &child_ends)) return false;
        done[node.get()] = child_ends.empty() ? from : child_ends;
      } else {
        ExecItem item;
        item.node = node.get();
        item.params = node->params;
        item.from = from;
        done[node.get()] = {items->size()};
        items->push_back(std::move(item));
      }
      --left;
    }
    if (left == before) return false;
  }
  for (const auto& node : graph->nodes) {
    if (!node->to.empty()) continue;
    ends->insert(ends->end(), done[node.get()].begin(), done[node.get()].end());
  }
  return true;
}

// A lane per branch: an item continues the lane of the first predecessor that nobody continued yet.
size_t AssignLanes(std::vector<ExecItem>* items) {
  std::vector<bool> continued(items->size(), false);
  size_t lanes = 0;
  for (ExecItem& item : *items) {
    bool found = false;
    for (const size_t from : item.from) {
      (*items)[from].leaf = false;
      if (found || continued[from]) continue;
      continued[from] = true;
      item.lane = (*items)[from].lane;
      found = true;
    }
    if (!found) item.lane = lanes++;
  }
  return lanes;
}

}  // namespace

Graphs& Graphs::Get() {
  static auto* graphs = new Graphs;
  return *graphs;
}

CUgraph Graphs::Create() {
  auto* graph = new CUgraph_st;
  graphs_.insert(graph);
  return graph;
}

void AddEdge(CUgraphNode from, CUgraphNode to) {
  if (std::find(to->from.begin(), to->from.end(), from) != to->from.end()) return;
  to->from.push_back(from);
  from->to.push_back(to);
}

CUgraphNode Graphs::AddNode(CUgraph graph, const std::vector<CUgraphNode>& from,
                            NodeParams params) {
  auto owned = std::make_unique<CUgraphNode_st>();
  CUgraphNode node = owned.get();
  node->graph = graph;
  node->params = std::move(params);
  if (node->params.child != nullptr) node->params.child->owner = graph;
  for (const CUgraphNode source : from) AddEdge(source, node);
  graph->nodes.push_back(std::move(owned));
  nodes_.insert(node);
  return node;
}

void Graphs::RemoveNode(CUgraphNode node) {
  for (const CUgraphNode from : node->from) std::erase(from->to, node);
  for (const CUgraphNode to : node->to) std::erase(to->from, node);
  if (node->params.child != nullptr) Destroy(node->params.child);
  nodes_.erase(node);
  std::erase_if(node->graph->nodes, [&](const auto& owned) { return owned.get() == node; });
}

CUgraph Graphs::Clone(CUgraph graph) {
  CUgraph clone = Create();
  std::map<CUgraphNode, CUgraphNode> made;
  for (const auto& node : graph->nodes) {
    NodeParams params = node->params;
    if (params.child != nullptr) params.child = Clone(params.child);
    made[node.get()] = AddNode(clone, {}, std::move(params));
    made[node.get()]->origin = node.get();
  }
  for (const auto& node : graph->nodes) {
    for (const CUgraphNode from : node->from) AddEdge(made[from], made[node.get()]);
  }
  return clone;
}

void Graphs::Destroy(CUgraph graph) {
  for (const auto& node : graph->nodes) {
    nodes_.erase(node.get());
    if (node->params.child != nullptr) Destroy(node->params.child);
  }
  graphs_.erase(graph);
  delete graph;
}

CUresult Graphs::Instantiate(CUgraph graph, cuuint64_t flags, CUgraphExec* out) {
  auto exec = std::make_unique<CUgraphExec_st>();
  std::vector<size_t> ends;
  if (!Flatten(graph, {}, &exec->items, &ends)) return CUDA_ERROR_INVALID_VALUE;
  // The address of an allocation node can serve one executable graph at a time.
  if (HasMemoryNodes(graph) && IsInstantiated(exec->items)) return CUDA_ERROR_NOT_SUPPORTED;
  exec->flags = flags;
  exec->source = Clone(graph);
  const size_t lanes = AssignLanes(&exec->items);
  for (size_t i = 0; i < lanes; ++i) exec->lanes.push_back(std::make_unique<Lane>());
  *out = exec.release();
  execs_.insert(*out);
  return CUDA_SUCCESS;
}

bool Graphs::IsInstantiated(const std::vector<ExecItem>& items) const {
  const auto same = [&](const ExecItem& other) {
    return other.params.memory != nullptr &&
           std::any_of(items.begin(), items.end(), [&](const ExecItem& item) {
             return item.params.memory == other.params.memory &&
                    item.params.type == other.params.type;
           });
  };
  return std::any_of(execs_.begin(), execs_.end(), [&](CUgraphExec exec) {
    return std::any_of(exec->items.begin(), exec->items.end(), same);
  });
}

void Graphs::DestroyExec(CUgraphExec exec) {
  execs_.erase(exec);
  Destroy(exec->source);
  delete exec;  // queued work goes on: it holds its own parameters
}

CUresult Graphs::Launch(CUgraphExec exec, CUstream stream, Lock& lock) {
  Engine& engine = Engine::Get();
  std::vector<CUdeviceptr> stale;
  const bool automatic = (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  if (const CUresult bad = BeginMemoryOf(exec->items, automatic, &stale); bad != CUDA_SUCCESS) {
    return bad;
  }
  engine.Charge(GetConfig().launch_seconds);
  Operation start;
  start.name = "cuGraphLaunch";
  if (!stale.empty()) {
    start.run = [stale](Operation&) {
      EndGraphMemory(stale);
      return CUDA_SUCCESS;
    };
  }
  const NodePtr root =
      Enqueue(stream, std::move(start),
              exec->last ? std::vector<NodePtr>{exec->last} : std::vector<NodePtr>{}, lock);
  std::vector<NodePtr> queued;
  std::vector<NodePtr> ends;
  for (ExecItem& item : exec->items) {
    std::vector<NodePtr> after;
    for (const size_t from : item.from) after.push_back(queued[from]);
    if (after.empty()) after.push_back(root);
    // A node keeps the context, and so the device, that it was made for.
    const CUcontext context =
        IsContext(item.params.context) ? item.params.context : stream->context;
    // A graph does not own its events: one that was destroyed orders nothing.
    const CUevent event = Streams::Get().IsEvent(item.params.event) ? item.params.event : nullptr;
    Operation op;
    if (item.enabled) op = OperationOf(item.params, context->device);
    if (item.params.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT && event != nullptr && event->node) {
      after.push_back(event->node);
    }
    CountOperation(op);
    const NodePtr node =
        engine.Add(*exec->lanes[item.lane], context, stream->id, std::move(op), after, lock);
    if (item.params.type == CU_GRAPH_NODE_TYPE_EVENT_RECORD && event != nullptr) {
      event->node = node;
      event->capture = nullptr;
    }
    if (item.leaf) ends.push_back(node);
    queued.push_back(node);
  }
  Operation end;
  end.name = "cuGraphLaunch";
  exec->last = Enqueue(stream, std::move(end), ends, lock);
  return stream->context->sticky;
}

CUresult Graphs::Update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* info) {
  *info = {};
  const auto fail = [&](CUgraphExecUpdateResult result, CUgraphNode node) {
    info->result = result;
    info->errorNode = node;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  };
  std::vector<ExecItem> items;
  std::vector<size_t> ends;
  if (!Flatten(graph, {}, &items, &ends)) return fail(CU_GRAPH_EXEC_UPDATE_ERROR, nullptr);
  AssignLanes(&items);
  if (items.size() != exec->items.size()) {
    return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const NodeParams& was = exec->items[i].params;
    if (items[i].params.type != was.type) {
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, items[i].node);
    }
    if (items[i].params.memory != was.memory) {
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, items[i].node);
    }
    if (items[i].from != exec->items[i].from) {
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, items[i].node);
    }
  }
  for (size_t i = 0; i < items.size(); ++i) {
    exec->items[i].params = items[i].params;
    exec->items[i].node = items[i].node;
  }
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
