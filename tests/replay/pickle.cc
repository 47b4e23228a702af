// Implementation of tests/replay/pickle.h: the stack machine of Python's pickletools, less all that
// makes objects. Opcodes are those of protocols 0 to 5 that hold plain data. Threads: none.

#include "tests/replay/pickle.h"

#include <bit>
#include <charconv>
#include <cstring>

namespace tidemark::replay {
namespace {

constexpr int kHighestProtocol = 5;
constexpr size_t kLongestNumber = 9;  // bytes of LONG1: 64 bits and a sign

struct Refused {
  unsigned char code;
  const char* name;
};
constexpr Refused kRefused[] = {
    {'c', "GLOBAL"},      {'R', "REDUCE"},        {'b', "BUILD"},
    {'i', "INST"},        {'o', "OBJ"},           {0x81, "NEWOBJ"},
    {0x92, "NEWOBJ_EX"},  {0x93, "STACK_GLOBAL"}, {'P', "PERSID"},
    {'Q', "BINPERSID"},   {0x82, "EXT1"},         {0x83, "EXT2"},
    {0x84, "EXT4"},       {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"},
    {0x8f, "EMPTY_SET"},  {0x90, "ADDITEMS"},     {0x91, "FROZENSET"},
    {0x96, "BYTEARRAY8"},
};

}  // namespace

class PickleMachine {
 public:
  PickleMachine(std::string_view text, Pickle* out) : text_(text), out_(out) {
    out_->text_ = text;
    out_->values_ = {Pickle::Value()};
    out_->containers_.clear();
  }

  bool Run(std::string* error) {
    while (wrong_.empty() && !stopped_) {
      start_ = at_;
      if (out_->values_.size() > Pickle::kMostValues) {
        Fail("more than " + std::to_string(Pickle::kMostValues) + " values, the most accepted");
      }
      const unsigned char code = Byte();
      if (wrong_.empty()) Execute(code);
    }
    if (wrong_.empty()) return true;
    *error = "pickle, byte " + std::to_string(start_) + ": " + wrong_;
    return false;
  }

 private:
  using Ref = Pickle::Ref;
  using Kind = Pickle::Kind;

  void Fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  // `count` bytes of the text from here, or nothing and a failure.
  std::string_view Take(uint64_t count) {
    if (count > text_.size() - at_) {
      Fail("the file ends in the middle of a value");
      return {};
    }
    const std::string_view taken = text_.substr(at_, count);
    at_ += count;
    return taken;
  }

  unsigned char Byte() {
    const std::string_view one = Take(1);
    return one.empty() ? 0 : static_cast<unsigned char>(one[0]);
  }

  uint64_t Little(size_t bytes) {
    const std::string_view taken = Take(bytes);
    uint64_t value = 0;
    for (size_t i = taken.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(taken[i]);
    return value;
  }

  std::string_view Line() {
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) {
      Fail("the file ends in the middle of a line");
      return {};
    }
    const std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return line;
  }

  void Push(Kind kind, uint64_t at, uint64_t size = 0) {
    stack_.push_back(static_cast<Ref>(out_->values_.size()));
    out_->values_.push_back({kind, at, size});
  }

  void PushContainer(Kind kind, std::vector<Ref> items) {
    Push(kind, out_->containers_.size());
    out_->containers_.push_back(std::move(items));
  }

  void PushText(Kind kind, uint64_t size) {
    const uint64_t begin = at_;
    Take(size);
    if (wrong_.empty()) Push(kind, begin, size);
  }

  // The lowest index of the stack that the current opcode may take.
  size_t Floor() const { return marks_.empty() ? 0 : marks_.back(); }

  std::vector<Ref> PopMany(size_t from) {
    std::vector<Ref> items(stack_.begin() + static_cast<long>(from), stack_.end());
    stack_.resize(from);
    return items;
  }

  std::vector<Ref> PopTop(size_t count) {
    if (stack_.size() - Floor() >= count) return PopMany(stack_.size() - count);
    Fail("takes " + std::to_string(count) + " values from a shorter stack");
    return {};
  }

  std::vector<Ref> PopMark() {
    if (marks_.empty()) {
      Fail("refers to a mark that was not set");
      return {};
    }
    const size_t from = marks_.back();
    marks_.pop_back();
    return PopMany(from);
  }

  void Extend(Kind kind, const std::vector<Ref>& items) {
    if (!wrong_.empty()) return;
    if (stack_.size() == Floor() || out_->values_[stack_.back()].kind != kind) {
      return Fail(kind == Kind::kDict ? "sets items of what is not a dict"
                                      : "appends to what is not a list");
    }
    if (kind == Kind::kDict && items.size() % 2 != 0) return Fail("sets a key without a value");
    std::vector<Ref>& all = out_->containers_[out_->values_[stack_.back()].at];
    all.insert(all.end(), items.begin(), items.end());
  }

  void MakeDict() {
    std::vector<Ref> items = PopMark();
    if (items.size() % 2 != 0) return Fail("sets a key without a value");
    PushContainer(Kind::kDict, std::move(items));
  }

  void Put(uint64_t slot) {
    if (!wrong_.empty()) return;
    if (stack_.size() == Floor()) return Fail("memoizes from an empty stack");
    // Slots are handed out in order; one far ahead would only cost memory.
    if (slot > out_->values_.size())
      return Fail("memo slot " + std::to_string(slot) + " is absurd");
    if (slot >= memo_.size()) memo_.resize(slot + 1, kUnset);
    if (memo_[slot] == kUnset) ++memoized_;
    memo_[slot] = stack_.back();
  }

  void Get(uint64_t slot) {
    if (!wrong_.empty()) return;
    if (slot < memo_.size() && memo_[slot] != kUnset) return stack_.push_back(memo_[slot]);
    Fail("gets memo slot " + std::to_string(slot) + ", which was not set");
  }

  void PushLong(uint64_t bytes) {
    if (bytes > kLongestNumber) return Fail("a number has more than 64 bits");
    const std::string_view taken = Take(bytes);
    uint64_t value = 0;
    const bool negative = !taken.empty() && (taken.back() & 0x80) != 0;
    if (negative) value = ~uint64_t{0};
    if (taken.size() == kLongestNumber && taken.back() != (negative ? '\xff' : '\0')) {
      return Fail("a number has more than 64 bits");
    }
    for (size_t i = 0; i < taken.size() && i < 8; ++i) {
      const uint64_t shift = 8 * i;
      value = (value & ~(uint64_t{0xff} << shift)) | uint64_t{static_cast<uint8_t>(taken[i])}
                                                         << shift;
    }
    Push(Kind::kInt, value);
  }

  void PushDecimal(std::string_view digits) {
    if (digits.ends_with('L')) digits.remove_suffix(1);
    if (digits == "00" || digits == "01") return Push(Kind::kBool, digits == "01");
    int64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    if (wrong_.empty() && (result.ec != std::errc() || result.ptr != end)) {
      return Fail("a number is malformed or has more than 64 bits");
    }
    Push(Kind::kInt, static_cast<uint64_t>(value));
  }

  void PushLineText() {
    const std::string_view line = Line();
    Push(Kind::kText, static_cast<uint64_t>(line.data() - text_.data()), line.size());
  }

  uint64_t DecimalSlot() {
    const std::string_view line = Line();
    uint64_t slot = ~uint64_t{0};
    std::from_chars(line.data(), line.data() + line.size(), slot);
    return slot;
  }

  void Stop() {
    const std::vector<Ref> top = PopTop(1);
    if (top.empty()) return;
    if (!stack_.empty() || !marks_.empty()) return Fail("ends with values left on the stack");
    out_->root_ = top[0];
    stopped_ = true;
  }

  void PopOne() {
    if (stack_.size() > Floor()) {
      stack_.pop_back();
    } else if (!marks_.empty()) {
      marks_.pop_back();
    } else {
      Fail("pops from an empty stack");
    }
  }

  void Duplicate() {
    if (stack_.size() == Floor()) return Fail("duplicates from an empty stack");
    stack_.push_back(stack_.back());
  }

  void Execute(unsigned char code) {
    if (ExecuteStack(code) || ExecuteScalar(code) || ExecuteText(code)) return;
    for (const Refused& refused : kRefused) {
      if (refused.code != code) continue;
      return Fail(std::string("opcode ") + refused.name +
                  " is refused: only plain data is read, nothing is looked up or called");
    }
    Fail("opcode " + std::to_string(code) + " is unknown");
  }

  bool ExecuteStack(unsigned char code) {
    switch (code) {
      case 0x80:
        return Protocol(Byte()), true;
      case 0x95:
        return Frame(Little(8)), true;
      case '(':
        return marks_.push_back(stack_.size()), true;
      case '0':
        return PopOne(), true;
      case '1':
        return PopMark(), true;
      case '2':
        return Duplicate(), true;
      case '.':
        return Stop(), true;
      case ']':
        return PushContainer(Kind::kList, {}), true;
      case '}':
        return PushContainer(Kind::kDict, {}), true;
      case ')':
        return PushContainer(Kind::kTuple, {}), true;
      case 'l':
        return PushContainer(Kind::kList, PopMark()), true;
      case 't':
        return PushContainer(Kind::kTuple, PopMark()), true;
      case 'd':
        return MakeDict(), true;
      case 0x85:
        return PushContainer(Kind::kTuple, PopTop(1)), true;
      case 0x86:
        return PushContainer(Kind::kTuple, PopTop(2)), true;
      case 0x87:
        return PushContainer(Kind::kTuple, PopTop(3)), true;
      case 'a':
        return Extend(Kind::kList, PopTop(1)), true;
      case 'e':
        return Extend(Kind::kList, PopMark()), true;
      case 's':
        return Extend(Kind::kDict, PopTop(2)), true;
      case 'u':
        return Extend(Kind::kDict, PopMark()), true;
      case 0x94:
        return Put(memoized_), true;
      case 'q':
        return Put(Byte()), true;
      case 'r':
        return Put(Little(4)), true;
      case 'p':
        return Put(DecimalSlot()), true;
      case 'h':
        return Get(Byte()), true;
      case 'j':
        return Get(Little(4)), true;
      case 'g':
        return Get(DecimalSlot()), true;
      default:
        return false;
    }
  }

  bool ExecuteScalar(unsigned char code) {
    switch (code) {
      case 'N':
        return Push(Kind::kNone, 0), true;
      case 0x88:
        return Push(Kind::kBool, 1), true;
      case 0x89:
        return Push(Kind::kBool, 0), true;
      case 'J':
        return Push(Kind::kInt, SignExtended(Little(4))), true;
      case 'K':
        return Push(Kind::kInt, Byte()), true;
      case 'M':
        return Push(Kind::kInt, Little(2)), true;
      case 0x8a:
        return PushLong(Byte()), true;
      case 0x8b:
        return PushLong(Little(4)), true;
      case 'I':
        return PushDecimal(Line()), true;
      case 'L':
        return PushDecimal(Line()), true;
      case 'F':
        return Line(), Push(Kind::kFloat, 0), true;
      case 'G':
        return Take(8), Push(Kind::kFloat, 0), true;
      default:
        return false;
    }
  }

  bool ExecuteText(unsigned char code) {
    switch (code) {
      case 0x8c:
        return PushText(Kind::kText, Byte()), true;
      case 'X':
        return PushText(Kind::kText, Little(4)), true;
      case 0x8d:
        return PushText(Kind::kText, Little(8)), true;
      case 'U':
        return PushText(Kind::kText, Byte()), true;
      case 'T':
        return PushText(Kind::kText, Little(4)), true;
      case 'C':
        return PushText(Kind::kBytes, Byte()), true;
      case 'B':
        return PushText(Kind::kBytes, Little(4)), true;
      case 0x8e:
        return PushText(Kind::kBytes, Little(8)), true;
      case 'V':
        return PushLineText(), true;
      case 'S':
        return PushLineText(), true;
      default:
        return false;
    }
  }

  static uint64_t SignExtended(uint64_t value) {
    return static_cast<uint64_t>(int64_t{static_cast<int32_t>(static_cast<uint32_t>(value))});
  }

  void Protocol(unsigned char version) {
    if (wrong_.empty() && version > kHighestProtocol) {
      Fail("protocol " + std::to_string(version) + " is unknown; 0 to 5 are read");
    }
  }

  void Frame(uint64_t size) {
    if (wrong_.empty() && size > text_.size() - at_) {
      Fail("a frame of " + std::to_string(size) + " bytes is longer than the rest of the file");
    }
  }

  static constexpr Ref kUnset = ~Ref{0};

  std::string_view text_;
  Pickle* out_;
  size_t at_ = 0;
  size_t start_ = 0;
  bool stopped_ = false;
  std::string wrong_;
  std::vector<Ref> stack_;
  std::vector<size_t> marks_;
  std::vector<Ref> memo_;
  size_t memoized_ = 0;
};

bool Pickle::Parse(std::string_view text, std::string* error) {
  root_ = kNone;
  return PickleMachine(text, this).Run(error);
}

int64_t Pickle::number(Ref value) const {
  const Value& v = values_[value];
  return v.kind == Kind::kInt || v.kind == Kind::kBool ? static_cast<int64_t>(v.at) : 0;
}

std::string_view Pickle::text(Ref value) const {
  const Value& v = values_[value];
  if (v.kind != Kind::kText && v.kind != Kind::kBytes) return {};
  return text_.substr(v.at, v.size);
}

const std::vector<Pickle::Ref>& Pickle::items(Ref value) const {
  const Value& v = values_[value];
  const bool container = v.kind == Kind::kList || v.kind == Kind::kTuple || v.kind == Kind::kDict;
  return container ? containers_[v.at] : empty_;
}

Pickle::Ref Pickle::Get(Ref dict, std::string_view key) const {
  if (kind(dict) != Kind::kDict) return kNone;
  const std::vector<Ref>& all = items(dict);
  if (all.size() > 2 * kMostKeys) return kNone;
  for (size_t i = all.size(); i >= 2; i -= 2) {
    if (kind(all[i - 2]) == Kind::kText && text(all[i - 2]) == key) return all[i - 1];
  }
  return kNone;
}

}  // namespace tidemark::replay
