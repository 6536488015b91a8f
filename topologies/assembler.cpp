#include "topologies/assembler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "topologies/readers.hpp"

namespace tpusim::topologies {

namespace {

constexpr int kFaults = 20;                 // what a DiagnosticSink holds
constexpr double kMost = 1e18;              // bytes a second, seconds
constexpr std::int64_t kClasses = 1 << 16;  // different kinds of link
constexpr double kDefault = -1;
constexpr std::int64_t kSearches = 200'000'000;  // nodes and links visited

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// Nodes met by a search from a chip along links (or against them), over nodes that forward.
std::vector<bool> met_from(const Topology& t, const Adjacency& a, std::int32_t start, bool forth) {
  std::vector<bool> met(t.nodes.size(), false);
  std::vector<std::int32_t> queue{start};
  met[at(start)] = true;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const std::int32_t v = queue[i];
    if (v != start && v < t.chips && !t.chips_forward) continue;
    for (std::int32_t k = a.first[at(v)]; k < a.first[at(v) + 1]; ++k) {
      const Link& l = t.links[at(a.link[at(k)])];
      const std::int32_t to = forth ? l.to : l.from;
      if (!met[at(to)]) met[at(to)] = true, queue.push_back(to);
    }
  }
  return met;
}

}  // namespace

std::string Spot::text() const {
  return list == nullptr ? pointer : fmt::format("{}/{}{}", list, index, pointer);
}

void Assembler::fault(Code code, const Spot& spot, std::string message, std::string suggestion,
                      std::vector<std::string> choices) {
  // Each costs a pass over the text for its line; the sink takes no more.
  if (full()) return;
  Diagnostic d;
  d.code = code;
  d.pointer = spot.text();
  d.message = std::move(message);
  d.suggestion = std::move(suggestion);
  d.choices = std::move(choices);
  d.file = file_;
  const std::string_view before = text_.substr(0, std::min(spot.offset, text_.size()));
  const std::size_t line = before.rfind('\n') + 1;  // npos + 1 is 0
  d.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  // A column counts characters: bytes that do not continue one.
  d.column = 1 + static_cast<int>(std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line), before.end(),
                                                [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  sink_.add(std::move(d));
  ++faults_;
}

bool Assembler::full() const {
  return faults_ >= kFaults;
}

bool Assembler::in_range(double value, double least, const char* field, const Spot& spot) {
  if (std::isfinite(value) && value <= kMost && (least > 0 ? value > 0 : value >= 0)) return true;
  fault(Code::bad_value, spot,
        fmt::format("expected a {} {} and at most {:g}, found {:g}", field, least > 0 ? "above 0" : "of at least 0",
                    kMost, value));
  return false;
}

std::optional<std::int32_t> Assembler::index_of(const std::optional<double>& value, const char* field,
                                                const Spot& spot) {
  if (!value) return -1;
  if (*value >= 0 && *value < static_cast<double>(max_file_nodes) && *value == std::floor(*value))
    return static_cast<std::int32_t>(*value);
  fault(Code::bad_value, spot,
        fmt::format("expected a {} from 0 to {}, found {:g}", field, max_file_nodes - 1, *value));
  return std::nullopt;
}

bool Assembler::add_node(const NodeFields& fields, const Spot& spot) {
  if (static_cast<std::int64_t>(names_.size()) >= max_file_nodes) {
    fault(Code::too_large, spot, fmt::format("a network has at most {} nodes", max_file_nodes));
    return false;
  }
  if (fields.name.size() > max_name_bytes) {
    fault(Code::too_large, spot,
          fmt::format("a name has at most {} bytes, found {}", max_name_bytes, fields.name.size()));
    return !full();
  }
  Node node;
  const std::vector<std::string> kinds{"chip", "switch", "host", "nic"};
  const auto kind = std::find(kinds.begin(), kinds.end(), fields.kind.value_or("chip"));
  if (kind == kinds.end())
    fault(Code::unknown_name, spot, fmt::format("no node is of the kind \"{}\"", fields.kind->substr(0, 64)),
          nearest(*fields.kind, kinds), kinds);
  else
    node.kind = static_cast<NodeKind>(kind - kinds.begin());
  node.host = index_of(fields.host, "host", spot).value_or(-1);
  node.slice = index_of(fields.slice, "slice", spot).value_or(-1);
  if (!numbers_.emplace(fields.name, static_cast<std::int32_t>(names_.size())).second) {
    fault(Code::duplicate_key, spot, fmt::format("two nodes have the name \"{}\"", fields.name));
    return !full();
  }
  names_.push_back(fields.name);
  topology_.nodes.push_back(node);
  return !full();
}

// -1 after a fault.
std::int32_t Assembler::node_of(const std::string& name, const Spot& spot) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  if (declared_) {
    // The nearest of a million names is worth no wait.
    const bool few = names_.size() <= 10'000;
    fault(Code::unknown_name, spot, fmt::format("no node has the name \"{}\"", name.substr(0, 64)),
          few ? nearest(name, names_) : "", few ? nearest_choices(name, names_) : std::vector<std::string>{});
    return -1;
  }
  const auto number = static_cast<std::int32_t>(names_.size());
  add_node({name, {}, {}, {}}, spot);
  return static_cast<std::int32_t>(names_.size()) > number ? number : -1;
}

std::int32_t Assembler::class_of(double bandwidth, double latency, bool half_duplex) {
  const auto key = std::tuple(bandwidth, latency, half_duplex);
  const auto [entry, added] = classes_.emplace(key, static_cast<std::int32_t>(class_values_.size()));
  if (added) class_values_.push_back(key);
  return entry->second;
}

bool Assembler::add_link(const LinkFields& fields, const Spot& spot) {
  if (static_cast<std::int64_t>(links_.size()) >= max_file_links) {
    fault(Code::too_large, spot, fmt::format("a network has at most {} links", max_file_links));
    return false;
  }
  bool fine = true;
  for (const auto& [end, key] : {std::pair(&fields.from, "from"), std::pair(&fields.to, "to")})
    if (!*end) {
      fault(Code::missing_key, spot, fmt::format("a link needs \"{}\"", key));
      fine = false;
    }
  if (fields.bandwidth) fine = in_range(*fields.bandwidth, 1, "bandwidth", spot) && fine;
  if (fields.latency) fine = in_range(*fields.latency, 0, "latency", spot) && fine;
  if (fields.half_duplex.value_or(false) && !fields.both_ways.value_or(true)) {
    fault(Code::conflict, spot, "a half-duplex link goes both ways; this one is one-way");
    fine = false;
  }
  if (!fields.from || !fields.to) return !full();
  const std::int32_t from = node_of(*fields.from, spot), to = node_of(*fields.to, spot);
  if (from >= 0 && from == to) {
    fault(Code::bad_value, spot,
          fmt::format("a link from \"{}\" to itself carries nothing; expected another node", *fields.to));
    fine = false;
  }
  if (!fine || from < 0 || to < 0) return !full() && static_cast<std::int64_t>(names_.size()) < max_file_nodes;
  const std::int32_t cls = class_of(fields.bandwidth.value_or(kDefault), fields.latency.value_or(kDefault),
                                    fields.half_duplex.value_or(false));
  if (static_cast<std::size_t>(cls) == class_spots_.size()) class_spots_.push_back(spot);
  if (cls >= kClasses) {
    fault(Code::too_large, spot,
          fmt::format("a network has at most {} kinds of link (bandwidth and latency)", kClasses));
    return false;
  }
  links_.push_back({from, to, cls, fields.both_ways.value_or(true)});
  return !full();
}

void Assembler::set_default_bandwidth(double value, const Spot& spot) {
  if (in_range(value, 1, "bandwidth", spot)) default_bandwidth_ = value;
}

void Assembler::set_default_latency(double value, const Spot& spot) {
  if (in_range(value, 0, "latency", spot)) default_latency_ = value;
}

void Assembler::resolve_defaults() {
  for (std::size_t i = 0; i < class_values_.size() && !full(); ++i) {
    auto [bandwidth, latency, half] = class_values_[i];
    if (bandwidth == kDefault && !default_bandwidth_)
      fault(Code::missing_key, class_spots_[i], "a link without \"bandwidth\", and the file has no default");
    if (latency == kDefault && !default_latency_)
      fault(Code::missing_key, class_spots_[i], "a link without \"latency\", and the file has no default");
    LinkClass c;
    c.bandwidth = BytesPerSecond(bandwidth == kDefault ? default_bandwidth_.value_or(1) : bandwidth);
    c.latency = Seconds(latency == kDefault ? default_latency_.value_or(0) : latency);
    c.duplex = half ? Duplex::half : Duplex::full;
    topology_.classes.push_back(c);
  }
}

// Chips first, otherwise in the order of the file.
void Assembler::place_nodes() {
  std::vector<std::int32_t> place(names_.size());
  std::vector<Node> nodes;
  for (bool chips : {true, false}) {
    for (std::size_t v = 0; v < names_.size(); ++v) {
      if ((topology_.nodes[v].kind == NodeKind::chip) != chips) continue;
      place[v] = static_cast<std::int32_t>(nodes.size());
      nodes.push_back(topology_.nodes[v]);
      topology_.names.push_back(std::move(names_[v]));
    }
    if (chips) topology_.chips = static_cast<std::int64_t>(nodes.size());
  }
  topology_.nodes = std::move(nodes);
  topology_.links.reserve(2 * links_.size());
  for (const RawLink& l : links_) {
    const std::int32_t from = place[at(l.from)], to = place[at(l.to)];
    if (l.both_ways)
      topologies::add_link(topology_, from, to, l.cls);
    else
      add_one_way(topology_, from, to, l.cls);
  }
  std::vector<RawLink>().swap(links_);
}

// Every chip reaches every other: where chips forward, when all reach chip 0 and are reached from it; else each is
// searched from, while that takes seconds, and only chip 0 beyond.
void Assembler::check_connected() {
  const auto work = static_cast<std::int64_t>(topology_.links.size() + topology_.nodes.size());
  const bool all = !topology_.chips_forward && work <= kSearches / topology_.chips;
  for (bool forth : {true, false}) {
    const Adjacency a = forth ? links_from(topology_) : links_into(topology_);
    for (std::int32_t start = 0; start < (all ? topology_.chips : 1); ++start) {
      const std::vector<bool> met = met_from(topology_, a, start, forth);
      const auto apart = std::find(met.begin(), met.begin() + topology_.chips, false) - met.begin();
      if (apart == topology_.chips) continue;
      const std::string& here = topology_.names[at(start)];
      const std::string& there = topology_.names[at(apart)];
      fault(Code::conflict, {"/links", 0},
            fmt::format("the network is in parts: no way leads from \"{}\" to \"{}\"{}", forth ? here : there,
                        forth ? there : here, topology_.chips_forward ? "" : " (chips do not forward)"));
      return;
    }
  }
}

std::optional<Topology> Assembler::finish() {
  if (faults_ > 0) return std::nullopt;
  resolve_defaults();
  numbers_.clear();
  if (faults_ == 0 && std::none_of(topology_.nodes.begin(), topology_.nodes.end(),
                                   [](const Node& n) { return n.kind == NodeKind::chip; }))
    fault(Code::missing_key, {"", 0}, "a network needs at least one chip");
  if (faults_ > 0) return std::nullopt;
  place_nodes();
  check_connected();
  if (faults_ > 0) return std::nullopt;
  topology_.name = file_;
  verify(topology_);
  return std::move(topology_);
}

}  // namespace tpusim::topologies
