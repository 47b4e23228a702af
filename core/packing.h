// Addresses for buffers whose lifetimes are known and recur: no two that are alive at the same time
// overlap, and all end below a limit. Greedy, in several orders until one does it, each buffer at
// the lowest or the tightest gap between those that it meets. On the recorded trainings one of
// these orders comes within 0.4 % of the most that is alive at once, or within 2 % where much lives
// longer than half of the period; no one order does so on all.
//
// Some units may be taken for good. Where the room does not suffice, some requests lie in berths,
// which others leave for a part of the period.
//
// Where there is room for it, bytes change streams only some requests after they were freed, so
// that the next stream need not wait for the work of the last one; unknown streams count as others.
//
// Quadratic in the buffers, so the work is done in portions. A packing is a proposal: whoever
// follows it still looks whether a place is free. Threads: none of its own.

#ifndef TIDEMARK_CORE_PACKING_H_
#define TIDEMARK_CORE_PACKING_H_

#include <algorithm>

#include "core/array.h"
#include "core/units.h"

namespace tidemark::core {

// One request of a period. Sizes and places are in units of kBlockBytes.
struct Recurring {
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  uint32_t units = 0;
  StreamId stream = kAnyStream;
  // Alive for so many requests, its own the first. 0, or more than a period: not to be packed.
  uint32_t life = 0;
  uint32_t place = kNowhere;
  uint32_t berth = 0;  // not 0: `place` counts from the beginning of berth number `berth` - 1

  // Whether it lies at `place` in every period of so many requests.
  bool IsFixed(size_t period) const { return life <= period && place != kNowhere && berth == 0; }
};

// Units that nobody gets.
struct Taken {
  uint32_t place = 0;
  uint32_t units = 0;
  uint32_t end() const { return place + units; }
};

// A place beside those that are packed, which nobody else needs from the request `from` of a period
// on, for `length` requests. Where it lies may be another address in each period.
struct Berth {
  uint32_t units = 0;
  uint32_t from = 0;
  uint32_t length = 0;
};

class Packing {
 public:
  static constexpr uint32_t kMost = 1 << 14;  // requests
  static constexpr uint32_t kMostTaken = 1 << 13;
  static constexpr uint32_t kMostBerths = 16;
  // What there is, with what is null for nothing.
  struct Room {
    uint64_t units = 0;
    const Array<Taken>* taken = nullptr;   // in order, apart
    const Array<Berth>* berths = nullptr;  // the first kMostBerths count
  };

  // Memory for all of it. False: there is none.
  bool Init();

  // Looks at `requests`, a period of at most kMost: floor(), peak_at() and quiet_at() are known.
  // False: there is nothing to pack.
  bool Look(const Array<Recurring>* requests);
  // The same, and begins to pack them; they stay where they are until the work is done, and so does
  // what `room` names. All are to end at its units or below, or lie in a berth. False: there is no
  // such packing, or nothing to pack.
  bool Start(const Array<Recurring>* requests, const Room& room);
  // Goes on for about `looks` looks at a placed buffer (1 to 2 ns each). True: it is done.
  bool Work(uint32_t looks);

  // When the work is done: whether a packing was found, its highest end, and where requests lie.
  bool found() const { return attempt_ < kAttempts; }
  uint64_t top() const { return top_; }
  void WritePlaces(Array<Recurring>* requests) const;
  // The most units alive at once: no packing has a lower top.
  uint64_t floor() const { return floor_; }
  // The first request at which they are.
  uint32_t peak_at() const { return peak_at_; }
  // The request before which the fewest units are alive.
  uint32_t quiet_at() const { return quiet_at_; }

 private:
  enum class Order : uint8_t { kSize, kPeakLifeElseSize, kLongElseLife, kPeakLife, kSizeClassLife };
  struct Attempt {
    Order order;
    bool lowest;       // else the tightest gap
    uint32_t apart;    // requests between a free and a request on another stream, at least
    uint32_t repairs;  // how often a request without room moves to the front
  };
  struct Placed {
    uint32_t place = 0;
    uint32_t end = 0;
    uint32_t born = 0;
    uint32_t life = 0;
    StreamId stream = kAnyStream;
  };
  static constexpr uint32_t kAttempts = 8;
  static const Attempt kAttempt[kAttempts];

  const Recurring& At(uint32_t request) const { return (*requests_)[request]; }
  bool Packs(uint32_t request) const {
    return At(request).life != 0 && At(request).life <= period_;
  }
  bool AtPeak(uint32_t request) const;
  uint64_t KeyOf(uint32_t request, Order order) const;
  void FindExtremes();
  void BeginAttempts(bool with_berths);
  void BeginAttempt();
  void Bar(uint64_t place, uint32_t units, uint32_t born, uint32_t life);
  // Of the attempt. They stand above the room, each after one unit that nobody gets.
  uint32_t berths() const {
    const size_t count = with_berths_ ? berths_->size() : 0;
    return static_cast<uint32_t>(std::min<size_t>(count, kMostBerths));
  }
  void Restart();
  bool TryAgain();
  uint64_t GapFor(uint32_t request, const Attempt& attempt, uint64_t* looked) const;
  void Place(uint32_t request, uint32_t place);

  const Array<Recurring>* requests_ = nullptr;
  Array<uint32_t> order_;   // requests, in the order of the attempt
  Array<uint64_t> keys_;    // by request
  Array<uint32_t> places_;  // by request
  Array<Placed> placed_;    // by place
  uint32_t period_ = 0;
  bool one_stream_ = true;
  uint32_t peak_at_ = 0;
  uint32_t quiet_at_ = 0;
  uint64_t floor_ = 0;
  uint64_t room_ = 0;
  const Array<Taken>* taken_ = nullptr;
  const Array<Berth>* berths_ = nullptr;
  bool with_berths_ = false;
  uint64_t limit_ = 0;  // of places in the attempt
  uint64_t top_ = 0;
  uint32_t attempt_ = 0;
  uint32_t repairs_ = 0;  // left
  uint32_t next_ = 0;     // in order_
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_PACKING_H_
