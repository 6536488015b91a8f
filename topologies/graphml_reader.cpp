// GraphML to nodes and links. Positions are those of the element's tag.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "sim/base/quantity_text.hpp"
#include "topologies/assembler.hpp"
#include "topologies/readers.hpp"
#include "topologies/xml_scan.hpp"

namespace tpusim::topologies {

namespace {

constexpr std::size_t kMaxValue = 4096;  // bytes of one <data>
constexpr std::size_t kMaxKeys = 1000;

struct Key {
  std::string field;  // one of ours, or empty: ignored
  std::string value;  // <default>
  bool has_default = false;
};

const std::vector<std::string>& node_fields() {
  static const std::vector<std::string> fields{"kind", "host", "slice"};
  return fields;
}
const std::vector<std::string>& edge_fields() {
  static const std::vector<std::string> fields{"bandwidth", "latency", "half_duplex"};
  return fields;
}

std::string trimmed(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

class Reader {
 public:
  explicit Reader(Assembler& out) : out_(out) {}

  bool start(const XmlTag& tag) {
    text_.clear();
    const Spot spot = spot_of(tag);
    if (tag.name == "key") return key(tag, spot);
    if (tag.name == "graph") return graph(tag, spot);
    if (tag.name == "node") return begin(tag, spot, true);
    if (tag.name == "edge") return begin(tag, spot, false);
    if (tag.name == "data") return data(tag, spot);
    if (tag.name == "hyperedge" || tag.name == "port")
      out_.fault(Code::not_in_version, spot,
                 fmt::format("<{}> of GraphML is not read; write links between nodes", tag.name));
    // graphml, default, desc and what drawing programs add need nothing.
    return !out_.full();
  }

  bool text(const std::string& piece) {
    if (text_.size() + piece.size() <= kMaxValue) text_ += piece;
    return true;
  }

  bool end(std::string_view name) {
    if (name == "default" && !key_.empty()) {
      keys_[key_].value = trimmed(text_);
      keys_[key_].has_default = true;
    }
    if (name == "key") key_.clear();
    if (name == "data" && inside_ && !data_.empty()) values_[data_] = trimmed(text_);
    if (name == "data") data_.clear();
    if (inside_ && name == (node_ ? "node" : "edge")) {
      inside_ = false;
      return node_ ? finish_node() : finish_edge();
    }
    return true;
  }

  bool has_graph() const { return graphs_ > 0; }

 private:
  Spot spot_of(const XmlTag& tag) const {
    if (tag.name == "node") return {"", tag.offset, "/graph/node", nodes_};
    if (tag.name == "edge") return {"", tag.offset, "/graph/edge", edges_};
    if (tag.name == "data") return {"/data", tag.offset, item_.list, item_.index};
    return {"/" + std::string(tag.name.substr(0, 64)), tag.offset};
  }

  bool key(const XmlTag& tag, const Spot& spot) {
    const std::string* id = tag.find("id");
    const std::string* name = tag.find("attr.name");
    const std::string* target = tag.find("for");
    if (id == nullptr) {
      out_.fault(Code::missing_key, spot, "a <key> needs \"id\"");
      return true;
    }
    if (keys_.size() >= kMaxKeys) {
      out_.fault(Code::too_large, spot, fmt::format("a file has at most {} keys", kMaxKeys));
      return false;
    }
    key_ = *id;
    Key& known = keys_[*id];
    const std::string field = name == nullptr ? *id : *name;
    if (target != nullptr && *target != "node" && *target != "edge" && *target != "all") return true;
    std::vector<std::string> fields;
    if (target == nullptr || *target != "edge") fields = node_fields();
    if (target == nullptr || *target != "node") fields.insert(fields.end(), edge_fields().begin(), edge_fields().end());
    if (std::find(fields.begin(), fields.end(), field) != fields.end()) {
      known.field = field;
    } else if (const std::string meant = nearest(field, fields); !meant.empty()) {
      out_.fault(Code::unknown_key, spot, fmt::format("unknown field \"{}\"", field.substr(0, 64)), meant, fields);
    }
    return true;
  }

  bool graph(const XmlTag& tag, const Spot& spot) {
    if (++graphs_ > 1) {
      out_.fault(Code::not_in_version, spot, "one <graph> is read; this is another, or one inside a node");
      return false;
    }
    const std::string* direction = tag.find("edgedefault");
    if (direction != nullptr && *direction != "directed" && *direction != "undirected")
      out_.fault(
          Code::bad_value, spot,
          fmt::format("expected edgedefault \"directed\" or \"undirected\", found \"{}\"", direction->substr(0, 64)),
          nearest(*direction, {"directed", "undirected"}));
    directed_ = direction != nullptr && *direction == "directed";
    return true;
  }

  bool begin(const XmlTag& tag, const Spot& spot, bool node) {
    inside_ = true;
    node_ = node;
    item_ = spot;
    values_.clear();
    node_values_ = {};
    link_ = {};
    ++(node ? nodes_ : edges_);
    if (node) {
      const std::string* id = tag.find("id");
      if (id == nullptr || id->empty())
        out_.fault(Code::missing_key, spot, "a <node> needs \"id\"");
      else
        node_values_.name = *id;
      return !out_.full();
    }
    if (const std::string* from = tag.find("source")) link_.from = *from;
    if (const std::string* to = tag.find("target")) link_.to = *to;
    bool one_way = directed_;
    if (const std::string* directed = tag.find("directed")) {
      const std::optional<bool> is = truth(*directed, "directed");
      one_way = is.value_or(one_way);
    }
    link_.both_ways = !one_way;
    return true;
  }

  bool data(const XmlTag& tag, const Spot& spot) {
    data_.clear();
    if (!inside_) return true;
    const std::string* id = tag.find("key");
    const auto known = id == nullptr ? keys_.end() : keys_.find(*id);
    if (known == keys_.end())
      out_.fault(Code::unknown_name, spot,
                 fmt::format("no <key> has the id \"{}\"", id == nullptr ? "" : id->substr(0, 64)));
    else
      data_ = known->second.field;
    return !out_.full();
  }

  // The value of a field: of the element, else the key's default.
  std::optional<std::string> value(const std::string& field) const {
    const auto found = values_.find(field);
    if (found != values_.end()) return found->second;
    for (const auto& [id, key] : keys_)
      if (key.field == field && key.has_default) return key.value;
    return std::nullopt;
  }

  std::optional<bool> truth(const std::string& text, const char* field) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    out_.fault(Code::wrong_type, item_,
               fmt::format("expected {} true or false, found \"{}\"", field, text.substr(0, 64)));
    bad_ = true;
    return std::nullopt;
  }

  std::optional<double> number(const char* field) {
    const std::optional<std::string> text = value(field);
    if (!text) return std::nullopt;
    double n = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
    if (error == std::errc() && end == text->data() + text->size()) return n;
    out_.fault(Code::wrong_type, item_,
               fmt::format("expected a whole number as {}, found \"{}\"", field, text->substr(0, 64)));
    return std::nullopt;
  }

  template <class Parse>
  std::optional<double> quantity(const char* field, Parse parse) {
    const std::optional<std::string> text = value(field);
    if (!text) return std::nullopt;
    auto parsed = parse(*text);
    if (parsed) return parsed.value->value();
    out_.fault(parsed.code, {std::string("/") + field, item_.offset, item_.list, item_.index}, parsed.message,
               parsed.suggestion, parsed.choices);
    bad_ = true;
    return std::nullopt;
  }

  bool finish_node() {
    if (node_values_.name.empty()) return true;
    node_values_.kind = value("kind");
    node_values_.host = number("host");
    node_values_.slice = number("slice");
    return out_.add_node(node_values_, item_);
  }

  bool finish_edge() {
    link_.bandwidth = quantity("bandwidth", parse_bytes_per_second);
    link_.latency = quantity("latency", parse_seconds);
    if (const std::optional<std::string> half = value("half_duplex")) link_.half_duplex = truth(*half, "half_duplex");
    const bool bad = std::exchange(bad_, false);
    return bad ? !out_.full() : out_.add_link(link_, item_);
  }

  Assembler& out_;
  std::map<std::string, Key> keys_;
  std::map<std::string, std::string> values_;
  std::string key_, data_, text_;
  bool inside_ = false, node_ = false, directed_ = false, bad_ = false;
  std::int64_t nodes_ = 0, edges_ = 0;
  int graphs_ = 0;
  Spot item_;
  NodeFields node_values_;
  LinkFields link_;
};

}  // namespace

std::optional<Topology> read_graphml(std::string_view text, const std::string& file, DiagnosticSink& sink) {
  Assembler out(text, file, sink);
  Reader reader(out);
  out.declare_nodes();
  const XmlFault fault = scan_xml(text, {[&](const XmlTag& tag) { return reader.start(tag); },
                                         [&](std::string_view name) { return reader.end(name); },
                                         [&](const std::string& piece) { return reader.text(piece); }});
  if (!fault.message.empty())
    out.fault(Code::syntax, {"", fault.offset}, fault.message);
  else if (!reader.has_graph())
    out.fault(Code::missing_key, {"", 0}, "GraphML has a <graph>; there is none here");
  return out.finish();
}

}  // namespace tpusim::topologies
