#include "core/planner/links.h"

#include <gtest/gtest.h>

#include "core/step.h"

namespace tidemark::core::planner {
namespace {

// 2 bytes per nanosecond out and 4 in; 1 and 2 while both are busy.
Links Start() {
  Machine machine;
  machine.out_rate = 2e9;
  machine.in_rate = 4e9;
  machine.out_rate_duplex = 1e9;
  machine.in_rate_duplex = 2e9;
  Links links;
  links.Start(machine);
  return links;
}

TEST(LinksTest, CopiesOneAfterTheOther) {
  Links links = Start();
  links.PutUntil(kOut, 100);
  links.PutUntil(kOut, 300);
  EXPECT_DOUBLE_EQ(links.TimeUntilDone(kOut, 100), (100 - 1e-3) / 2);
  EXPECT_DOUBLE_EQ(links.TimeToDrain(kOut), 150);
  links.AdvanceTo(50);
  EXPECT_TRUE(links.IsDone(kOut, 100));
  EXPECT_FALSE(links.IsDone(kOut, 300));
  links.AdvanceUntilDone(kOut, 300);
  EXPECT_DOUBLE_EQ(links.now(), 150);
  EXPECT_DOUBLE_EQ(links.Backlog(kOut), 0);
}

TEST(LinksTest, IsSlowerOnlyWhileTheOtherIsBusy) {
  Links links = Start();
  links.PutUntil(kOut, 100);  // 100 ns at 1 byte per ns
  links.PutUntil(kIn, 300);   // 200 bytes in 100 ns, the rest in 25 ns
  EXPECT_DOUBLE_EQ(links.TimeToDrain(kOut), 100);
  EXPECT_DOUBLE_EQ(links.TimeToDrain(kIn), 125);
  links.AdvanceTo(110);
  EXPECT_TRUE(links.IsDone(kOut, 100));
  EXPECT_DOUBLE_EQ(links.Backlog(kIn), 60);
  links.AdvanceUntilDone(kIn, 300);
  EXPECT_DOUBLE_EQ(links.now(), 125);
}

TEST(LinksTest, IdlesUntilSomethingIsPut) {
  Links links = Start();
  links.AdvanceTo(40);
  links.PutUntil(kIn, 40);
  links.AdvanceTo(20);  // the past
  EXPECT_DOUBLE_EQ(links.now(), 40);
  EXPECT_FALSE(links.IsDone(kIn, 40));
  links.AdvanceTo(50);
  EXPECT_TRUE(links.IsDone(kIn, 40));
}

}  // namespace
}  // namespace tidemark::core::planner
