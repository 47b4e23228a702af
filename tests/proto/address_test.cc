// The places where a tidemarkd is looked for, and who is believed to be one.

#include "proto/address.h"

#include <gtest/gtest.h>
#include <sys/un.h>

#include <string>
#include <vector>

namespace tidemark::proto {
namespace {

std::vector<std::string> FoldersOf(uid_t uid, const char* runtime_dir) {
  const SocketFolders folders(uid, runtime_dir);
  std::vector<std::string> paths;
  for (int i = 0; i < folders.size(); ++i) paths.emplace_back(folders[i]);
  return paths;
}

using Paths = std::vector<std::string>;

TEST(SocketFolders, RootLooksOnlyWhereRootAloneCanWrite) {
  EXPECT_EQ(FoldersOf(0, "/run/user/1000"), Paths{"/run/tidemark"});
}

TEST(SocketFolders, AUsersOwnComeFirstAndTheNodesLast) {
  EXPECT_EQ(FoldersOf(7, "/home/bob/run"),
            (Paths{"/home/bob/run/tidemark", "/tmp/tidemark-7/tidemark", "/run/user/7/tidemark",
                   "/run/tidemark"}));
  EXPECT_EQ(FoldersOf(4294967294u, nullptr).front(), "/tmp/tidemark-4294967294/tidemark");
}

TEST(SocketFolders, NoFolderIsTriedTwice) {
  EXPECT_EQ(FoldersOf(7, "/run/user/7"),
            (Paths{"/run/user/7/tidemark", "/tmp/tidemark-7/tidemark", "/run/tidemark"}));
}

TEST(SocketFolders, ARuntimeFolderThatCannotHoldASocketIsAsGoodAsNone) {
  const std::string with_long = FoldersOf(7, ("/" + std::string(90, 'x')).c_str()).front();
  for (const std::string& first :
       {FoldersOf(7, "run").front(), FoldersOf(7, "").front(), with_long})
    EXPECT_EQ(first, "/tmp/tidemark-7/tidemark");
  const std::string longest = FoldersOf(7, ("/" + std::string(81, 'x')).c_str()).front();
  EXPECT_LT((longest + kJobSocket).size(), sizeof(sockaddr_un::sun_path));
}

TEST(MayServe, BelievesRootTheSameUserAndTheSystemFolder) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  uid_t peer = 1;
  EXPECT_TRUE(MayServe(ends[0], "/tmp/x", &peer));
  EXPECT_EQ(peer, geteuid());
  close(ends[0]);
  close(ends[1]);
  EXPECT_FALSE(MayServe(-1, "/run/tidemark/tidemarkd.sock", &peer)) << "no peer, no belief";
}

}  // namespace
}  // namespace tidemark::proto
