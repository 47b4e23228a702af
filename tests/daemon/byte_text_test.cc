#include "daemon/byte_text.h"

#include <gtest/gtest.h>

namespace tidemark::daemon {
namespace {

TEST(ParseBytes, ReadsUnits) {
  EXPECT_EQ(*ParseBytes("17"), 17u);
  EXPECT_EQ(*ParseBytes("4GiB"), uint64_t{4} << 30);
  EXPECT_EQ(*ParseBytes(" 512 MiB "), uint64_t{512} << 20);
  EXPECT_EQ(*ParseBytes("0"), 0u);
  EXPECT_EQ(*ParseBytes("1.5GiB"), uint64_t{3} << 29);
  EXPECT_EQ(*ParseBytes("16GB"), uint64_t{16000000000});
}

TEST(ParseBytes, RefusesWhatIsNotACount) {
  for (const char* text : {"", "GiB", "-1", "+1", "4 gib", "1.5.1GiB", "40%", "0x10", "4GiBs",
                           "18446744073709551616", "16777216TiB"}) {
    const auto parsed = ParseBytes(text);
    EXPECT_FALSE(parsed.ok()) << text;
    EXPECT_NE(std::string(parsed.status().message()).find(text), std::string::npos);
  }
}

TEST(ExactBytes, IsReadBack) {
  for (const uint64_t bytes :
       {uint64_t{0}, uint64_t{17}, uint64_t{1} << 20, uint64_t{3} << 29, UINT64_MAX}) {
    EXPECT_EQ(*ParseBytes(ExactBytes(bytes)), bytes);
  }
  EXPECT_EQ(ExactBytes(uint64_t{1536} << 20), "1536MiB");
}

TEST(ReadableBytes, RoundsForPeople) {
  EXPECT_EQ(ReadableBytes(uint64_t{3} << 29), "1.50 GiB");
  EXPECT_EQ(ReadableBytes(uint64_t{2} << 30), "2 GiB");
  EXPECT_EQ(ReadableBytes(17), "17 bytes");
}

}  // namespace
}  // namespace tidemark::daemon
