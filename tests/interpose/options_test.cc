// Parsing of the preloaded library's options.

#include "interpose/options.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tidemark::interpose {
namespace {

std::map<std::string, std::string> environment;

const char* Lookup(const char* name) {
  auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

std::string Parse(Options* options) {
  char why[512];
  return ParseOptions(&Lookup, options, why, sizeof(why)) ? "" : why;
}

TEST(OptionsTest, SizesAreBytesOrAShare) {
  OptionSize size;
  ASSERT_TRUE(ParseSize("4GiB", &size));
  EXPECT_EQ(size.Of(0), uint64_t{4} << 30);
  ASSERT_TRUE(ParseSize("1048576", &size));
  EXPECT_EQ(size.Of(0), 1048576u);
  ASSERT_TRUE(ParseSize("40%", &size));
  EXPECT_EQ(size.Of(1000), 400u);
  ASSERT_TRUE(ParseSize("1.5GiB", &size));
  EXPECT_EQ(size.Of(0), uint64_t{3} << 29);
  ASSERT_TRUE(ParseSize("12.5%", &size));
  EXPECT_EQ(size.Of(8000), 1000u);
}

TEST(OptionsTest, WhatIsNoSizeIsRefused) {
  OptionSize size;
  for (const char* text : {"", "x", "0", "0%", "101%", "4Gi B", "-1", "99999999999999999999",
                           "17179869184TiB", "40%%", "GiB"}) {
    EXPECT_FALSE(ParseSize(text, &size)) << text;
  }
}

TEST(OptionsTest, UnsetSizeMeansTheWhole) { EXPECT_EQ(OptionSize().Of(123), 123u); }

TEST(OptionsTest, DefaultsNeedNoEnvironment) {
  environment.clear();
  Options options;
  EXPECT_EQ(Parse(&options), "");
  EXPECT_FALSE(options.disable);
  EXPECT_FALSE(options.budget.given);
  EXPECT_STREQ(options.socket, "auto");
}

TEST(OptionsTest, BadValueIsNamedWithWhatIsAccepted) {
  environment = {{"TIDEMARK_HOST_BUDGET", "a lot"}};
  Options options;
  EXPECT_EQ(Parse(&options),
            "TIDEMARK_HOST_BUDGET=a lot is not understood (accepted: a number of bytes above 0, "
            "with KiB, MiB, GiB or TiB, or a share up to 100%)");
  environment = {{"TIDEMARK_DISABLE", "yes"}};
  EXPECT_EQ(Parse(&options), "TIDEMARK_DISABLE=yes is not understood (accepted: 0 or 1)");
}

}  // namespace
}  // namespace tidemark::interpose
