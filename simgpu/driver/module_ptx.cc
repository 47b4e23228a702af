// Reads kernels with their parameters, and variables, from PTX text: `.entry`, `.global` and
// `.const` directives as the PTX ISA documents them. Instructions are not looked at.

#include <cctype>
#include <cstdlib>

#include "simgpu/driver/module.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

// Words and punctuation of PTX, without comments.
class Tokens {
 public:
  explicit Tokens(const std::string& text) : text_(text) { Next(); }

  const std::string& token() const { return token_; }
  bool end() const { return token_.empty(); }

  void Next() {
    SkipSpace();
    token_.clear();
    if (at_ >= text_.size()) return;
    if (!IsWord(text_[at_])) {
      token_ = text_[at_++];
      return;
    }
    while (at_ < text_.size() && IsWord(text_[at_])) token_ += text_[at_++];
  }

 private:
  static bool IsWord(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '$' ||
           c == '%';
  }
  void SkipSpace() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
        ++at_;
      } else if (text_.compare(at_, 2, "//") == 0) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.compare(at_, 2, "/*") == 0) {
        const size_t close = text_.find("*/", at_ + 2);
        at_ = close == std::string::npos ? text_.size() : close + 2;
      } else {
        return;
      }
    }
  }

  const std::string& text_;
  size_t at_ = 0;
  std::string token_;
};

// Bytes of a fundamental type: ".u64" -> 8, ".b8" -> 1, ".f16x2" -> 4; 0 for anything else.
size_t TypeBytes(const std::string& type) {
  if (type.size() < 3 || type[0] != '.' || std::string("busf").find(type[1]) == std::string::npos) {
    return 0;
  }
  char* rest = nullptr;
  const size_t bits = std::strtoul(type.c_str() + 2, &rest, 10);
  const size_t count = std::string(rest) == "x2" ? 2 : 1;
  if (bits % 8 != 0 || (count == 1 && *rest != '\0')) return 0;
  return bits / 8 * count;
}

bool IsPointerQualifier(const std::string& token) {
  return token == ".ptr" || token == ".global" || token == ".const" || token == ".shared" ||
         token == ".local";
}

// `.param .align 8 .b8 name[16]` or `.param .u64 .ptr .global .align 4 name`, from ".param" on.
bool ReadParam(Tokens* in, Kernel* kernel) {
  size_t type_bytes = 0;
  size_t align = 0;
  bool pointer = false;
  std::string name;
  for (in->Next(); !in->end() && in->token() != "," && in->token() != ")" && in->token() != "[";
       in->Next()) {
    if (in->token() == ".align") {
      in->Next();
      // Of a `.ptr` parameter this is the pointee's alignment.
      if (!pointer) align = std::strtoul(in->token().c_str(), nullptr, 10);
    } else if (IsPointerQualifier(in->token())) {
      pointer = true;
    } else if (type_bytes == 0) {
      type_bytes = TypeBytes(in->token());
    } else {
      name = in->token();
    }
  }
  size_t count = 1;
  if (in->token() == "[") {
    in->Next();
    count = std::strtoul(in->token().c_str(), nullptr, 10);
    in->Next();
    in->Next();
  }
  if (type_bytes == 0 || count == 0 || name.empty()) return false;
  if (align == 0) align = type_bytes;
  KernelParam param;
  param.size = type_bytes * count;
  param.offset = (kernel->param_bytes + align - 1) / align * align;
  kernel->param_bytes = param.offset + param.size;
  kernel->params.push_back(param);
  return true;
}

// From the kernel's name on, to the body's opening brace.
std::string ReadEntry(Tokens* in, Kernel* kernel) {
  kernel->name = in->token();
  in->Next();
  if (in->token() == "(") {
    in->Next();
    while (in->token() == ".param" || in->token() == ",") {
      if (in->token() == ",") {
        in->Next();
      } else if (!ReadParam(in, kernel)) {
        return "a parameter of kernel " + kernel->name + " has no type or name";
      }
    }
    if (in->token() != ")") return "the parameters of kernel " + kernel->name + " do not end";
    in->Next();
  }
  while (!in->end() && in->token() != "{") {
    const bool limit = in->token() == ".maxntid" || in->token() == ".reqntid";
    in->Next();
    if (!limit) continue;
    int threads = std::atoi(in->token().c_str());
    in->Next();
    while (in->token() == ",") {
      in->Next();
      threads *= std::atoi(in->token().c_str());
      in->Next();
    }
    kernel->max_threads = threads;
  }
  return "";
}

// `.align 4 .b8 name[2][8] = {1, 0x2}`, from the token after `.global` or `.const` to the
// semicolon.
struct Declaration {
  std::string name;
  size_t element_bytes = 0;
  size_t count = 1;
  std::vector<std::string> values;
};

Declaration ReadDeclaration(Tokens* in) {
  Declaration declared;
  bool values = false;
  for (; !in->end() && in->token() != ";"; in->Next()) {
    const std::string& token = in->token();
    if (token == "=") {
      values = true;
    } else if (values) {
      if (token != "{" && token != "}" && token != ",") declared.values.push_back(token);
    } else if (token == ".align") {
      in->Next();
    } else if (token == "[") {
      in->Next();
      declared.count *= std::strtoul(in->token().c_str(), nullptr, 10);
      in->Next();
    } else if (token[0] != '.') {
      declared.name = token;
    } else if (declared.element_bytes == 0) {
      declared.element_bytes = TypeBytes(token);
    }
  }
  return declared;
}

// An element as PTX writes it: a decimal, octal or hexadecimal number, or the bits of a float.
bool AppendValue(const std::string& text, size_t bytes, std::vector<unsigned char>* out) {
  const bool bits = text.size() > 2 && text[0] == '0' && std::string("fFdD").find(text[1]) < 4;
  char* rest = nullptr;
  const unsigned long long value =
      std::strtoull(text.c_str() + (bits ? 2 : 0), &rest, bits ? 16 : 0);
  const bool unsigned_mark = *rest == 'U' && rest[1] == '\0';
  if (*rest != '\0' && !unsigned_mark) return false;
  for (size_t i = 0; i < bytes; ++i) {
    out->push_back(i < 8 ? static_cast<unsigned char>(value >> (8 * i)) : 0);
  }
  return true;
}

// Two's complement of the last element.
void Negate(std::vector<unsigned char>* bytes, size_t element_bytes) {
  unsigned carry = 1;
  for (size_t i = bytes->size() - element_bytes; i < bytes->size(); ++i) {
    const unsigned flipped = (~(*bytes)[i] & 0xffu) + carry;
    (*bytes)[i] = static_cast<unsigned char>(flipped);
    carry = flipped >> 8;
  }
}

void AddDeclared(const Declaration& declared, Variables* variables) {
  const size_t bytes = declared.element_bytes * declared.count;
  if (declared.name.empty() || bytes == 0) return;
  const auto [added, is_new] = variables->try_emplace(declared.name);
  if (!is_new) return;  // known from a twin, or from the text for another architecture
  added->second.bytes = bytes;
  std::vector<unsigned char> initial;
  bool negative = false;
  for (const std::string& value : declared.values) {
    // The minus of a negative number is a token of its own.
    if (value == "-") {
      negative = true;
      continue;
    }
    if (!AppendValue(value, declared.element_bytes, &initial)) {
      LogVerbose("device variable %s begins as zeros: its initial value %s is no number",
                 declared.name.c_str(), value.c_str());
      return;
    }
    if (negative) Negate(&initial, declared.element_bytes);
    negative = false;
  }
  added->second.initial = std::move(initial);
}

}  // namespace

void ParsePtxVariables(const std::string& text, Variables* variables) {
  Tokens in(text);
  int depth = 0;
  bool external = false;
  while (!in.end()) {
    const std::string token = in.token();
    in.Next();
    if (token == "{" || token == "(") ++depth;
    if (token == "}" || token == ")") --depth;
    if (token == ".extern") external = true;
    if (token == ";") external = false;
    if (depth != 0 || (token != ".global" && token != ".const")) continue;
    const Declaration declared = ReadDeclaration(&in);
    if (!external) AddDeclared(declared, variables);
  }
}

std::string ParsePtx(const std::string& text, std::vector<Kernel>* kernels) {
  Tokens in(text);
  bool version = false;
  while (!in.end()) {
    const std::string token = in.token();
    in.Next();
    if (token == ".version") version = true;
    if (token != ".entry") continue;
    Kernel kernel;
    if (std::string error = ReadEntry(&in, &kernel); !error.empty()) return error;
    kernels->push_back(std::move(kernel));
  }
  return version ? "" : "the text has no .version directive, so it is not PTX";
}

}  // namespace simgpu
