// Builds a Topology from named nodes and links as a file gives them, one after another. Private to the readers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "topologies/topology.hpp"

namespace tpusim::topologies {

// Where a fault is: a JSON pointer or an element's path, and the byte in the text. The pointer of an element of a list
// is only written out for a fault: "/links" and 7 and "/to".
struct Spot {
  std::string pointer;
  std::size_t offset = 0;
  const char* list = nullptr;
  std::int64_t index = 0;
  std::string text() const;
};

// One node or link as written; what is missing is nullopt. Values are already in SI units.
struct NodeFields {
  std::string name;
  std::optional<std::string> kind;
  std::optional<double> host, slice;
};
struct LinkFields {
  std::optional<std::string> from, to;
  std::optional<double> bandwidth, latency;
  std::optional<bool> both_ways, half_duplex;
};

class Assembler {
 public:
  Assembler(std::string_view text, std::string file, DiagnosticSink& sink)
      : text_(text), file_(std::move(file)), sink_(sink) {}

  void fault(Code code, const Spot& spot, std::string message, std::string suggestion = {},
             std::vector<std::string> choices = {});
  // Enough faults: reading should stop.
  bool full() const;
  // False when reading should stop: a bound is passed, or the sink is full.
  bool add_node(const NodeFields& fields, const Spot& spot);
  bool add_link(const LinkFields& fields, const Spot& spot);
  // Names in links have to be declared from now on.
  void declare_nodes() { declared_ = true; }
  void set_chips_forward(bool forward) { topology_.chips_forward = forward; }
  // Defaults may come after the links that use them.
  void set_default_bandwidth(double value, const Spot& spot);
  void set_default_latency(double value, const Spot& spot);
  // The topology, or nullopt after a fault.
  std::optional<Topology> finish();

 private:
  struct RawLink {
    std::int32_t from, to, cls;
    bool both_ways;
  };
  std::int32_t node_of(const std::string& name, const Spot& spot);
  std::int32_t class_of(double bandwidth, double latency, bool half_duplex);
  bool in_range(double value, double least, const char* field, const Spot& spot);
  std::optional<std::int32_t> index_of(const std::optional<double>& value, const char* field, const Spot& spot);
  void resolve_defaults();
  void place_nodes();
  void check_connected();

  std::string_view text_;
  std::string file_;
  DiagnosticSink& sink_;
  Topology topology_;
  bool declared_ = false;
  int faults_ = 0;
  std::unordered_map<std::string, std::int32_t> numbers_;  // looked up, never walked
  std::vector<std::string> names_;
  std::vector<RawLink> links_;
  std::map<std::tuple<double, double, bool>, std::int32_t> classes_;  // bandwidth or latency -1: the default
  std::vector<std::tuple<double, double, bool>> class_values_;
  std::vector<Spot> class_spots_;  // the first link of each class
  std::optional<double> default_bandwidth_, default_latency_;
};

}  // namespace tpusim::topologies
