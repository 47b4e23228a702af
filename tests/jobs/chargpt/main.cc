// chargpt: trains a character-level GPT on a text, through the CUDA runtime API alone.

#include <cinttypes>
#include <cstdio>

#include "tests/jobs/chargpt/check.h"
#include "tests/jobs/chargpt/options.h"
#include "tests/jobs/chargpt/text.h"
#include "tests/jobs/chargpt/trainer.h"

namespace chargpt {
namespace {

int BadInput(const std::string& sentence) {
  std::fprintf(stderr, "chargpt: %s\n", sentence.c_str());
  return kExitBadInput;
}

int Train(const Options& options, const Text& text) {
  Trainer trainer(options, text);
  float loss = 0;
  for (int step = 1; step <= options.steps; ++step) {
    const StepResult result = trainer.Step();
    loss = result.loss;
    if (options.quiet) continue;
    std::printf("step %d loss %.6f device_ms %.3f\n", step, loss, result.device_milliseconds);
    std::fflush(stdout);
  }
  std::printf("unigram_entropy %.6f\n", UnigramEntropy(text));
  std::printf("final_loss %.6f\n", loss);
  std::printf("peak_requested_bytes %zu\n", requested_bytes.peak);
  std::printf("checksum %016" PRIx64 "\n", trainer.Checksum());
  return 0;
}

int Run(int argc, char** argv) {
  Options options;
  std::string error = ParseOptions(argc, argv, &options);
  if (!error.empty()) return BadInput(error);
  if (options.help) {
    std::fputs(HelpText(), stdout);
    return 0;
  }
  Text text;
  error = ReadText(options.text, &text);
  if (!error.empty()) return BadInput(error);
  if (text.symbols.size() < static_cast<size_t>(options.context) + 2) {
    return BadInput("the text " + options.text + " has " + std::to_string(text.symbols.size()) +
                    " characters; --context " + std::to_string(options.context) +
                    " needs at least " + std::to_string(options.context + 2));
  }
  return Train(options, text);
}

}  // namespace
}  // namespace chargpt

int main(int argc, char** argv) { return chargpt::Run(argc, argv); }
