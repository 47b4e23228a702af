// Pickles as data: plain ones are read, those that would run something are refused by name, and
// damaged ones are a sentence, whatever is damaged.

#include "tests/replay/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/torch_snapshot.h"
#include "tests/replay/trace_builder.h"

namespace tidemark::replay {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  Pickle pickle;
  std::string error;
  return pickle.Parse(text, &error) ? "" : error;
}

std::string Text(const std::string& text) {
  return "\x8c"s + static_cast<char>(text.size()) + text;
}

std::string Number(uint32_t value) {
  std::string out = "J";
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> 8 * i);
  return out;
}

std::string Entry(const std::string& action, uint32_t address, uint32_t bytes) {
  return "}("s + Text("action") + Text(action) + Text("addr") + Number(address) + Text("size") +
         Number(bytes) + Text("stream") + "K\0u"s;
}

std::string Snapshot(const std::string& entries) {
  const std::string segment = "}("s + Text("device") + "K\0"s + Text("address") + Number(4096) +
                              Text("total_size") + Number(8192) + Text("stream") + "K\0"s +
                              Text("blocks") + "](}(" + Text("address") + Number(8192) +
                              Text("size") + Number(1024) + Text("requested_size") + Number(1000) +
                              Text("state") + Text("active_allocated") + "ueu";
  return "\x80\x04}("s + Text("segments") + "](" + segment + "e" + Text("device_traces") + "](](" +
         entries + "eeu.";
}

TEST(Pickle, ReadsPlainDataOfAllKinds) {
  // {'a': [1, -1, 300, True, None, (2, 'x')], 'b': 2**40}
  const std::string text = "\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94("s + Text("a") + "\x94](K\1"s +
                           Number(0xffffffff) + "M\x2c\1\x88N"s + "K\2"s + Text("x") + "\x86\x94" +
                           "e" + Text("b") + "\x8a\6\0\0\0\0\0\1u."s;
  Pickle pickle;
  std::string error;
  ASSERT_TRUE(pickle.Parse(text, &error)) << error;
  const auto& list = pickle.items(pickle.Get(pickle.root(), "a"));
  ASSERT_EQ(list.size(), 6u);
  EXPECT_EQ(pickle.number(list[0]), 1);
  EXPECT_EQ(pickle.number(list[1]), -1);
  EXPECT_EQ(pickle.number(list[2]), 300);
  EXPECT_EQ(pickle.kind(list[4]), Pickle::Kind::kNone);
  EXPECT_EQ(pickle.text(pickle.items(list[5])[1]), "x");
  EXPECT_EQ(pickle.number(pickle.Get(pickle.root(), "b")), int64_t{1} << 40);
  EXPECT_EQ(pickle.Get(pickle.root(), "c"), Pickle::kNone);
}

TEST(Pickle, RefusesByNameWhatWouldLookUpOrCall) {
  EXPECT_THAT(ErrorOf("cposix\nsystem\n(S'true'\ntR."), HasSubstr("opcode GLOBAL is refused"));
  EXPECT_THAT(ErrorOf("\x80\x04"s + Text("posix") + Text("system") + "\x93."),
              HasSubstr("opcode STACK_GLOBAL is refused"));
  EXPECT_THAT(ErrorOf("NNR."), HasSubstr("REDUCE"));
  EXPECT_THAT(ErrorOf("NNb."), HasSubstr("BUILD"));
  EXPECT_THAT(ErrorOf("(iposix\nsystem\n."), HasSubstr("INST"));
  EXPECT_THAT(ErrorOf("NN\x81."), HasSubstr("NEWOBJ"));
  EXPECT_THAT(ErrorOf("P1\n."), HasSubstr("PERSID"));
  EXPECT_THAT(ErrorOf("\x82\1."s), HasSubstr("EXT1"));
  EXPECT_THAT(ErrorOf("\xfe."), HasSubstr("unknown"));
}

TEST(Pickle, SaysWhatIsDamaged) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("byte 0: the file ends"));
  EXPECT_THAT(ErrorOf("K"), HasSubstr("ends in the middle"));
  EXPECT_THAT(ErrorOf("X\xff\xff\xff\xff"), HasSubstr("ends in the middle"));
  EXPECT_THAT(ErrorOf("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), HasSubstr("ends in the middle"));
  EXPECT_THAT(ErrorOf("\x95\xff\xff\xff\xff\xff\xff\xff\xff."), HasSubstr("longer than the rest"));
  EXPECT_THAT(ErrorOf("."), HasSubstr("shorter stack"));
  EXPECT_THAT(ErrorOf("e"), HasSubstr("mark"));
  EXPECT_THAT(ErrorOf("N(Ne."), HasSubstr("not a list"));
  EXPECT_THAT(ErrorOf("}(Nu."), HasSubstr("without a value"));
  EXPECT_THAT(ErrorOf("h\5."), HasSubstr("memo slot 5"));
  EXPECT_THAT(ErrorOf("Nr\xff\xff\xff\xff."), HasSubstr("absurd"));
  EXPECT_THAT(ErrorOf("\x80\x63."), HasSubstr("protocol 99"));
  EXPECT_THAT(ErrorOf("NN."), HasSubstr("left on the stack"));
  EXPECT_THAT(ErrorOf("I12x\n."), HasSubstr("malformed"));
  EXPECT_THAT(ErrorOf("\x8a\x09\0\0\0\0\0\0\0\0\x40."s), HasSubstr("more than 64 bits"));
}

TEST(Pickle, RefusesMoreValuesThanMemoryShouldHold) {
  EXPECT_THAT(ErrorOf(std::string(Pickle::kMostValues + 2, 'N')), HasSubstr("16777216 values"));
}

TEST(Pickle, SurvivesAMillionNestedListsAndAListInItself) {
  EXPECT_EQ(ErrorOf(std::string(1000000, ']') + std::string(999999, 'a') + "."), "");
  EXPECT_EQ(ErrorOf("]\x94h\0a."s), "");
}

TEST(TorchSnapshot, RebuildsWhatWasAliveBefore) {
  const std::string text =
      Snapshot(Entry("segment_alloc", 4096, 8192) + Entry("alloc", 4096, 512) +
               Entry("free_completed", 6000, 700) + Entry("free_requested", 4096, 512) +
               Entry("free_completed", 4096, 512) + Entry("alloc", 4096, 100));
  std::vector<Trace> traces;
  std::string error;
  ASSERT_TRUE(ReadTorchSnapshot(text, &traces, &error)) << error;
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(Check(traces[0]), "");
  EXPECT_EQ(traces[0].preexisting, 2u) << "one is freed in the history, one is alive at the end";
  EXPECT_EQ(traces[0].events.size(), 6u);
  EXPECT_EQ(traces[0].recorded_peak_reserved, 8192u);
}

TEST(TorchSnapshot, SaysWhatAPickleLacks) {
  std::vector<Trace> traces;
  std::string error;
  EXPECT_FALSE(ReadTorchSnapshot("\x80\x04}.", &traces, &error));
  EXPECT_THAT(error, HasSubstr("device_traces"));
  EXPECT_FALSE(ReadTorchSnapshot(Snapshot(""), &traces, &error));
  EXPECT_THAT(error, HasSubstr("_record_memory_history"));
  EXPECT_FALSE(ReadTorchSnapshot(Snapshot(Entry("alloc", 1, 0xffffffff)), &traces, &error));
  EXPECT_THAT(error, HasSubstr("size -1"));
}

// One history that all devices share costs the file a few bytes and the reader much.
TEST(TorchSnapshot, CountsTheEventsOfAllDevicesTogether) {
  const std::string alloc = Entry("alloc", 4096, 512) + "\x94"s;
  std::string repeated;
  for (int i = 0; i < 10000; ++i)
    repeated += "h\0"s;  // each one allocates, and frees the one before
  std::string devices;
  for (int i = 0; i < 255; ++i) devices += "h\1"s;
  const std::string text =
      "\x80\x04}("s + Text("device_traces") + "](](" + alloc + repeated + "e\x94" + devices + "eu.";
  std::vector<Trace> traces;
  std::string error;
  EXPECT_FALSE(ReadTorchSnapshot(text, &traces, &error));
  EXPECT_THAT(error, HasSubstr("more than 4194304 events"));
}

// Whatever happens to the bytes: a trace that holds together, or a sentence.
TEST(TorchSnapshot, SurvivesDamageAtEveryByte) {
  const std::string good = Snapshot(Entry("alloc", 4096, 512) + Entry("free_completed", 4096, 512) +
                                    Entry("alloc", 4096, 700));
  Chance chance(5);
  const auto examine = [](const std::string& text) {
    std::vector<Trace> traces;
    std::string error;
    if (!ReadTorchSnapshot(text, &traces, &error)) {
      EXPECT_FALSE(error.empty());
      return;
    }
    for (const Trace& trace : traces) EXPECT_EQ(Check(trace), "");
  };
  for (size_t i = 0; i < good.size(); ++i) {
    examine(good.substr(0, i));
    for (int n = 0; n < 64; ++n) {
      std::string bad = good;
      bad[i] = static_cast<char>(chance.Next());
      if (n % 2 == 1) bad[chance.Next() % bad.size()] = static_cast<char>(chance.Next());
      examine(bad);
    }
  }
}

}  // namespace
}  // namespace tidemark::replay
