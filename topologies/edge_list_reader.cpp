// The JSON edge list, as events of the JSON library's scanner: no tree is built, so that ten million links fit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sim/base/quantity_text.hpp"
#include "topologies/assembler.hpp"
#include "topologies/readers.hpp"

namespace tpusim::topologies {

namespace {

// Tells where the scanner is.
class CountingIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  CountingIterator() = default;
  CountingIterator(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& o) const { return at_ == o.at_; }
  bool operator!=(const CountingIterator& o) const { return at_ != o.at_; }

 private:
  const char* at_ = nullptr;
  const char** seen_ = nullptr;
};

enum class In { start, top, nodes, node, links, link };

struct Value {
  enum class Kind { null, boolean, number, text, array, object } kind = Kind::null;
  bool truth = false;
  double number = 0;
  std::string text;  // of a string; of a whole number too
  bool whole = false;
};

std::string describe(const Value& v) {
  switch (v.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::boolean:
      return v.truth ? "true" : "false";
    case Value::Kind::number:
      return fmt::format("{:g}", v.number);
    case Value::Kind::text:
      return "the string \"" + v.text.substr(0, 64) + "\"";
    case Value::Kind::array:
      return "an array";
    case Value::Kind::object:
      return "an object";
  }
  return "";
}

const std::vector<std::string>& keys_of(In in) {
  static const std::vector<std::string> top{"nodes", "chips_forward", "bandwidth", "latency", "links"};
  static const std::vector<std::string> node{"name", "kind", "host", "slice"};
  static const std::vector<std::string> link{"from", "to", "bandwidth", "latency", "both_ways", "half_duplex"};
  return in == In::node ? node : in == In::link ? link : top;
}

class Handler {
 public:
  using Json = nlohmann::json;
  Handler(std::string_view text, Assembler& out, const char* const* seen) : text_(text), out_(out), seen_(seen) {}

  bool null() { return scalar({}); }
  bool boolean(bool b) { return scalar({Value::Kind::boolean, b, 0, {}, false}); }
  bool number_integer(Json::number_integer_t n) {
    return scalar({Value::Kind::number, false, static_cast<double>(n), {}, false});  // a negative one
  }
  bool number_unsigned(Json::number_unsigned_t n) {
    return scalar({Value::Kind::number, false, static_cast<double>(n), std::to_string(n), true});
  }
  bool number_float(Json::number_float_t n, const Json::string_t&) {
    return scalar({Value::Kind::number, false, n, {}, false});
  }
  bool string(Json::string_t& s) { return scalar({Value::Kind::text, false, 0, s, false}); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(Json::string_t& name) {
    if (skipped_ > 0) return true;
    key_ = name;
    key_end_ = offset();
    const std::vector<std::string>& keys = keys_of(in_);
    const auto found = std::find(keys.begin(), keys.end(), name);
    known_ = found != keys.end();
    if (!known_) {
      out_.fault(Code::unknown_key, key_spot(), "unknown key \"" + name.substr(0, 64) + "\"", nearest(name, keys),
                 keys);
      return !out_.full();
    }
    std::uint32_t& seen = in_ == In::top ? top_keys_ : keys_;
    const std::uint32_t bit = 1u << (found - keys.begin());
    if ((seen & bit) != 0) {
      out_.fault(Code::duplicate_key, key_spot(), "the key \"" + name + "\" is in this object twice");
      known_ = false;
    }
    seen |= bit;
    return !out_.full();
  }

  bool parse_error(std::size_t, const std::string& token, const Json::exception& e) {
    std::string what = e.what();
    const std::size_t colon =
        what.find("column ");  // "[json.exception.parse_error.101] parse error at line 1, column 7: ..."
    const std::size_t message = what.find(": ", colon == std::string::npos ? 0 : colon);
    if (message != std::string::npos) what = what.substr(message + 2);
    out_.fault(Code::syntax, {"", offset() - std::min<std::size_t>(offset(), token.empty() ? 0 : 1)},
               what.substr(0, 300));
    return false;
  }

  bool has_links() const { return (top_keys_ & (1u << 4)) != 0; }
  bool deep() const { return deep_; }

 private:
  std::size_t offset() const { return static_cast<std::size_t>(*seen_ - text_.data()); }

  // Of the key that was read last: its opening quote.
  Spot key_spot() const {
    std::size_t i = key_end_ - 1;
    while (i > 0) {
      --i;
      if (text_[i] != '"') continue;
      std::size_t slashes = 0;
      while (i > slashes && text_[i - 1 - slashes] == '\\') ++slashes;
      if (slashes % 2 == 0) break;
    }
    std::string escaped = "/";
    for (char c : key_) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    if (in_ == In::node) return {escaped, i, "/nodes", count_};
    if (in_ == In::link) return {escaped, i, "/links", count_};
    return {escaped, i};
  }

  void wrong_type(const char* expected, const Value& v) {
    out_.fault(Code::wrong_type, key_spot(), fmt::format("expected {}, found {}", expected, describe(v)));
  }

  bool open(bool object) {
    if (skipped_ > 0) return skip();
    const Value shown{object ? Value::Kind::object : Value::Kind::array, false, 0, {}, false};
    switch (in_) {
      case In::start:
        if (object) return in_ = In::top, true;
        out_.fault(Code::wrong_type, {"", 0}, "expected an object with \"links\", found an array");
        return skip();
      case In::top:
        if (known_ && !object && key_ == "nodes") return open_nodes();
        if (known_ && !object && key_ == "links") return count_ = 0, in_ = In::links, true;
        break;
      case In::nodes:
      case In::links:
        object_spot_ = {"", offset() - 1, in_ == In::nodes ? "/nodes" : "/links", count_};
        if (object) return begin_item();
        out_.fault(Code::wrong_type, object_spot_, "expected an object, found an array");
        return skip();
      case In::node:
      case In::link:
        break;
    }
    if (known_) wrong_type(key_ == "nodes" || key_ == "links" ? "an array" : "a single value", shown);
    return skip();
  }

  // Whatever is inside belongs to a value that was refused. Its depth is bounded, since the scanner keeps a bit a
  // level.
  bool skip() {
    if (++skipped_ <= 100) return true;
    deep_ = true;
    out_.fault(Code::nesting, {"", offset() - 1}, "nested more than 100 deep");
    return false;
  }

  bool open_nodes() {
    if (has_links()) out_.fault(Code::conflict, key_spot(), "\"nodes\" has to come before \"links\"");
    out_.declare_nodes();
    count_ = 0;
    in_ = In::nodes;
    return true;
  }

  bool begin_item() {
    in_ = in_ == In::nodes ? In::node : In::link;
    keys_ = 0;
    node_ = {};
    link_ = {};
    return true;
  }

  bool close() {
    if (skipped_ > 0) {
      --skipped_;
      if (skipped_ == 0 && (in_ == In::nodes || in_ == In::links)) ++count_;
      return true;
    }
    bool go_on = true;
    if (in_ == In::node) {
      if (keys_ % 2 == 0) out_.fault(Code::missing_key, object_spot_, "a node needs \"name\"");
      if (!node_.name.empty()) go_on = out_.add_node(node_, object_spot_);
      in_ = In::nodes;
      ++count_;
    } else if (in_ == In::link) {
      go_on = refused_ || out_.add_link(link_, object_spot_);
      refused_ = false;
      in_ = In::links;
      ++count_;
    } else {
      in_ = In::top;
    }
    return go_on && !out_.full();
  }

  bool scalar(Value&& v) {
    if (skipped_ > 0) return true;
    if (in_ == In::start) {
      out_.fault(Code::wrong_type, {"", 0}, "expected an object with \"links\", found " + describe(v));
      return true;
    }
    if (in_ == In::nodes || in_ == In::links) {
      const std::string where = fmt::format("/{}/{}", in_ == In::nodes ? "nodes" : "links", count_++);
      out_.fault(Code::wrong_type, {where, offset() - (v.kind == Value::Kind::number ? 2 : 1)},
                 "expected an object, found " + describe(v));
      return !out_.full();
    }
    if (!known_) return true;
    if (in_ == In::top) return top_value(v);
    return in_ == In::node ? node_value(v) : link_value(v);
  }

  bool top_value(const Value& v) {
    if (key_ == "bandwidth") {
      if (const auto rate = quantity(v, parse_bytes_per_second)) out_.set_default_bandwidth(*rate, key_spot());
    } else if (key_ == "latency") {
      if (const auto time = quantity(v, parse_seconds)) out_.set_default_latency(*time, key_spot());
    } else if (key_ == "chips_forward") {
      if (const auto truth = boolean_of(v)) out_.set_chips_forward(*truth);
    } else {
      wrong_type("an array", v);
    }
    return true;
  }

  bool node_value(Value& v) {
    if (key_ == "name") {
      if (auto name = name_of(v)) node_.name = std::move(*name);
    } else if (key_ == "kind") {
      if (v.kind == Value::Kind::text)
        node_.kind = std::move(v.text);
      else
        wrong_type("a string", v);
    } else if (v.kind == Value::Kind::number) {
      (key_ == "host" ? node_.host : node_.slice) = v.number;
    } else {
      wrong_type("a whole number", v);
    }
    return true;
  }

  bool link_value(Value& v) {
    if (key_ == "from")
      link_.from = name_of(v);
    else if (key_ == "to")
      link_.to = name_of(v);
    else if (key_ == "bandwidth")
      link_.bandwidth = quantity(v, parse_bytes_per_second);
    else if (key_ == "latency")
      link_.latency = quantity(v, parse_seconds);
    else if (key_ == "both_ways")
      link_.both_ways = boolean_of(v);
    else
      link_.half_duplex = boolean_of(v);
    return true;
  }

  // Reported, and the link that it belongs to is not used: its other faults would follow from this one.
  void refuse(const char* expected, const Value& v) {
    wrong_type(expected, v);
    refused_ = in_ == In::link;
  }

  std::optional<std::string> name_of(Value& v) {
    if ((v.kind == Value::Kind::text || v.whole) && !v.text.empty()) return std::move(v.text);
    refuse("a name: a string that is not empty, or a whole number", v);
    return std::nullopt;
  }

  std::optional<bool> boolean_of(const Value& v) {
    if (v.kind == Value::Kind::boolean) return v.truth;
    refuse("true or false", v);
    return std::nullopt;
  }

  template <class Parse>
  std::optional<double> quantity(const Value& v, Parse parse) {
    if (v.kind == Value::Kind::number) return v.number;
    if (v.kind != Value::Kind::text) {
      refuse("a number, or a string with a unit", v);
      return std::nullopt;
    }
    const std::size_t kind = key_ == "latency" ? 1 : 0;
    if (v.text == last_text_[kind] && !v.text.empty()) return last_value_[kind];
    auto parsed = parse(v.text);
    if (parsed) {
      last_text_[kind] = v.text;
      return last_value_[kind] = parsed.value->value();
    }
    out_.fault(parsed.code, key_spot(), parsed.message, parsed.suggestion, parsed.choices);
    refused_ = in_ == In::link;
    return std::nullopt;
  }

  std::string_view text_;
  Assembler& out_;
  const char* const* seen_;
  In in_ = In::start;
  int skipped_ = 0;
  bool known_ = false, refused_ = false, deep_ = false;
  std::int64_t count_ = 0;
  std::uint32_t keys_ = 0, top_keys_ = 0;
  std::string key_;
  std::size_t key_end_ = 0;
  Spot object_spot_;
  std::string last_text_[2];  // equal texts in a row are parsed once
  double last_value_[2] = {0, 0};
  NodeFields node_;
  LinkFields link_;
};

}  // namespace

std::optional<Topology> read_edge_list(std::string_view text, const std::string& file, DiagnosticSink& sink) {
  Assembler out(text, file, sink);
  const char* seen = text.data();
  Handler handler(text, out, &seen);
  const CountingIterator begin(text.data(), &seen), end(text.data() + text.size(), &seen);
  const bool read = nlohmann::json::sax_parse(begin, end, &handler, nlohmann::json::input_format_t::json, true, true);
  if (read && !handler.has_links()) out.fault(Code::missing_key, {"", 0}, "a network needs \"links\"", "links");
  return out.finish();
}

}  // namespace tpusim::topologies
