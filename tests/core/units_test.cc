// How people write byte counts, and what is refused.

#include "core/units.h"

#include <gtest/gtest.h>

namespace tidemark::core {
namespace {

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  Bytes bytes = 0;
  EXPECT_TRUE(ParseBytes("4GiB", 0, &bytes));
  EXPECT_EQ(bytes, 4 * kGiB);
  EXPECT_TRUE(ParseBytes("1.5 GB", 0, &bytes));
  EXPECT_EQ(bytes, Bytes{1500000000});
  EXPECT_TRUE(ParseBytes("1073741824", 0, &bytes));
  EXPECT_EQ(bytes, kGiB);
  EXPECT_TRUE(ParseBytes("512M", 0, &bytes));
  EXPECT_EQ(bytes, 512 * kMiB);
  EXPECT_TRUE(ParseBytes("0.5", 0, &bytes));
  EXPECT_EQ(bytes, Bytes{0});
}

TEST(ParseBytes, KeepsEveryDigitOfAWholeNumber) {
  Bytes bytes = 0;
  EXPECT_TRUE(ParseBytes("9007199254740993", 0, &bytes));  // 2^53 + 1
  EXPECT_EQ(bytes, Bytes{9007199254740993});
  EXPECT_TRUE(ParseBytes("18446744073709551615", 0, &bytes));
  EXPECT_EQ(bytes, UINT64_MAX);
}

TEST(ParseBytes, ReadsShareOfTheWhole) {
  Bytes bytes = 0;
  EXPECT_TRUE(ParseBytes("40%", 10 * kGiB, &bytes));
  EXPECT_EQ(bytes, 4 * kGiB);
}

TEST(ParseBytes, RefusesAnythingElseAndLeavesTheResultAlone) {
  Bytes bytes = 7;
  for (const char* text : {"", "GiB", "4 gallons", "-1", "4GiBx", "1..2", "40%",
                           "18446744073709551616", "16777216TiB"}) {
    EXPECT_FALSE(ParseBytes(text, 0, &bytes)) << text;
  }
  EXPECT_FALSE(ParseBytes("101%", kGiB, &bytes));
  EXPECT_FALSE(ParseBytes(nullptr, kGiB, &bytes));
  EXPECT_EQ(bytes, 7u);
}

}  // namespace
}  // namespace tidemark::core
