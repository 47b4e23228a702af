// Reads Python pickles as data: dicts, lists, tuples, text, bytes, numbers, None. Nothing is ever
// looked up by name, built or called: every opcode that would (GLOBAL, REDUCE, BUILD, INST, NEWOBJ,
// PERSID, EXT ...) is refused with a sentence that names it. The input is hostile: every length is
// checked, and depth is no danger because nothing here recurses.
//
// Values refer to the text they were read from, which outlives them. A value may be reached by
// several ways (the pickle's memo), even from inside itself. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_PICKLE_H_
#define TIDEMARK_TESTS_REPLAY_PICKLE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::replay {

class Pickle {
 public:
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kBytes, kList, kTuple, kDict };
  using Ref = uint32_t;  // of a value; 0 is None
  static constexpr Ref kNone = 0;
  // Two million entries of a history; some 2 GiB of memory at the most, however small the file.
  static constexpr size_t kMostValues = size_t{16} << 20;
  static constexpr size_t kMostKeys = 1024;  // of a dict that is asked for a key

  // False: `*error` is one sentence that names the byte offset.
  bool Parse(std::string_view text, std::string* error);

  Ref root() const { return root_; }
  Kind kind(Ref value) const { return values_[value].kind; }
  // Of an int or bool; 0 for anything else.
  int64_t number(Ref value) const;
  // Of text or bytes, as written; empty for anything else.
  std::string_view text(Ref value) const;
  // Of a list or tuple; of a dict keys and values in turn. Empty for anything else.
  const std::vector<Ref>& items(Ref value) const;
  // The value under the text `key` of a dict, the last one given; None when there is none, or when
  // the dict has more than kMostKeys.
  Ref Get(Ref dict, std::string_view key) const;

 private:
  friend class PickleMachine;
  struct Value {
    Kind kind = Kind::kNone;
    uint64_t at = 0;  // number, position in the text, or index of the container
    uint64_t size = 0;
  };

  std::string_view text_;
  std::vector<Value> values_;
  std::vector<std::vector<Ref>> containers_;
  std::vector<Ref> empty_;
  Ref root_ = kNone;
};

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_PICKLE_H_
