#include "topologies/xml_scan.hpp"

#include <fmt/format.h>

namespace tpusim::topologies {

namespace {

constexpr std::size_t kMaxDepth = 100;
constexpr std::size_t kMaxAttributes = 100;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':' || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view local(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

void append_utf8(std::string& out, unsigned code) {
  const auto byte = [&](unsigned b) { out += static_cast<char>(b); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) return byte(0xC0 | code >> 6), byte(0x80 | (code & 63));
  if (code < 0x10000) return byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63));
  byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63));
}

class Scanner {
 public:
  Scanner(std::string_view text, const XmlEvents& events) : text_(text), events_(events) {}

  XmlFault run() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
    while (at_ < text_.size() && fault_.message.empty() && !stopped_) text_[at_] == '<' ? markup() : characters();
    if (fault_.message.empty() && !stopped_ && !open_.empty())
      fail(text_.size(), fmt::format("the text ends inside <{}>", open_.back()));
    if (fault_.message.empty() && !stopped_ && !any_) fail(at_, "no element; GraphML is expected");
    return fault_;
  }

 private:
  void fail(std::size_t offset, std::string message) {
    if (fault_.message.empty()) fault_ = {std::move(message), offset};
  }

  bool begins(std::string_view word) const { return text_.substr(at_, word.size()) == word; }

  // Past the next `word`; false where there is none.
  bool pass(std::string_view word, const char* what) {
    const std::size_t end = text_.find(word, at_);
    if (end == std::string_view::npos) {
      fail(at_, fmt::format("{} without its end", what));
      return false;
    }
    at_ = end + word.size();
    return true;
  }

  void markup() {
    if (begins("<!--")) {
      pass("-->", "a comment");
    } else if (begins("<![CDATA[")) {
      const std::size_t from = at_ + 9;
      if (pass("]]>", "CDATA") && !open_.empty())
        stopped_ = !events_.text(std::string(text_.substr(from, at_ - 3 - from)));
    } else if (begins("<?")) {
      pass("?>", "a processing instruction");
    } else if (begins("<!")) {
      doctype();
    } else if (begins("</")) {
      end_tag();
    } else {
      start_tag();
    }
  }

  void doctype() {
    const std::size_t from = at_;
    if (!pass(">", "a DOCTYPE")) return;
    if (text_.substr(from, at_ - from).find('[') != std::string_view::npos)
      fail(from, "a DOCTYPE with declarations of its own is not read");
  }

  void characters() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    const std::string_view raw = text_.substr(at_, end - at_);
    if (open_.empty()) {
      for (std::size_t i = 0; i < raw.size(); ++i)
        if (!is_space(raw[i])) return fail(at_ + i, "text outside of the root element");
    } else {
      std::string value;
      if (!decode(raw, at_, value)) return;
      stopped_ = !events_.text(value);
    }
    at_ = end;
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  std::string_view name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == from) fail(at_, "a name is expected");
    return text_.substr(from, at_ - from);
  }

  void end_tag() {
    const std::size_t from = at_;
    at_ += 2;
    const std::string_view tag = name();
    skip_space();
    if (at_ >= text_.size() || text_[at_] != '>') return fail(at_, "'>' is expected");
    ++at_;
    if (open_.empty() || open_.back() != tag)
      return fail(from,
                  fmt::format("</{}> closes nothing{}", tag.substr(0, 64),
                              open_.empty() ? "" : fmt::format("; </{}> is expected", open_.back().substr(0, 64))));
    open_.pop_back();
    stopped_ = !events_.end(local(tag));
  }

  void start_tag() {
    XmlTag tag;
    tag.offset = at_++;
    if (any_ && open_.empty()) return fail(tag.offset, "a second root element");
    const std::string_view full = name();
    tag.name = local(full);
    for (;;) {
      skip_space();
      if (!fault_.message.empty()) return;
      if (at_ >= text_.size()) return fail(tag.offset, fmt::format("<{} without its '>'", full.substr(0, 64)));
      if (text_[at_] == '>' || begins("/>")) break;
      if (!attribute(tag)) return;
    }
    const bool empty = text_[at_] == '/';
    at_ += empty ? 2 : 1;
    any_ = true;
    if (open_.size() >= kMaxDepth) return fail(tag.offset, fmt::format("nested more than {} deep", kMaxDepth));
    open_.push_back(full);
    stopped_ = !events_.start(tag);
    if (!empty) return;
    open_.pop_back();
    if (!stopped_) stopped_ = !events_.end(tag.name);
  }

  bool attribute(XmlTag& tag) {
    const std::size_t from = at_;
    const std::string_view key = name();
    skip_space();
    if (!fault_.message.empty()) return false;
    if (at_ >= text_.size() || text_[at_] != '=') return fail(at_, "'=' is expected after an attribute"), false;
    ++at_;
    skip_space();
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\''))
      return fail(at_, "an attribute's value stands in quotes"), false;
    const char quote = text_[at_++];
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) return fail(from, "an attribute without its closing quote"), false;
    std::string value;
    if (!decode(text_.substr(at_, end - at_), at_, value)) return false;
    at_ = end + 1;
    if (tag.find(key) != nullptr) return fail(from, fmt::format("the attribute {} twice", key.substr(0, 64))), false;
    if (tag.attributes.size() >= kMaxAttributes) return fail(from, "more than 100 attributes"), false;
    tag.attributes.push_back({key, std::move(value)});
    return true;
  }

  bool decode(std::string_view raw, std::size_t offset, std::string& out) {
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '&') {
        out += raw[i];
        continue;
      }
      const std::size_t end = raw.find(';', i);
      if (end == std::string_view::npos || !entity(raw.substr(i + 1, end - i - 1), out))
        return fail(offset + i, "an entity that is not one of &lt; &gt; &amp; &quot; &apos; or a number"), false;
      i = end;
    }
    return true;
  }

  static bool entity(std::string_view name, std::string& out) {
    if (name == "lt") return out += '<', true;
    if (name == "gt") return out += '>', true;
    if (name == "amp") return out += '&', true;
    if (name == "quot") return out += '"', true;
    if (name == "apos") return out += '\'', true;
    if (name.size() < 2 || name[0] != '#') return false;
    const bool hex = name[1] == 'x';
    unsigned code = 0;
    if (name.size() > 10 || name.size() == (hex ? 2u : 1u)) return false;
    for (char c : name.substr(hex ? 2 : 1)) {
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 99;
      if (digit >= (hex ? 16 : 10)) return false;
      code = code * (hex ? 16 : 10) + static_cast<unsigned>(digit);
      if (code > 0x10FFFF) return false;
    }
    if (code == 0 || (code >= 0xD800 && code < 0xE000)) return false;
    append_utf8(out, code);
    return true;
  }

  std::string_view text_;
  const XmlEvents& events_;
  std::size_t at_ = 0;
  std::vector<std::string_view> open_;
  bool any_ = false, stopped_ = false;
  XmlFault fault_;
};

}  // namespace

const std::string* XmlTag::find(std::string_view attribute) const {
  for (const auto& [key, value] : attributes)
    if (key == attribute) return &value;
  return nullptr;
}

XmlFault scan_xml(std::string_view text, const XmlEvents& events) {
  return Scanner(text, events).run();
}

}  // namespace tpusim::topologies
