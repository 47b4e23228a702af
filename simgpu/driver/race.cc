// See race.h.

#include "simgpu/driver/race.h"

#include <algorithm>
#include <bit>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

std::vector<uint32_t>& FreeLanes() {
  static auto* lanes = new std::vector<uint32_t>;
  return *lanes;
}

bool Ordered(const Clock& clock, uint32_t lane, uint64_t tick) {
  return lane < clock.size() && clock[lane] >= tick;
}

const char* Verb(bool write) { return write ? "writes" : "reads"; }

}  // namespace

void JoinClock(Clock* into, const Clock& from) {
  if (into->size() < from.size()) into->resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) (*into)[i] = std::max((*into)[i], from[i]);
}

uint32_t TakeLaneIndex() {
  static uint32_t next = 0;
  std::vector<uint32_t>& free = FreeLanes();
  if (free.empty()) return next++;
  const uint32_t index = free.back();
  free.pop_back();
  return index;
}

void GiveLaneIndex(uint32_t index) { FreeLanes().push_back(index); }

RaceDetector& RaceDetector::Get() {
  static auto* detector = new RaceDetector;
  return *detector;
}

void RaceDetector::ResetForTesting() {
  cells_.clear();
  reported_.clear();
  races_ = 0;
}

// Makes `at` a cell boundary; returns the first cell that starts at or after it.
RaceDetector::Cells::iterator RaceDetector::Split(CUdeviceptr at) {
  auto next = cells_.lower_bound(at);
  if (next == cells_.begin() || (next != cells_.end() && next->first == at)) return next;
  auto left = std::prev(next);
  if (left->second.end <= at) return next;
  Cell right = left->second;
  left->second.end = at;
  return cells_.emplace_hint(next, at, std::move(right));
}

void RaceDetector::CheckCell(const Cell& cell, CUdeviceptr at, const RaceAccess& access,
                             bool write) {
  const Stamp& writer = cell.writer;
  if (writer.actor && !Ordered(*access.clock, writer.lane, writer.tick)) {
    Report(writer, true, access, write, at);
  }
  if (!write) return;
  for (const Stamp& reader : cell.readers) {
    if (!Ordered(*access.clock, reader.lane, reader.tick)) Report(reader, false, access, true, at);
  }
}

void RaceDetector::Touch(const RaceAccess& access, CUdeviceptr base, size_t bytes, bool write) {
  if (bytes == 0) return;
  const CUdeviceptr end = base + bytes;
  auto it = Split(base);
  Split(end);
  it = cells_.lower_bound(base);
  const Stamp stamp{access.lane, access.tick, access.actor};
  if (write) {
    while (it != cells_.end() && it->first < end) {
      CheckCell(it->second, it->first, access, true);
      it = cells_.erase(it);
    }
    cells_.emplace_hint(it, base, Cell{end, stamp, {}});
    return;
  }
  CUdeviceptr at = base;
  while (at < end) {
    if (it == cells_.end() || it->first > at) {  // nobody has touched this part yet
      const CUdeviceptr stop = it == cells_.end() ? end : std::min(end, it->first);
      cells_.emplace_hint(it, at, Cell{stop, {}, {stamp}});
      at = stop;
      continue;
    }
    Cell& cell = it->second;
    CheckCell(cell, at, access, false);
    auto mine = std::find_if(cell.readers.begin(), cell.readers.end(),
                             [&](const Stamp& s) { return s.lane == access.lane; });
    if (mine == cell.readers.end()) {
      cell.readers.push_back(stamp);
    } else {
      *mine = stamp;
    }
    at = cell.end;
    ++it;
  }
}

void RaceDetector::Retire(const RaceAccess& access, CUdeviceptr base, size_t bytes) {
  const CUdeviceptr end = base + bytes;
  Split(base);
  Split(end);
  auto it = cells_.lower_bound(base);
  while (it != cells_.end() && it->first < end) {
    if (access.clock != nullptr) CheckCell(it->second, it->first, access, true);
    it = cells_.erase(it);
  }
}

void RaceDetector::Report(const Stamp& earlier, bool earlier_writes, const RaceAccess& access,
                          bool write, CUdeviceptr at) {
  const std::string key = earlier.actor->name + "@" + std::to_string(earlier.actor->stream_id) +
                          "|" + access.actor->name + "@" + std::to_string(access.actor->stream_id);
  if (!reported_.insert(key).second) return;
  ++races_;
  LogAlways(
      "race: %s (stream %llu, operation %llu) %s 0x%llx while %s (stream %llu, operation %llu) %s "
      "it; nothing orders the two",
      access.actor->name.c_str(), static_cast<unsigned long long>(access.actor->stream_id),
      static_cast<unsigned long long>(access.actor->sequence), Verb(write), at,
      earlier.actor->name.c_str(), static_cast<unsigned long long>(earlier.actor->stream_id),
      static_cast<unsigned long long>(earlier.actor->sequence), Verb(earlier_writes));
}

// Pages of earlier logs: every kernel needs some hundreds.
std::vector<TouchLog::Page*>& TouchLog::SparePages() {
  static auto* pages = new std::vector<Page*>;
  return *pages;
}

std::unique_ptr<TouchLog::Page> TouchLog::NewPage() {
  if (SparePages().empty()) return std::make_unique<Page>();
  std::unique_ptr<Page> page(SparePages().back());
  SparePages().pop_back();
  *page = Page();
  return page;
}

TouchLog::TouchLog() = default;

TouchLog::~TouchLog() {
  for (auto& [number, page] : pages_) SparePages().push_back(page.release());
}

void TouchLog::Callback(void* context, const void* address, uint64_t bytes, int write) {
  static_cast<TouchLog*>(context)->Add(address, bytes, write != 0);
}

void TouchLog::Add(const void* address, uint64_t bytes, bool write) {
  uint64_t at = reinterpret_cast<uint64_t>(address);
  while (bytes > 0) {
    const uint64_t here = std::min(bytes, kPage - at % kPage);
    AddInPage(at, here, write);
    at += here;
    bytes -= here;
  }
}

TouchLog::Page* TouchLog::Find(uint64_t number) {
  const size_t slot = number % kRecent;
  if (recent_[slot] != nullptr && recent_number_[slot] == number) return recent_[slot];
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) {
    page = NewPage();
    page->watched =
        LooksLikeDeviceAddress(number * kPage) || PlaceOf(number * kPage).space != Space::kPageable;
  }
  recent_number_[slot] = number;
  recent_[slot] = page.get();
  return page.get();
}

void TouchLog::AddInPage(uint64_t address, uint64_t bytes, bool write) {
  Page* page = Find(address / kPage);
  if (!page->watched) return;
  uint64_t* bits = write ? page->written : page->read;
  uint64_t first = address % kPage;
  while (bytes > 0) {
    const uint64_t here = std::min(bytes, 64 - first % 64);
    const uint64_t mask = here == 64 ? ~uint64_t{0} : (uint64_t{1} << here) - 1;
    bits[first / 64] |= mask << (first % 64);
    first += here;
    bytes -= here;
  }
}

void TouchLog::Runs::Add(uint64_t from, uint64_t to) {
  if (from == end && begin != end) {
    end = to;
    return;
  }
  Close();
  begin = from;
  end = to;
}

void TouchLog::Runs::Close() {
  if (begin != end) detector->Touch(access, begin, end - begin, write);
  begin = end = 0;
}

void TouchLog::AddBits(const uint64_t* bits, uint64_t base, Runs* runs) {
  for (uint64_t word = 0; word < kPage / 64; ++word) {
    uint64_t left = bits[word];
    const uint64_t at = base + word * 64;
    while (left != 0) {
      const int from = std::countr_zero(left);
      const int length = std::countr_one(left >> from);
      runs->Add(at + static_cast<uint64_t>(from), at + static_cast<uint64_t>(from + length));
      left = from + length == 64 ? 0 : left >> (from + length) << (from + length);
    }
  }
}

void TouchLog::Flush(const RaceAccess& access, RaceDetector* detector) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, page] : pages_) {
    if (page->watched) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  for (const bool write : {false, true}) {
    Runs runs{access, detector, write};
    for (const uint64_t number : numbers) {
      const Page& page = *pages_[number];
      AddBits(write ? page.written : page.read, number * kPage, &runs);
    }
    runs.Close();
  }
  for (auto& [number, page] : pages_) SparePages().push_back(page.release());
  pages_.clear();
  std::fill(std::begin(recent_), std::end(recent_), nullptr);
}

}  // namespace simgpu
