// Finding and opening a driver library: real files in a temporary directory, made from two
// libraries that export fake drivers.

#include "kernels/driver.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/driver_search.h"

namespace tidemark::kernels {
namespace {

namespace fs = std::filesystem;

class DriverFiles : public ::testing::Test {
 protected:
  DriverFiles() {
    std::string name = (fs::temp_directory_path() / "tidemark-driver-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~DriverFiles() override { fs::remove_all(root_); }

  // Copies the fake driver to root/folder/libcuda.so.1 and returns that path.
  std::string Place(const std::string& folder, const char* library = FAKE_DRIVER) {
    fs::create_directories(root_ / folder);
    const fs::path path = root_ / folder / "libcuda.so.1";
    fs::copy_file(library, path);
    return path.string();
  }
  std::string Folder(const std::string& folder) { return (root_ / folder).string(); }

  static std::string Search(const DriverSearch& search) {
    char path[4096];
    return SearchDriver(search, path, sizeof(path)) ? path : "";
  }

  fs::path root_;
};

// A loader cache as ldconfig writes it, with one entry per (name, path).
std::string LoaderCache(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string strings;
  std::string table;
  const uint32_t strings_at = 48 + 24 * entries.size();
  const auto put = [](std::string* out, uint32_t value) {
    out->append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  for (const auto& [name, path] : entries) {
    put(&table, 0x0303);
    put(&table, strings_at + strings.size());
    strings += name + '\0';
    put(&table, strings_at + strings.size());
    strings += path + '\0';
    table.append(12, '\0');
  }
  std::string cache = "glibc-ld.so.cache1.1";
  put(&cache, entries.size());
  put(&cache, strings.size());
  cache.append(20, '\0');
  return cache + table + strings;
}

TEST_F(DriverFiles, ExplicitPathWinsEvenWhenMissing) {
  const std::string listed = Place("listed");
  DriverSearch search;
  search.library_path = listed.c_str();
  search.explicit_path = "/nowhere/libcuda.so.1";
  EXPECT_EQ(Search(search), "/nowhere/libcuda.so.1");
}

TEST_F(DriverFiles, LibraryPathIsSearchedInOrder) {
  const std::string second = Place("second");
  const std::string third = Place("third");
  const std::string list =
      Folder("first") + "::relative:" + Folder("second") + ":" + Folder("third");
  DriverSearch search;
  search.library_path = list.c_str();
  EXPECT_EQ(Search(search), second);
}

TEST_F(DriverFiles, RelativeLibraryPathIsAnsweredAsAnAbsolutePath) {
  Place("first");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(Folder("first")).parent_path());
  const DriverSearch search{.library_path = "first"};
  char path[PATH_MAX];
  const bool found = SearchDriver(search, path, sizeof(path));
  std::filesystem::current_path(before);
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::filesystem::path(path).is_absolute());
}

TEST_F(DriverFiles, OwnLibraryIsPassedOverUnderAnyName) {
  const std::string own = Place("own");
  const std::string real = Place("real");
  fs::create_directories(Folder("link"));
  fs::create_symlink(own, Folder("link") + "/libcuda.so.1");
  const std::string list = Folder("link") + ":" + Folder("own") + ":" + Folder("real");
  DriverSearch search;
  search.library_path = list.c_str();
  search.skip = own.c_str();
  search.explicit_path = own.c_str();
  EXPECT_EQ(Search(search), real);
}

TEST_F(DriverFiles, StubsAndForeignFilesArePassedOver) {
  Place("lib64/stubs");
  fs::create_directories(Folder("text"));
  std::ofstream(Folder("text") + "/libcuda.so.1") << "GROUP ( libcuda.so )\n";
  const std::string real = Place("real");
  const std::string list = Folder("lib64/stubs/") + ":" + Folder("text");
  const std::string usual = Folder("real");
  const char* const directories[] = {usual.c_str(), nullptr};
  DriverSearch search;
  search.library_path = list.c_str();
  search.directories = directories;
  EXPECT_EQ(Search(search), real);
}

TEST_F(DriverFiles, LoaderCacheIsTheLastResort) {
  const std::string real = Place("cached");
  const std::string cache = Folder("ld.so.cache");
  std::ofstream(cache, std::ios::binary) << LoaderCache({{"libc.so.6", "/lib/libc.so.6"},
                                                         {"libcuda.so.1", "/gone/libcuda.so.1"},
                                                         {"libcuda.so.1", real}});
  DriverSearch search;
  search.cache_file = cache.c_str();
  EXPECT_EQ(Search(search), real);
}

TEST_F(DriverFiles, DamagedLoaderCacheFindsNothing) {
  const std::string real = Place("cached");
  const std::string whole = LoaderCache({{"libcuda.so.1", real}});
  const std::string cache = Folder("ld.so.cache");
  DriverSearch search;
  search.cache_file = cache.c_str();
  for (size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(cache, std::ios::binary | std::ios::trunc) << whole.substr(0, length);
    EXPECT_EQ(Search(search), "") << length;
  }
  std::string wrong = whole;
  std::memset(wrong.data() + 20, 0xff, 4);
  std::memset(wrong.data() + 52, 0xff, 8);
  std::ofstream(cache, std::ios::binary | std::ios::trunc) << wrong;
  EXPECT_EQ(Search(search), "");
}

TEST_F(DriverFiles, TooSmallABufferFindsNothing) {
  const std::string real = Place("real");
  const std::string list = Folder("real");
  DriverSearch search;
  search.library_path = list.c_str();
  std::vector<char> path(real.size());
  EXPECT_FALSE(SearchDriver(search, path.data(), path.size()));
  path.resize(real.size() + 1);
  EXPECT_TRUE(SearchDriver(search, path.data(), path.size()));
  EXPECT_EQ(real, path.data());
}

TEST_F(DriverFiles, TableIsFilledFromTheOpenedLibrary) {
  Driver driver;
  ASSERT_EQ(OpenDriver(Place("real").c_str(), &driver), nullptr);
  ASSERT_NE(driver.library, nullptr);
  EXPECT_EQ(reinterpret_cast<void*>(driver.cuMemAlloc), dlsym(driver.library, "cuMemAlloc_v2"));
  EXPECT_EQ(driver.cuInit(0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(driver.cuFuncGetParamInfo, nullptr);
}

TEST_F(DriverFiles, MissingRequiredFunctionIsNamedAndChangesNothing) {
  Driver driver;
  const std::string path = Place("other", FAKE_DRIVER_INCOMPLETE);
  const char* sentence = OpenDriver(path.c_str(), &driver);
  ASSERT_NE(sentence, nullptr);
  EXPECT_NE(std::strstr(sentence, path.c_str()), nullptr) << sentence;
  EXPECT_NE(std::strstr(sentence, "lacks cuInit"), nullptr) << sentence;
  EXPECT_EQ(driver.library, nullptr);
  EXPECT_EQ(driver.cuInit, nullptr);
}

TEST_F(DriverFiles, UnopenableLibraryIsOneSentence) {
  Driver driver;
  for (const char* path : {"/nowhere/line\nbreak.so", "libcuda.so.1", ""}) {
    const char* sentence = OpenDriver(path, &driver);
    ASSERT_NE(sentence, nullptr);
    EXPECT_EQ(std::strchr(sentence, '\n'), nullptr) << sentence;
  }
}

}  // namespace
}  // namespace tidemark::kernels
