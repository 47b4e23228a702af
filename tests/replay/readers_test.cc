// What a user sees of the readers: a good file is a trace, a bad one is a sentence with the line.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/replay/csv_trace.h"
#include "tests/replay/rmm_log.h"

namespace tidemark::replay {
namespace {

using testing::HasSubstr;

const char kHead[] = "# allocation trace v1\n# x recorded_peak_reserved_bytes=4096\n";

std::string CsvError(const std::string& rows) {
  Trace trace;
  std::string error;
  return ReadCsvTrace(kHead + rows, &trace, &error) ? "" : error;
}

TEST(CsvTrace, GivesBlocksEventsAndWhatWasAliveBefore) {
  Trace trace;
  std::string error;
  ASSERT_TRUE(ReadCsvTrace(
      std::string(kHead) + "a,7,100,0,0\na,9,200,4,0\nf,7,100,0,5\na,8,300,0,6\nf,9,200,4,7\n",
      &trace, &error))
      << error;
  EXPECT_EQ(trace.preexisting, 2u);
  EXPECT_EQ(trace.recorded_peak_reserved, 4096u);
  ASSERT_EQ(trace.events.size(), 5u);
  EXPECT_EQ(trace.blocks[1].stream, 1u) << "streams are numbered as they appear";
  EXPECT_EQ(PeakRequested(trace).requested, 500u);
  EXPECT_EQ(Check(trace), "");
}

TEST(CsvTrace, NamesTheLineAndTheValueOfWhatIsWrong) {
  EXPECT_THAT(CsvError("x,1,2,3,4\n"), HasSubstr("line 3: operation 'x'"));
  EXPECT_THAT(CsvError("a,1,2,3\n"), HasSubstr("line 3: has 4 fields"));
  EXPECT_THAT(CsvError("a,1,2,3,4,5\n"), HasSubstr("line 3: has 6 fields"));
  EXPECT_THAT(CsvError("a,1,-2,3,4\n"), HasSubstr("bytes '-2'"));
  EXPECT_THAT(CsvError("a,1,99999999999999999,3,4\n"), HasSubstr("is above"));
  EXPECT_THAT(CsvError("a,1,99999999999999999999999,3,4\n"), HasSubstr("not a whole number"));
  EXPECT_THAT(CsvError("a,1,2,3,4\na,1,2,3,4\n"), HasSubstr("line 4: id 1 was allocated before"));
  EXPECT_THAT(CsvError("f,1,2,3,4\n"), HasSubstr("never allocated"));
  EXPECT_THAT(CsvError("a,1,2,3,4\nf,1,2,3,4\nf,1,2,3,4\n"), HasSubstr("line 5: id 1 is freed tw"));
  EXPECT_THAT(CsvError("a,1,2,3,4\nf,1,3,3,4\n"), HasSubstr("with 3 bytes"));
  EXPECT_THAT(CsvError("a,1,2,3,4\nf,1,2,3,3\n"), HasSubstr("time 3 lies before"));
  EXPECT_THAT(CsvError(""), HasSubstr("no events"));
  EXPECT_THAT(CsvError("# recorded_peak_reserved_bytes=x\n"), HasSubstr("line 3: "));
}

const char kRmmHead[] = "Thread,Time,Action,Pointer,Size,Stream\n";

TEST(RmmLog, TellsBlocksApartThatHadTheSameAddress) {
  Trace trace;
  std::string error;
  ASSERT_TRUE(ReadRmmLog(std::string(kRmmHead) + "1,10:00:00.1,allocate,0x7f00,256,0x0\n"
                                                 "1,10:00:00.2,free,0x7f00,256,0x0\n"
                                                 "1,10:00:00.2,allocate failure,(nil),99,0x0\n"
                                                 "2,10:00:00.3,allocate,0x7f00,512,0x5\n"
                                                 "2,10:00:00.4,free,0x8f00,1024,0x5\n",
                         &trace, &error))
      << error;
  EXPECT_EQ(Check(trace), "");
  EXPECT_EQ(trace.blocks.size(), 3u);
  EXPECT_EQ(trace.preexisting, 1u) << "freed in the log, allocated before it";
  EXPECT_EQ(trace.blocks[0].bytes, 1024u);
  EXPECT_EQ(trace.streams(), 2u);
}

// Versions of RMM write pointers and streams with and without 0x, or in decimal.
TEST(RmmLog, TakesAddressesAsAnyVersionWritesThem) {
  for (const std::string address :
       {"0x7f00aa00", "7f00aa00", "2130749952", "18446744073709551104"}) {
    Trace trace;
    std::string error;
    const std::string end = "," + address + ",256," + address + "\r\n";
    ASSERT_TRUE(ReadRmmLog(kRmmHead + ("1,10:00:00:1,allocate" + end) + "1,10:00:00:2,free" + end,
                           &trace, &error))
        << error;
    EXPECT_EQ(trace.blocks.size(), 1u) << address;
    EXPECT_EQ(trace.preexisting, 0u) << address;
  }
}

TEST(RmmLog, NamesTheLineAndTheValueOfWhatIsWrong) {
  const auto error_of = [](const std::string& text) {
    Trace trace;
    std::string error;
    return ReadRmmLog(text, &trace, &error) ? std::string() : error;
  };
  const std::string head = kRmmHead;
  EXPECT_THAT(error_of("Thread,Time\n"), HasSubstr("line 1: is not the header"));
  EXPECT_THAT(error_of(head + "1,t,grow,0x1,2,0\n"), HasSubstr("line 2: action 'grow'"));
  EXPECT_THAT(error_of(head + "1,t,free,0xzz,2,0\n"), HasSubstr("pointer '0xzz'"));
  EXPECT_THAT(error_of(head + "1,t,allocate,0x1,two,0\n"), HasSubstr("size 'two'"));
  EXPECT_THAT(error_of(head + "1,t,allocate,0x1,2,0\n1,t,allocate,0x1,2,0\n"),
              HasSubstr("line 3: pointer '0x1' is allocated"));
  EXPECT_THAT(error_of(head), HasSubstr("no events"));
}

}  // namespace
}  // namespace tidemark::replay
