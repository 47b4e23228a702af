#include "tests/jobs/chargpt/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace chargpt {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> FilesAt(const fs::path& path, std::error_code* error) {
  if (!fs::is_directory(path, *error)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, *error)) {
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::string ReadText(const std::string& path, Text* text) {
  std::error_code error;
  std::string bytes;
  for (const fs::path& file : FilesAt(path, &error)) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return "the text " + file.string() + " cannot be read";
    bytes.append(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (bytes.empty()) return "the text " + path + " is empty; a file or a folder of files is needed";
  std::array<int, 256> number;
  number.fill(-1);
  for (const unsigned char byte : bytes) number[byte] = 0;
  text->symbol_count = 0;
  for (int& n : number) {
    if (n == 0) n = text->symbol_count++;
  }
  text->symbols.clear();
  for (const unsigned char byte : bytes) text->symbols.push_back(number[byte]);
  return "";
}

double UnigramEntropy(const Text& text) {
  std::vector<double> counts(text.symbol_count);
  for (const int symbol : text.symbols) ++counts[symbol];
  double entropy = 0;
  for (const double count : counts) {
    const double p = count / text.symbols.size();
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace chargpt
