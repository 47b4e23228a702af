// Words for numbers, and tables. Threads: stateless.

#ifndef TIDEMARK_CLIENT_CLI_TEXT_H_
#define TIDEMARK_CLIENT_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tidemark::client {

// "1.50 GiB", "512.00 MiB", "17 B".
std::string HumanBytes(uint64_t bytes);
// For narrow columns: "1.5G", "512M", "17".
std::string ShortBytes(uint64_t bytes);
std::string HumanSeconds(double seconds);  // "1.2 s", "3 min 4 s", "2 h 5 min"

// Reads "4GiB", "512MiB", a number of bytes, or "40%" of `whole` where `whole` is not 0. Returns
// the sentence on what is wrong, or "".
std::string ParseBytes(const std::string& text, uint64_t whole, const std::string& flag,
                       uint64_t* bytes);

// "####......" of `width` cells, `share` of them filled.
std::string Bar(double share, int width);

class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.size() == 1; }
  // Columns as wide as their widest cell; cells that start with a digit are right-aligned.
  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_TEXT_H_
