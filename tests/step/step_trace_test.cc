// Whatever is wrong with a trace is said in one sentence with its line; a good one reads back.

#include "tests/step/step_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <unistd.h>
#include <cstdio>

#include <filesystem>
#include <fstream>
#include <random>

namespace tidemark::steps {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr char kGood[] =
    "# step trace v1: one iteration\n"
    "# net=tiny ops=3 ideal_ns=60\n"
    "tensor,5,4096,1\n"
    "tensor,9,8192,0\n"
    "tensor,2,1024,0\n"
    "op,0,first,10,5,9\n"
    "op,1,middle,20,,\n"
    "op,2,last,30,9;5,5\n";

std::string ErrorOf(const std::string& text) {
  NamedStep step;
  std::string error;
  EXPECT_FALSE(ParseStepTrace(text, &step, &error)) << text;
  return error;
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = kGood;
  return text.replace(text.find(from), from.size(), to);
}

TEST(StepTrace, ReadsBuffersLifetimesAndAccesses) {
  NamedStep s;
  std::string error;
  ASSERT_TRUE(ParseStepTrace(kGood, &s, &error)) << error;
  EXPECT_EQ(s.name, "tiny");
  ASSERT_EQ(s.step.ops.size(), 3u);
  ASSERT_EQ(s.step.buffers.size(), 2u);  // tensor 2 is used by nothing
  EXPECT_TRUE(s.step.buffers[0].persistent);
  EXPECT_EQ(s.step.buffers[1].bytes, 8192u);
  EXPECT_EQ(s.step.buffers[1].born, 0u);
  EXPECT_EQ(s.step.buffers[1].freed, 2u);
  EXPECT_EQ(s.step.ops[2].access_count, 2u);
  const core::StepAccess both = s.step.accesses[s.step.ops[2].first_access + 1];
  EXPECT_EQ(both.buffer, 0u);
  EXPECT_TRUE(both.read && both.write);
  EXPECT_EQ(s.op_names[1], "middle");
}

TEST(StepTrace, WhatIsWrittenReadsBackTheSame) {
  NamedStep s, again;
  std::string error;
  ASSERT_TRUE(ParseStepTrace(kGood, &s, &error)) << error;
  const std::string text = StepTraceText(s, "a test");
  ASSERT_TRUE(ParseStepTrace(text, &again, &error)) << error;
  EXPECT_EQ(StepTraceText(again, "a test"), text);
}

TEST(StepTrace, NamesTheLineAndTheValueThatIsWrong) {
  EXPECT_THAT(ErrorOf(Replaced("8192", "0")), StartsWith("line 4: tensor bytes must be 1 to"));
  EXPECT_THAT(ErrorOf(Replaced("8192", "99999999999999999999")),
              HasSubstr("'99999999999999999999'"));
  EXPECT_THAT(ErrorOf(Replaced("8192,0", "8192,2")), HasSubstr("persistent must be 0 or 1"));
  EXPECT_THAT(ErrorOf(Replaced("tensor,9,8192,0", "tensor,9,8192")), HasSubstr("4 fields"));
  EXPECT_THAT(ErrorOf(Replaced("tensor,9", "tensor,5")), HasSubstr("5 was given before"));
  EXPECT_THAT(ErrorOf(Replaced("tensor,9", "tensor,-9")), HasSubstr("'-9' is not a number"));
  EXPECT_THAT(ErrorOf(Replaced("op,1", "op,7")), StartsWith("line 7: operations are numbered"));
  EXPECT_THAT(ErrorOf(Replaced(",30,", ",3x,")), HasSubstr("'3x'"));
  EXPECT_THAT(ErrorOf(Replaced(",30,", ",-3,")), HasSubstr("duration_ns"));
  EXPECT_THAT(ErrorOf(Replaced("9;5,5", "9;7,5")), HasSubstr("tensor 7 has no tensor row"));
  EXPECT_THAT(ErrorOf(Replaced("9;5,5", "9;,5")), HasSubstr("tensor ids are numbers"));
  EXPECT_THAT(ErrorOf(Replaced("op,1,middle", "opp,1,middle")), HasSubstr("not 'opp'"));
  EXPECT_THAT(ErrorOf(Replaced("op,1,middle", "op,1,mid,dle")), HasSubstr("6 fields"));
  EXPECT_THAT(ErrorOf(Replaced("ops=3", "ops=4")), HasSubstr("promises 4 operations"));
  EXPECT_THAT(ErrorOf(Replaced("ideal_ns=60", "ideal_ns=61")), HasSubstr("promises 61 ns"));
  EXPECT_THAT(ErrorOf(Replaced("ops=3", "ops=many")), HasSubstr("'many'"));
  EXPECT_THAT(ErrorOf(Replaced("step trace v1", "step trace v2")), StartsWith("line 1:"));
  EXPECT_THAT(ErrorOf(Replaced("# step trace v1: one iteration\n", "")),
              HasSubstr("step trace v1"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("empty"));
  EXPECT_THAT(ErrorOf("# step trace v1\n"), HasSubstr("without an op row"));
}

TEST(StepTrace, ATerminalIsSafeFromWhatItQuotes) {
  EXPECT_THAT(ErrorOf(Replaced("8192", "\x1b[2J")), HasSubstr("'?[2J'"));
}

class StepTraceFile : public testing::Test {
 protected:
  StepTraceFile() : folder_(testing::TempDir() + "steps_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~StepTraceFile() override { std::filesystem::remove_all(folder_); }

  std::string Gzip(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    gzFile file = gzopen(path.c_str(), "wb1");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return path;
  }

  std::string folder_;
};

TEST_F(StepTraceFile, ReadsPlainAndPackedFiles) {
  std::ofstream(folder_ + "/plain.csv") << kGood;
  Gzip("packed.csv.gz", kGood);
  std::ofstream(folder_ + "/notes.txt") << "not a trace";
  const std::vector<std::string> paths = StepTracesIn(folder_);
  ASSERT_EQ(paths.size(), 2u);
  for (const std::string& path : paths) {
    NamedStep s;
    std::string error;
    EXPECT_TRUE(ReadStepTrace(path, &s, &error)) << error;
    EXPECT_EQ(s.step.ops.size(), 3u);
  }
}

TEST_F(StepTraceFile, SaysThatPackedDataIsCutOff) {
  const std::string path = Gzip("cut.csv.gz", kGood);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  NamedStep s;
  std::string error;
  EXPECT_FALSE(ReadStepTrace(path, &s, &error));
  EXPECT_THAT(error, HasSubstr(path));
  EXPECT_THAT(error, HasSubstr("cut off"));
  EXPECT_FALSE(ReadStepTrace(folder_ + "/none.csv", &s, &error));
  EXPECT_THAT(error, HasSubstr("cannot be opened"));
}

TEST_F(StepTraceFile, RefusesAFileThatUnpacksWithoutEnd) {
  const std::string path = Gzip("bomb.csv.gz", std::string(kTraceTextLimit + 2, '\n'));
  NamedStep s;
  std::string error;
  EXPECT_FALSE(ReadStepTrace(path, &s, &error));
  EXPECT_THAT(error, HasSubstr("unpacks to more than"));
}

// A fused optimizer updates everything in one operation.
TEST(StepTrace, TakesOperationsThatTouchThousandsOfTensors) {
  std::string tensors, ids;
  for (int i = 0; i < 10000; ++i) {
    tensors += "tensor," + std::to_string(i) + ",1024,1\n";
    ids += (i == 0 ? "" : ";") + std::to_string(i);
  }
  NamedStep s;
  std::string error;
  ASSERT_TRUE(ParseStepTrace(
      "# step trace v1\n" + tensors + "op,0,fused,5," + ids + "," + ids + ";3\n", &s, &error))
      << error;
  EXPECT_EQ(s.step.ops[0].access_count, 10000u);
  EXPECT_TRUE(s.step.accesses[9999].read && s.step.accesses[9999].write);
}

// Damaged bytes anywhere: an answer, never a crash, and what is accepted is a step that holds
// together.
TEST(StepTrace, SurvivesDamageAnywhere) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string text = kGood;
    for (int k = random() % 3; k >= 0; --k)
      text[random() % text.size()] = static_cast<char>(random());
    NamedStep s;
    std::string error;
    if (!ParseStepTrace(text, &s, &error)) {
      EXPECT_THAT(error, StartsWith("line "));
      continue;
    }
    for (const core::StepAccess& access : s.step.accesses) {
      ASSERT_LT(access.buffer, s.step.buffers.size());
    }
  }
}

}  // namespace
}  // namespace tidemark::steps
