// Which functions a driver exports: what cuda.h declares under every name that its macros give.

#include "cmake/tables/scan.h"
#include "cmake/tables/tables.h"

namespace tables {
namespace {

constexpr size_t kFewestFunctions = 300;

// `CUresult cuName(parameters);` at the cursor's "CUresult".
void ReadDeclaration(Cursor cursor, DriverApi* api) {
  cursor.Literal("CUresult");
  if (!cursor.Spaces()) return;
  const auto name = cursor.NameWithPrefix("cu");
  if (!name) return;
  cursor.SkipSpaces();
  if (!cursor.Literal("(")) return;
  const auto inside = cursor.UpToAny(";{}");
  if (!inside || !cursor.Literal(";")) return;
  std::string parameters = OneSpaced(*inside);
  if (parameters.empty() || parameters.back() != ')') return;
  parameters.pop_back();
  api->emplace(*name, OneSpaced(parameters));
}

std::string Column(std::string_view* line) {
  const size_t tab = line->find('\t');
  std::string column(line->substr(0, tab));
  line->remove_prefix(tab == std::string_view::npos ? line->size() : tab + 1);
  return column;
}

}  // namespace

DriverApi ReadDriverApi(const std::vector<std::string>& preprocessed) {
  DriverApi api;
  for (const std::string& text : preprocessed) {
    for (const size_t at : PlacesOf("CUresult", text)) ReadDeclaration(Cursor(text, at), &api);
  }
  if (api.size() < kFewestFunctions) {
    throw BadInput("only " + std::to_string(api.size()) +
                   " driver functions found, expected at least 300: not the text of a cuda.h");
  }
  return api;
}

std::string WriteApi(const DriverApi& api) {
  std::string out;
  for (const auto& [name, parameters] : api) out += name + "\tCUresult\t" + parameters + "\n";
  return out;
}

DriverApi ParseApi(std::string_view text) {
  DriverApi api;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string name = Column(&line);
    Column(&line);
    if (!name.empty()) api.emplace(name, line);
  }
  return api;
}

std::string FakeNames(const DriverApi& api, std::string_view handwritten) {
  DriverApi left = api;
  for (const size_t at : PlacesOf("EXPORT", handwritten)) {
    Cursor cursor(handwritten, at);
    if (!cursor.Literal("EXPORT CUresult ")) continue;
    const auto name = cursor.NameWithPrefix("cu");
    if (name && cursor.Literal("(")) left.erase(std::string(*name));
  }
  std::string out;
  for (const auto& [name, parameters] : left) out += "FAKE(" + name + ")\n";
  return out;
}

}  // namespace tables
