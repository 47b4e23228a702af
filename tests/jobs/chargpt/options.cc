#include "tests/jobs/chargpt/options.h"

#include <charconv>
#include <cstring>
#include <string_view>

namespace chargpt {
namespace {

struct IntegerFlag {
  const char* name;
  int Options::*field;
  int least, most;
};
constexpr IntegerFlag kIntegerFlags[] = {
    {"--layers", &Options::layers, 1, 96}, {"--width", &Options::width, 4, 8192},
    {"--heads", &Options::heads, 1, 256},  {"--context", &Options::context, 2, 8192},
    {"--batch", &Options::batch, 1, 1024}, {"--steps", &Options::steps, 1, 1000000},
};

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// The whole of `text` as a number in [least, most].
template <typename T>
bool ParseNumber(std::string_view text, T least, T most, T* value) {
  T parsed{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, parsed);
  if (error != std::errc() || stop != end || !(parsed >= least && parsed <= most)) return false;
  *value = parsed;
  return true;
}

std::string ApplySize(std::string_view size, Options* options) {
  if (size == "tiny") {
    options->layers = 8, options->width = 16, options->heads = 4, options->context = 512;
    options->batch = 1, options->steps = 3, options->learning_rate = 0.003;
  } else if (size == "demo") {
    options->layers = 4, options->width = 64, options->heads = 4, options->context = 512;
    options->batch = 8, options->steps = 32, options->learning_rate = 0.006;
  } else {
    return "--size is " + Quoted(size) + "; it must be tiny or demo";
  }
  return "";
}

std::string ApplyValue(std::string_view flag, std::string_view value, Options* options) {
  for (const IntegerFlag& known : kIntegerFlags) {
    if (flag != known.name) continue;
    if (ParseNumber(value, known.least, known.most, &(options->*known.field))) return "";
    return std::string(flag) + " is " + Quoted(value) + "; it must be a whole number from " +
           std::to_string(known.least) + " to " + std::to_string(known.most);
  }
  if (flag == "--seed") {
    if (ParseNumber<uint64_t>(value, 0, UINT64_MAX, &options->seed)) return "";
    return "--seed is " + Quoted(value) + "; it must be a whole number from 0 to 2^64 - 1";
  }
  if (flag == "--lr") {
    if (ParseNumber(value, 1e-9, 1.0, &options->learning_rate)) return "";
    return "--lr is " + Quoted(value) + "; it must be a number from 1e-9 to 1";
  }
  if (flag == "--text") {
    options->text = value;
    return "";
  }
  if (flag == "--size") return "";
  return "unknown flag " + Quoted(flag) + "; see chargpt --help";
}

// Calls visit(flag, value) for each flag that takes a value; returns its first sentence.
template <typename Visit>
std::string ForEachValue(int argc, const char* const* argv, Options* options, Visit visit) {
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    if (flag == "--quiet") {
      options->quiet = true;
      continue;
    }
    if (flag == "--help") {
      options->help = true;
      continue;
    }
    std::string_view value;
    if (const size_t equals = flag.find('='); equals != std::string_view::npos) {
      value = flag.substr(equals + 1);
      flag = flag.substr(0, equals);
    } else if (i + 1 < argc && flag.starts_with("--")) {
      value = argv[++i];
    } else if (flag.starts_with("--")) {
      return std::string(flag) + " needs a value; see chargpt --help";
    }
    if (std::string error = visit(flag, value); !error.empty()) return error;
  }
  return "";
}

// What the kernels count in 32 bits, and what a grid can hold.
std::string TooLarge(const Options& options) {
  const double rows = 1.0 * options.batch * options.context;
  if (options.batch * options.heads > 65535) {
    return "--batch " + std::to_string(options.batch) + " with --heads " +
           std::to_string(options.heads) + " is too large; their product must be at most 65535";
  }
  if (rows * options.heads > INT32_MAX || rows * options.width * 4 > INT32_MAX || rows > 4194304) {
    return "--batch " + std::to_string(options.batch) + " with --context " +
           std::to_string(options.context) +
           " is too large; batch * context must be at most 4194304, and 4 * width times that "
           "below 2^31";
  }
  return "";
}

}  // namespace

std::string ParseOptions(int argc, const char* const* argv, Options* options) {
  ApplySize("demo", options);
  std::string error =
      ForEachValue(argc, argv, options, [options](std::string_view flag, std::string_view value) {
        return flag == "--size" ? ApplySize(value, options) : std::string();
      });
  if (!error.empty()) return error;
  error =
      ForEachValue(argc, argv, options, [options](std::string_view flag, std::string_view value) {
        return ApplyValue(flag, value, options);
      });
  if (!error.empty() || options->help) return error;
  if (options->width % options->heads != 0) {
    return "--width is " + std::to_string(options->width) + " and --heads is " +
           std::to_string(options->heads) + "; the width must be a multiple of the heads";
  }
  return TooLarge(*options);
}

const char* HelpText() {
  return "usage: chargpt [flags]\n"
         "Trains a character-level GPT with CUDA and prints the loss of each step.\n"
         "\n"
         "  --size tiny|demo   preset that the other flags change (default: demo)\n"
         "  --layers N         transformer layers, 1 to 96\n"
         "  --width N          width of the residual stream, 4 to 8192, a multiple of --heads\n"
         "  --heads N          attention heads, 1 to 256\n"
         "  --context N        characters per sequence, 2 to 8192\n"
         "  --batch N          sequences per step, 1 to 1024\n"
         "  --steps N          training steps, 1 to 1000000\n"
         "  --seed N           of weights and batches (default: 1)\n"
         "  --lr X             learning rate of AdamW, 1e-9 to 1\n"
         "  --text PATH        file, or folder of files (default: /usr/share/common-licenses)\n"
         "  --quiet            no line per step\n"
         "  --help             this text\n"
         "\n"
         "Exit status: 0 trained, 2 bad flag or text, 3 CUDA error.\n";
}

}  // namespace chargpt
