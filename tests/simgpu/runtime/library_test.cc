// What simgpu's runtime is as a library: its names, their version, what it loads and when. Works on
// the file by dlopen; links to none of it. LD_LIBRARY_PATH names the folder of both libraries.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

void* Runtime() {
  static void* library = dlopen("libcudart.so.13", RTLD_NOW);
  return library;
}

bool IsLoaded(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

std::vector<std::string> Needed() {
  link_map* map = nullptr;
  std::vector<std::string> needed;
  if (dlinfo(Runtime(), RTLD_DI_LINKMAP, &map) != 0) return needed;
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED) needed.emplace_back(strings + entry->d_un.d_val);
  }
  return needed;
}

TEST(RuntimeLibrary, LoadingItOpensNoDriver) {
  ASSERT_NE(Runtime(), nullptr) << dlerror();
  EXPECT_FALSE(IsLoaded("libcuda.so.1"));
  for (const std::string& name : Needed()) {
    EXPECT_EQ(name.find("libcuda."), std::string::npos) << "needs " << name;
  }
}

TEST(RuntimeLibrary, ExportsEveryNameOfTheVendorsUnderItsVersion) {
  std::ifstream list(EXPORTED_NAMES);
  ASSERT_TRUE(list.is_open()) << "cannot read " << EXPORTED_NAMES;
  std::string name;
  int count = 0;
  while (std::getline(list, name)) {
    EXPECT_NE(dlvsym(Runtime(), name.c_str(), "libcudart.so.13"), nullptr) << name;
    ++count;
  }
  EXPECT_EQ(count, 422);
}

TEST(RuntimeLibrary, QuestionsWithoutADeviceOpenNoDriver) {
  using Version = int (*)(int*);
  using Name = const char* (*)(int);
  using Last = int (*)();
  int version = 0;
  EXPECT_EQ(reinterpret_cast<Version>(dlsym(Runtime(), "cudaRuntimeGetVersion"))(&version), 0);
  EXPECT_EQ(version, 13000);
  EXPECT_STREQ(reinterpret_cast<Name>(dlsym(Runtime(), "cudaGetErrorName"))(2),
               "cudaErrorMemoryAllocation");
  EXPECT_EQ(reinterpret_cast<Last>(dlsym(Runtime(), "cudaGetLastError"))(), 0);
  EXPECT_FALSE(IsLoaded("libcuda.so.1"));
}

TEST(RuntimeLibrary, WhatIsNotImplementedSaysSo) {
  using Any = int (*)();
  using Last = int (*)();
  auto stub = reinterpret_cast<Any>(dlsym(Runtime(), "cudaMallocArray"));
  ASSERT_NE(stub, nullptr);
  EXPECT_EQ(stub(), 801);  // cudaErrorNotSupported
  EXPECT_EQ(reinterpret_cast<Last>(dlsym(Runtime(), "cudaGetLastError"))(), 801);
}

TEST(RuntimeLibrary, TheFirstDeviceCallOpensTheDriver) {
  using Count = int (*)(int*);
  int count = 0;
  EXPECT_EQ(reinterpret_cast<Count>(dlsym(Runtime(), "cudaGetDeviceCount"))(&count), 0);
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(IsLoaded("libcuda.so.1"));
}

}  // namespace
