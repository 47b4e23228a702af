// Stands in for GoogleTest on machines with a GPU and without that library: the subset that
// tests/contract uses (TEST, TEST_F, EXPECT_*, ASSERT_*, FAIL, SKIP, SCOPED_TRACE), with the same
// meaning and a main() of its own. Not a test framework: use the real one wherever it is installed.

#ifndef TIDEMARK_TESTS_GPU_MINITEST_GTEST_H_
#define TIDEMARK_TESTS_GPU_MINITEST_GTEST_H_

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace testing {

class Test {
 public:
  virtual ~Test() = default;
  virtual void SetUp() {}
  virtual void TearDown() {}
  virtual void TestBody() = 0;
};

namespace mini {

struct Case {
  std::string name;
  std::function<Test*()> make;
};

struct State {
  std::vector<Case> cases;
  std::vector<std::string> trace;
  bool failed = false;
  bool fatal = false;
  bool skipped = false;
};

inline State& Global() {
  static State state;
  return state;
}

inline bool Register(const char* suite, const char* name, std::function<Test*()> make) {
  Global().cases.push_back({std::string(suite) + "." + name, std::move(make)});
  return true;
}

// Collects the message after a macro; assignment gives it the lowest precedence, as in GoogleTest.
class Message {
 public:
  template <typename T>
  Message& operator<<(const T& value) {
    text_ << value;
    return *this;
  }
  std::string str() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

enum class Kind { kNonFatal, kFatal, kSkip };

class Reporter {
 public:
  Reporter(Kind kind, const char* file, int line, std::string what)
      : kind_(kind),
        where_(std::string(file) + ":" + std::to_string(line)),
        what_(std::move(what)) {}
  void operator=(const Message& message) const {
    State& state = Global();
    std::cout << where_ << ": " << what_ << " " << message.str() << "\n";
    for (const std::string& trace : state.trace) std::cout << "  while " << trace << "\n";
    if (kind_ == Kind::kSkip) {
      state.skipped = true;
    } else {
      state.failed = true;
      state.fatal = state.fatal || kind_ == Kind::kFatal;
    }
  }

 private:
  Kind kind_;
  std::string where_;
  std::string what_;
};

template <typename T>
std::string Show(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else if constexpr (std::is_null_pointer_v<T>) {
    return "nullptr";
  } else if constexpr (requires(std::ostream & out) { out << value; }) {
    std::ostringstream out;
    out << value;
    return out.str();
  } else {
    return "(" + std::to_string(sizeof(T)) + "-byte value)";
  }
}

class Trace {
 public:
  explicit Trace(const Message& message) { Global().trace.push_back(message.str()); }
  ~Trace() { Global().trace.pop_back(); }
};

inline int RunAll() {
  int failures = 0;
  int skips = 0;
  for (const Case& test : Global().cases) {
    State& state = Global();
    state.failed = state.fatal = state.skipped = false;
    std::cout << "[ RUN      ] " << test.name << std::endl;
    Test* body = test.make();
    body->SetUp();
    if (!state.fatal && !state.skipped) body->TestBody();
    body->TearDown();
    delete body;
    failures += state.failed;
    skips += state.skipped && !state.failed;
    const char* verdict = state.failed    ? "[  FAILED  ] "
                          : state.skipped ? "[  SKIPPED ] "
                                          : "[       OK ] ";
    std::cout << verdict << test.name << std::endl;
  }
  std::cout << Global().cases.size() - failures - skips << " passed, " << failures << " failed, "
            << skips << " skipped\n";
  return failures == 0 ? 0 : 1;
}

}  // namespace mini

inline void InitGoogleTest(int*, char**) {}

}  // namespace testing

#define RUN_ALL_TESTS() ::testing::mini::RunAll()

#define MINITEST_CLASS(suite, name) suite##_##name##_Test
#define MINITEST_DEFINE(suite, name, parent)                                                  \
  class MINITEST_CLASS(suite, name) : public parent {                                         \
    void TestBody() override;                                                                 \
  };                                                                                          \
  [[maybe_unused]] static const bool suite##_##name##_registered = ::testing::mini::Register( \
      #suite, #name, []() -> ::testing::Test* { return new MINITEST_CLASS(suite, name); });   \
  void MINITEST_CLASS(suite, name)::TestBody()
#define TEST(suite, name) MINITEST_DEFINE(suite, name, ::testing::Test)
#define TEST_F(suite, name) MINITEST_DEFINE(suite, name, suite)

#define MINITEST_REPORT(kind, what)                                                  \
  ::testing::mini::Reporter(::testing::mini::Kind::kind, __FILE__, __LINE__, what) = \
      ::testing::mini::Message()
#define MINITEST_TRUE(kind, leave, condition, expected) \
  if (condition) {                                      \
  } else                                                \
    leave MINITEST_REPORT(kind, "expected " #expected ": " #condition ";")

#define EXPECT_TRUE(c) MINITEST_TRUE(kNonFatal, , (c), true)
#define EXPECT_FALSE(c) MINITEST_TRUE(kNonFatal, , !(c), false)
#define ASSERT_TRUE(c) MINITEST_TRUE(kFatal, return, (c), true)
#define ASSERT_FALSE(c) MINITEST_TRUE(kFatal, return, !(c), false)

#define MINITEST_COMPARE(kind, leave, op, a, b)                                              \
  if (auto minitest_text = [](const auto& x, const auto& y) -> std::string {                 \
        if (x op y) return {};                                                               \
        return "expected " #a " " #op " " #b ", got " + ::testing::mini::Show(x) + " and " + \
               ::testing::mini::Show(y) + ";";                                               \
      }((a), (b));                                                                           \
      minitest_text.empty()) {                                                               \
  } else                                                                                     \
    leave MINITEST_REPORT(kind, minitest_text)

#define EXPECT_EQ(a, b) MINITEST_COMPARE(kNonFatal, , ==, a, b)
#define EXPECT_NE(a, b) MINITEST_COMPARE(kNonFatal, , !=, a, b)
#define EXPECT_LT(a, b) MINITEST_COMPARE(kNonFatal, , <, a, b)
#define EXPECT_LE(a, b) MINITEST_COMPARE(kNonFatal, , <=, a, b)
#define EXPECT_GT(a, b) MINITEST_COMPARE(kNonFatal, , >, a, b)
#define EXPECT_GE(a, b) MINITEST_COMPARE(kNonFatal, , >=, a, b)
#define ASSERT_EQ(a, b) MINITEST_COMPARE(kFatal, return, ==, a, b)
#define ASSERT_NE(a, b) MINITEST_COMPARE(kFatal, return, !=, a, b)
#define ASSERT_LT(a, b) MINITEST_COMPARE(kFatal, return, <, a, b)
#define ASSERT_LE(a, b) MINITEST_COMPARE(kFatal, return, <=, a, b)
#define ASSERT_GT(a, b) MINITEST_COMPARE(kFatal, return, >, a, b)
#define ASSERT_GE(a, b) MINITEST_COMPARE(kFatal, return, >=, a, b)
#define EXPECT_STREQ(a, b) EXPECT_EQ(std::string(a), std::string(b))
#define ASSERT_STREQ(a, b) ASSERT_EQ(std::string(a), std::string(b))
#define EXPECT_STRNE(a, b) EXPECT_NE(std::string(a), std::string(b))
#define EXPECT_NEAR(a, b, tolerance) EXPECT_LE(std::fabs((a) - (b)), (tolerance))
#define EXPECT_FLOAT_EQ(a, b) EXPECT_NEAR(a, b, 4e-7 * (1 + std::fabs(b)))

#define FAIL() return MINITEST_REPORT(kFatal, "failed:")
#define ADD_FAILURE() MINITEST_REPORT(kNonFatal, "failed:")
#define SUCCEED() static_cast<void>(0)
#define GTEST_SKIP() return MINITEST_REPORT(kSkip, "skipped:")
#define MINITEST_JOIN2(a, b) a##b
#define MINITEST_JOIN(a, b) MINITEST_JOIN2(a, b)
#define SCOPED_TRACE(message)                                                                     \
  const ::testing::mini::Trace MINITEST_JOIN(minitest_trace, __LINE__)(::testing::mini::Message() \
                                                                       << message)

#endif  // TIDEMARK_TESTS_GPU_MINITEST_GTEST_H_
