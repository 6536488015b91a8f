#include "sim/scenario/scan.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include "sim/scenario/bounds.hpp"

namespace tpusim::scenario {
namespace {

class Scanner {
 public:
  Scanner(std::string_view text, const OnValue& on_value, DiagnosticSink& sink)
      : text_(text), on_value_(on_value), sink_(sink) {}

  bool run() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;  // a byte order mark, which some editors write
    skip_space();
    if (lost_) return false;
    if (end()) return lose(at_, "the scenario is empty; a JSON object is expected");
    value("", at_);
    if (lost_) return false;
    skip_space();
    if (!lost_ && !end()) lose(at_, fmt::format("{} after the end of the scenario", found()));
    return json_;
  }

 private:
  bool end() const { return at_ >= text_.size(); }
  char peek() const { return end() ? '\0' : text_[at_]; }

  std::string found() const {
    if (end()) return "the end of the text";
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte < 0x20 || byte >= 0x7F) return fmt::format("the byte 0x{:02x}", byte);
    return fmt::format("'{}'", text_[at_]);
  }

  void report(Code code, std::size_t offset, std::string message, std::string suggestion = {}) {
    if (code != Code::duplicate_key) json_ = false;
    const Place place = place_of(text_, offset);
    Diagnostic d;
    d.code = code;
    d.pointer = pointer_;
    d.message = std::move(message);
    d.suggestion = std::move(suggestion);
    d.line = place.line;
    d.column = place.column;
    sink_.add(std::move(d));
  }

  // The structure is lost: nothing after this place can be told.
  bool lose(std::size_t offset, std::string message, Code code = Code::syntax) {
    if (!lost_ && !stopped_) report(code, offset, std::move(message));
    lost_ = true;
    return false;
  }

  void skip_space() {
    for (;;) {
      while (!end() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
      if (peek() != '/') return;
      if (text_.substr(at_, 2) == "/*") {
        lose(at_, "a comment starts with //; /* */ is not allowed");
        return;
      }
      if (text_.substr(at_, 2) != "//") return;
      while (!end() && text_[at_] != '\n') ++at_;
    }
  }

  bool count(std::size_t offset) {
    if (++values_ > kMaxValues)
      return lose(offset, fmt::format("more than {} values and keys; a scenario has at most that many", kMaxValues),
                  Code::too_large);
    return true;
  }

  bool value(const std::string& pointer, std::size_t offset) {
    if (!count(offset)) return false;
    if (on_value_ && !on_value_(pointer, offset)) {
      stopped_ = lost_ = true;
      return false;
    }
    pointer_ = pointer;
    const char c = peek();
    if (c == '{' || c == '[') {
      if (++depth_ > kMaxDepth) return lose(at_, fmt::format("nested more than {} deep", kMaxDepth), Code::nesting);
      const bool ok = c == '{' ? object(pointer) : array(pointer);
      --depth_;
      return ok;
    }
    if (c == '"') {
      std::string ignored;
      return string(ignored);
    }
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return word();
    if (c == '\'') return lose(at_, "a string is written in double quotes");
    if (c == '+' || c == '.') return lose(at_, "a number starts with a digit or '-'");
    return lose(at_, fmt::format("a value is expected, {} found", found()));
  }

  // After a comma: a closing bracket is a fault of its own, and harmless to what follows.
  bool trailing_comma(char close, std::size_t comma) {
    if (peek() != close) return false;
    report(Code::syntax, comma, fmt::format("a comma before '{}'; leave it out", close));
    return true;
  }

  bool object(const std::string& pointer) {
    const std::size_t open = at_++;
    std::set<std::string> keys;
    skip_space();
    if (lost_) return false;
    if (peek() == '}') return ++at_, true;
    for (;;) {
      const std::size_t offset = at_;
      pointer_ = pointer;
      if (peek() != '"') {
        if (end()) return unclosed(open, '}');
        return lose(at_, fmt::format("a key in double quotes is expected, {} found", found()));
      }
      std::string key;
      if (!count(offset) || !string(key)) return false;
      const std::string here = pointer + "/" + escape_pointer(key);
      if (!keys.insert(key).second) {
        pointer_ = here;
        report(Code::duplicate_key, offset, fmt::format("the key \"{}\" is in this object twice", key));
      }
      if (keys.size() > kMaxMembers) return too_many(offset);
      skip_space();
      if (lost_) return false;
      if (peek() != ':') {
        if (end()) return unclosed(open, '}');
        return lose(at_, fmt::format("':' is expected after the key \"{}\", {} found", key, found()));
      }
      ++at_;
      skip_space();
      if (lost_) return false;
      if (end()) return unclosed(open, '}');
      if (!value(here, offset)) return false;
      pointer_ = pointer;
      if (!separator(open, '}')) return !lost_;
    }
  }

  bool array(const std::string& pointer) {
    const std::size_t open = at_++;
    skip_space();
    if (lost_) return false;
    if (peek() == ']') return ++at_, true;
    for (std::size_t i = 0;; ++i) {
      if (i >= kMaxMembers) return too_many(at_);
      if (end()) return unclosed(open, ']');
      if (!value(pointer + "/" + std::to_string(i), at_)) return false;
      pointer_ = pointer;
      if (!separator(open, ']')) return !lost_;
    }
  }

  // True when another member follows; false at the closing bracket, which is consumed, and when lost.
  bool separator(std::size_t open, char close) {
    skip_space();
    if (lost_) return false;
    if (peek() == close) return ++at_, false;
    if (end()) return unclosed(open, close);
    if (peek() != ',') return lose(at_, fmt::format("',' or '{}' is expected, {} found", close, found()));
    const std::size_t comma = at_++;
    skip_space();
    if (lost_) return false;
    if (trailing_comma(close, comma)) return ++at_, false;
    return true;
  }

  bool unclosed(std::size_t open, char close) {
    const Place place = place_of(text_, open);
    return lose(text_.size(), fmt::format("the text ends before the '{}' that closes line {}, column {}", close,
                                          place.line, place.column));
  }

  bool too_many(std::size_t offset) {
    return lose(offset, fmt::format("more than {} members in one object or array", kMaxMembers), Code::too_large);
  }

  static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  }

  bool hex4(unsigned& code) {
    code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = end() ? -1 : hex(text_[at_]);
      if (digit < 0) return false;
      code = code * 16 + static_cast<unsigned>(digit);
    }
    return true;
  }

  static void append_utf8(std::string& out, unsigned code) {
    const auto byte = [&out](unsigned b) { out += static_cast<char>(b); };
    if (code < 0x80) {
      byte(code);
    } else if (code < 0x800) {
      byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
    } else {
      byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F));
      byte(0x80 | (code & 0x3F));
    }
  }

  bool escape(std::string& out) {
    const std::size_t start = at_++;
    const char c = peek();
    ++at_;
    static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (c != 'u') {
      const std::size_t i = kFrom.find(c);
      if (c == '\0' || i == kFrom.npos) return lose(start, fmt::format("an escape that JSON does not have: \\{}", c));
      out += kTo[i];
      return true;
    }
    unsigned code = 0, low = 0;
    if (!hex4(code)) return lose(start, "\\u is followed by four hexadecimal digits");
    if (code >= 0xD800 && code < 0xDC00) {  // the first half of a surrogate pair
      if (text_.substr(at_, 2) != "\\u") return lose(start, "half a surrogate pair");
      at_ += 2;
      if (!hex4(low) || low < 0xDC00 || low > 0xDFFF) return lose(start, "half a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      return lose(start, "half a surrogate pair");
    }
    append_utf8(out, code);
    return true;
  }

  // Length of the well-formed UTF-8 sequence at `at_`, 0 when it is none (Unicode 15, table 3-7).
  std::size_t utf8() const {
    const auto byte = [this](std::size_t i) {
      return at_ + i < text_.size() ? static_cast<unsigned char>(text_[at_ + i]) : 0u;
    };
    const auto tail = [&byte](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
      return byte(i) >= low && byte(i) <= high;
    };
    const unsigned first = byte(0);
    if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF)
      return tail(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && tail(2) ? 3 : 0;
    if (first >= 0xF0 && first <= 0xF4)
      return tail(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && tail(2) && tail(3) ? 4 : 0;
    return 0;
  }

  bool string(std::string& out) {
    const std::size_t open = at_++;
    for (;;) {
      if (end()) return lose(open, "a string that does not end");
      const auto c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') return ++at_, true;
      if (out.size() > kMaxString)
        return lose(open, fmt::format("a string of more than {} bytes", kMaxString), Code::too_large);
      if (c == '\n') return lose(open, "a string that does not end on its line");
      if (c < 0x20) return lose(at_, fmt::format("{} inside a string", found()));
      if (c == '\\') {
        if (!escape(out)) return false;
        continue;
      }
      const std::size_t length = c < 0x80 ? 1 : utf8();
      if (length == 0) return lose(at_, fmt::format("{}, which is not UTF-8", found()));
      out += text_.substr(at_, length);
      at_ += length;
    }
  }

  bool digits() {
    if (!(peek() >= '0' && peek() <= '9')) return false;
    while (peek() >= '0' && peek() <= '9') ++at_;
    return true;
  }

  bool number() {
    const std::size_t start = at_;
    if (peek() == '-') ++at_;
    if (text_.substr(at_, 8) == "Infinity") {
      at_ += 8;
      return not_finite(start), true;
    }
    const bool zero = peek() == '0';
    const std::size_t first = at_;
    if (!digits()) return lose(at_, fmt::format("a digit is expected, {} found", found()));
    if (zero && at_ - first > 1) return lose(start, "a number that starts with 0");
    if (peek() == '.') {
      ++at_;
      if (!digits()) return lose(at_, fmt::format("a digit is expected after '.', {} found", found()));
    }
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digits()) return lose(at_, fmt::format("a digit is expected in the exponent, {} found", found()));
    }
    if ((peek() >= 'a' && peek() <= 'z') || (peek() >= 'A' && peek() <= 'Z'))
      return lose(at_, fmt::format("{} after a number; a value with a unit is a string, as in \"25 MiB\"", found()));
    const std::string copy(text_.substr(start, at_ - start));
    if (!std::isfinite(std::strtod(copy.c_str(), nullptr)))
      report(Code::too_large, start, fmt::format("{} is larger than any number here", copy.substr(0, 40)));
    return true;
  }

  void not_finite(std::size_t start) {
    report(Code::bad_value, start, fmt::format("{}: a finite number is expected", text_.substr(start, at_ - start)));
  }

  bool word() {
    const std::size_t start = at_;
    while ((peek() >= 'a' && peek() <= 'z') || (peek() >= 'A' && peek() <= 'Z') || peek() == '_') ++at_;
    const std::string_view w = text_.substr(start, at_ - start);
    if (w == "true" || w == "false" || w == "null") return true;
    if (w == "NaN" || w == "nan" || w == "Infinity" || w == "inf") return not_finite(start), true;
    const std::string shown(w.substr(0, 40));
    for (const char* right : {"true", "false", "null"})
      if (nearest(w, {right}) == right) {
        report(Code::syntax, start, fmt::format("the word {} is not JSON", shown), right);
        return true;
      }
    return lose(start, fmt::format("the word {} is not JSON; a string is written in double quotes", shown));
  }

  std::string_view text_;
  const OnValue& on_value_;
  DiagnosticSink& sink_;
  std::size_t at_ = 0;
  std::size_t values_ = 0;
  int depth_ = 0;
  bool json_ = true, lost_ = false, stopped_ = false;
  std::string pointer_;
};

}  // namespace

Place place_of(std::string_view text, std::size_t offset) {
  Place place{1, 1};
  for (std::size_t i = 0; i < offset && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++place.column;
    }
  }
  return place;
}

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

bool scan(std::string_view text, const OnValue& on_value, DiagnosticSink& sink) {
  return Scanner(text, on_value, sink).run();
}

}  // namespace tpusim::scenario
