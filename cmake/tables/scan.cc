// See scan.h.

#include "cmake/tables/scan.h"

namespace tables {

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool Cursor::Literal(std::string_view literal) {
  if (text_.substr(at_, literal.size()) != literal) return false;
  at_ += literal.size();
  return true;
}

bool Cursor::Spaces() {
  const size_t before = at_;
  SkipSpaces();
  return at_ != before;
}

void Cursor::SkipSpaces() {
  while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
}

std::string_view Cursor::Word() {
  const size_t begin = at_;
  while (at_ < text_.size() && IsWordCharacter(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

std::string_view Cursor::Digits() {
  const size_t begin = at_;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  return text_.substr(begin, at_ - begin);
}

std::optional<std::string_view> Cursor::NameWithPrefix(std::string_view prefix) {
  Cursor ahead = *this;
  const std::string_view word = ahead.Word();
  if (word.size() <= prefix.size() || word.substr(0, prefix.size()) != prefix) return std::nullopt;
  const char next = word[prefix.size()];
  if (next < 'A' || next > 'Z') return std::nullopt;
  *this = ahead;
  return word;
}

std::optional<std::string_view> Cursor::UpToAny(std::string_view ends) {
  const size_t end = text_.find_first_of(ends, at_);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view found = text_.substr(at_, end - at_);
  at_ = end;
  return found;
}

std::vector<size_t> PlacesOf(std::string_view word, std::string_view text) {
  std::vector<size_t> places;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    if (at == 0 || !IsWordCharacter(text[at - 1])) places.push_back(at);
  }
  return places;
}

std::vector<size_t> LineStartsWith(std::string_view literal, std::string_view text) {
  std::vector<size_t> places;
  for (size_t at = text.find(literal); at != std::string_view::npos;
       at = text.find(literal, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') places.push_back(at);
  }
  return places;
}

std::string OneSpaced(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (!IsSpace(c)) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

void ReplaceAll(std::string* text, std::string_view from, std::string_view to) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at)) {
    text->replace(at, from.size(), to);
    at += to.size();
  }
}

bool TakeSuffix(std::string_view* text, std::string_view suffix) {
  if (text->size() < suffix.size() || text->substr(text->size() - suffix.size()) != suffix) {
    return false;
  }
  text->remove_suffix(suffix.size());
  return true;
}

}  // namespace tables
