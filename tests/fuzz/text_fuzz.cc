// The daemon's texts as fuzz input: what is accepted must be written and read back unchanged.

#include <cstdio>
#include <cstdlib>
#include <string>

#include "daemon/byte_text.h"
#include "daemon/config.h"
#include "daemon/policy_text.h"

namespace tidemark::daemon {
namespace {

void Require(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "text fuzz: %s\n", what);
  std::abort();
}

void Policies(const std::string& text) {
  const absl::StatusOr<Policy> policy = ParsePolicy(text);
  if (!policy.ok()) return Require(!policy.status().message().empty(), "a refusal has a sentence");
  const absl::StatusOr<Policy> again = ParsePolicy(FormatPolicy(*policy));
  Require(again.ok() && FormatPolicy(*again) == FormatPolicy(*policy), "policy is read back");
}

void Settings(const std::string& text) {
  const Environment none = [](const std::string&) { return std::nullopt; };
  const Config defaults = DefaultConfig(0, none);
  Config config = defaults;
  if (!ApplyConfigText(text, &config).ok()) return;
  const std::string written = ConfigText(config, defaults);
  Config again = defaults;
  Require(ApplyConfigText(written, &again).ok() && ConfigText(again, defaults) == written,
          "settings are read back");
}

void ByteCounts(const std::string& text) {
  const absl::StatusOr<uint64_t> bytes = ParseBytes(text);
  if (bytes.ok()) Require(*ParseBytes(ExactBytes(*bytes)) == *bytes, "bytes are read back");
}

}  // namespace
}  // namespace tidemark::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tidemark::daemon::Policies(text);
  tidemark::daemon::Settings(text);
  tidemark::daemon::ByteCounts(text);
  return 0;
}
