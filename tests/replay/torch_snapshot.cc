// Implementation of tests/replay/torch_snapshot.h. Threads: none.

#include "tests/replay/torch_snapshot.h"

#include "tests/replay/address_trace.h"
#include "tests/replay/line_fields.h"
#include "tests/replay/pickle.h"

namespace tidemark::replay {
namespace {

constexpr size_t kMostDevices = 256;

class DeviceHistory {
 public:
  // `most_events` are accepted.
  DeviceHistory(const Pickle& pickle, Pickle::Ref segments, int64_t device, size_t most_events)
      : pickle_(pickle), segments_(segments), device_(device), most_events_(most_events) {}

  // Empty, or what is wrong.
  std::string Read(Pickle::Ref history, Trace* trace) {
    for (const Pickle::Ref entry : pickle_.items(history)) {
      const std::string wrong = TakeEntry(entry);
      if (!wrong.empty()) return wrong + " in entry " + std::to_string(number_);
      ++number_;
    }
    const std::string wrong = TakeSegments();
    if (!wrong.empty()) return wrong;
    if (out_.events() == 0) return "no allocation in the history";
    out_.Build(trace);
    trace->recorded = true;
    // The sum of the changes up to the end is what the end differs by from the beginning.
    if (reserved_end_ >= change_) {
      trace->recorded_peak_reserved = reserved_end_ - change_ + most_;
    }
    return "";
  }

 private:
  struct Fields {
    uint64_t address = 0;
    Bytes bytes = 0;
    uint64_t stream = 0;
  };

  std::string TakeEntry(Pickle::Ref entry) {
    const std::string_view action = pickle_.text(pickle_.Get(entry, "action"));
    if (action.empty()) return "an entry without an action";
    const bool grows = action == "segment_alloc" || action == "segment_map";
    const bool shrinks = action == "segment_free" || action == "segment_unmap";
    const bool allocates = action == "alloc";
    if (!grows && !shrinks && !allocates && action != "free_completed") return "";
    Fields fields;
    const Pickle::Ref address = pickle_.Get(entry, "addr");
    const std::string wrong = Read(entry, address, "size", &fields);
    if (!wrong.empty()) return wrong;
    if (grows || shrinks) {
      change_ += grows ? fields.bytes : 0 - fields.bytes;
      if (static_cast<int64_t>(change_ - most_) > 0) most_ = change_;
      return "";
    }
    if (out_.events() + 2 > most_events_) {
      return "more than " + std::to_string(kMostEvents) + " events, the most accepted,";
    }
    if (!allocates) {
      out_.Free(fields.address, fields.bytes, fields.stream);
      return "";
    }
    // The history is a ring and may have lost the free.
    if (out_.IsLive(fields.address)) out_.Free(fields.address, fields.bytes, fields.stream);
    out_.Allocate(fields.address, fields.bytes, fields.stream);
    return "";
  }

  std::string Read(Pickle::Ref entry, Pickle::Ref address, std::string_view size, Fields* fields) {
    const Pickle::Ref bytes = pickle_.Get(entry, size);
    const Pickle::Ref stream = pickle_.Get(entry, "stream");
    if (pickle_.kind(address) != Pickle::Kind::kInt || pickle_.kind(bytes) != Pickle::Kind::kInt) {
      return "an address or " + std::string(size) + " that is not a number";
    }
    fields->address = static_cast<uint64_t>(pickle_.number(address));
    fields->bytes = static_cast<Bytes>(pickle_.number(bytes));
    fields->stream = static_cast<uint64_t>(pickle_.number(stream));
    if (fields->bytes <= kLargestBlock) return "";
    return std::string(size) + " " + std::to_string(pickle_.number(bytes)) + ", which is not one,";
  }

  std::string TakeSegments() {
    for (const Pickle::Ref segment : pickle_.items(segments_)) {
      if (pickle_.number(pickle_.Get(segment, "device")) != device_) continue;
      Fields fields;
      const std::string wrong =
          Read(segment, pickle_.Get(segment, "address"), "total_size", &fields);
      if (!wrong.empty()) return wrong + " in a segment";
      reserved_end_ += fields.bytes;
      const std::string wrong_block = TakeBlocks(segment, fields);
      if (!wrong_block.empty()) return wrong_block;
    }
    return "";
  }

  // Older snapshots give no address per block: blocks then tile the segment.
  std::string TakeBlocks(Pickle::Ref segment, const Fields& owner) {
    uint64_t address = owner.address;
    for (const Pickle::Ref block : pickle_.items(pickle_.Get(segment, "blocks"))) {
      if (++blocks_ > kMostEvents) return "more blocks in segments than are accepted";
      const Pickle::Ref given = pickle_.Get(block, "address");
      if (pickle_.kind(given) == Pickle::Kind::kInt) {
        address = static_cast<uint64_t>(pickle_.number(given));
      }
      const auto size = static_cast<Bytes>(pickle_.number(pickle_.Get(block, "size")));
      const Pickle::Ref asked = pickle_.Get(block, "requested_size");
      const auto requested = pickle_.kind(asked) == Pickle::Kind::kInt
                                 ? static_cast<Bytes>(pickle_.number(asked))
                                 : size;
      if (size > kLargestBlock || requested > kLargestBlock) return "a block of an absurd size";
      const bool live = pickle_.text(pickle_.Get(block, "state")).starts_with("active");
      if (live && !out_.IsLive(address)) out_.Keep(address, requested, owner.stream);
      address += size;
    }
    return "";
  }

  const Pickle& pickle_;
  Pickle::Ref segments_;
  int64_t device_;
  size_t most_events_;
  size_t number_ = 0;
  size_t blocks_ = 0;
  AddressTrace out_;
  uint64_t change_ = 0;  // of reserved bytes since the beginning; wraps when negative
  uint64_t most_ = 0;    // the highest change_ was
  Bytes reserved_end_ = 0;
};

}  // namespace

bool LooksLikePickle(std::string_view text) {
  return text.size() > 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
}

bool ReadTorchSnapshot(std::string_view text, std::vector<Trace>* traces, std::string* error) {
  traces->clear();
  Pickle pickle;
  if (!pickle.Parse(text, error)) return false;
  const Pickle::Ref histories = pickle.Get(pickle.root(), "device_traces");
  if (pickle.kind(histories) != Pickle::Kind::kList) {
    *error = "is no memory snapshot with a history: it has no list 'device_traces'";
    return false;
  }
  if (pickle.items(histories).size() > kMostDevices) {
    *error = "names " + std::to_string(pickle.items(histories).size()) + " devices; at most " +
             std::to_string(kMostDevices) + " are accepted";
    return false;
  }
  const Pickle::Ref segments = pickle.Get(pickle.root(), "segments");
  int64_t device = 0;
  size_t events = 0;
  for (const Pickle::Ref history : pickle.items(histories)) {
    Trace trace;
    if (!pickle.items(history).empty()) {
      const std::string wrong =
          DeviceHistory(pickle, segments, device, kMostEvents - events).Read(history, &trace);
      if (!wrong.empty()) {
        *error = "device " + std::to_string(device) + " of the snapshot: " + wrong;
        return false;
      }
      events += trace.events.size();
      if (events > kMostEvents) {  // with what was alive before
        *error = "holds more than " + std::to_string(kMostEvents) + " events, the most accepted";
        return false;
      }
      trace.name = "device " + std::to_string(device);
      traces->push_back(std::move(trace));
    }
    ++device;
  }
  if (!traces->empty()) return true;
  *error = "holds no allocation history: record with torch.cuda.memory._record_memory_history()";
  return false;
}

}  // namespace tidemark::replay
