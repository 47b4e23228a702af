// Reading C text with a cursor: what the table maker needs of a regular expression, and no more. It
// is no parser of C. Thread rule: a cursor belongs to one thread; the text must outlive it.

#ifndef CMAKE_TABLES_SCAN_H_
#define CMAKE_TABLES_SCAN_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tables {

bool IsSpace(char c);
bool IsWordCharacter(char c);  // letter, digit or underscore

class Cursor {
 public:
  explicit Cursor(std::string_view text, size_t at = 0) : text_(text), at_(at) {}

  // Each moves past what it names and says whether it was there; if not, nothing moves.
  bool Literal(std::string_view literal);
  bool Spaces();  // at least one
  void SkipSpaces();
  std::string_view Word();  // empty when the next character belongs to no word
  std::string_view Digits();
  // A word that begins with `prefix`, directly followed by a capital letter: cu + M.
  std::optional<std::string_view> NameWithPrefix(std::string_view prefix);
  // The text up to the first of `ends`, which the cursor then stands on; nothing without one.
  std::optional<std::string_view> UpToAny(std::string_view ends);

  size_t at() const { return at_; }

 private:
  std::string_view text_;
  size_t at_;
};

// Where `word` stands as a whole word on its left side; whatever may follow it.
std::vector<size_t> PlacesOf(std::string_view word, std::string_view text);
// Where `literal` begins a line.
std::vector<size_t> LineStartsWith(std::string_view literal, std::string_view text);

// Runs of white space become one space; none is left at either end.
std::string OneSpaced(std::string_view text);
void ReplaceAll(std::string* text, std::string_view from, std::string_view to);
bool TakeSuffix(std::string_view* text, std::string_view suffix);

}  // namespace tables

#endif  // CMAKE_TABLES_SCAN_H_
