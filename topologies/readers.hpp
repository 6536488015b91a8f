// A user's own network: an edge list in JSON, or GraphML.
//
// JSON (comments allowed; "nodes" before "links"):
//   {"nodes": [{"name": "a", "kind": "chip", "host": 0, "slice": 0}, ...],      optional; kind: chip (default), switch,
//   host, nic
//    "chips_forward": true,                                                   whether routes may pass through chips
//    "bandwidth": "50 GB/s", "latency": "1 us",                               optional defaults for links
//    "links": [{"from": "a", "to": "b", "bandwidth": "50 GB/s", "latency": "1 us", "both_ways": true, "half_duplex":
//    false}]}
// A name is a string or a whole number. Without "nodes" every name is a chip, in the order of first mention. Numbers
// are bytes a second and seconds. GraphML (http://graphml.graphdrawing.org): <node> and <edge> with the same fields as
// <data>, declared by <key attr.name="...">, <default> honoured, nodes before edges; edgedefault and directed say
// whether a link is one-way. Keys with other names are ignored, as drawing programs write them, unless one is nearly a
// field of ours.
//
// Refused by name: zero bandwidth, a link from a node to itself (almost always a mistyped end; dropped in silence the
// network would be another than the one written), equal node names, names that nodes do not declare, a graph in parts.
// Zero latency is allowed (an ideal network). Parallel links are kept: their capacities add, and routes spread over
// them.
//
// All faults go to the sink with file, line and column, up to its 20; reading stops there. Bounds: max_file_links
// links, max_file_nodes nodes, names of max_name_bytes; more is refused as soon as it is seen. Memory: about
// 60 bytes a link beside the text. Time: about 1 us a link as JSON, 2 as GraphML (10^7 links: see README.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/base/diagnostic.hpp"
#include "topologies/topology.hpp"

namespace tpusim::topologies {

inline constexpr std::int64_t max_file_links = 10'000'000;
inline constexpr std::int64_t max_file_nodes = max_topology_chips;
inline constexpr std::size_t max_name_bytes = 256;

// nullopt after an error. `file` is the name in diagnostics.
std::optional<Topology> read_edge_list(std::string_view text, const std::string& file, DiagnosticSink& sink);
std::optional<Topology> read_graphml(std::string_view text, const std::string& file, DiagnosticSink& sink);
// By the first character that is not space: '<' is GraphML. A file that cannot be read is an io diagnostic.
std::optional<Topology> read_topology_file(const std::string& path, DiagnosticSink& sink);

}  // namespace tpusim::topologies
