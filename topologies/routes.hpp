// Routes: which links a transfer from one chip to another crosses. Deterministic: the same pair always takes the same
// way.
//
// dimension_ordered (mesh, torus, hypercube): axis by axis, first to last, the shorter way round. Half-way round an
// even ring both ways are equally short: up is taken when the sum of the source's coordinates and of the destination's
// on the other axes is even, else down. That shares an all-to-all evenly over both directions wherever another axis is
// even, or half the ring is.
//
// shortest (everything else): the links' weights add up to the least, and of such ways one with the fewest links.
// At each node the next link is one of those that keep to that; which, is said by Topology::spread: a hash of
// source, destination and node, or the destination's number divided by the choices already made. In a fat tree this is
// up-down routing; in a dragonfly the weights make it minimal (local, global, local). Where chips do not forward, only
// the ends are chips.
//
// Broken links are left out. A dimension-ordered route that one of them lies on is replaced by a shortest path around;
// a pair with no way left gets an infeasible Verdict, not an error.
//
// Ignored: adaptive routing, virtual channels and deadlock (the networks here are lossless for a transfer's rate, not
// for packets).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/verdict.hpp"
#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct Route {
  Verdict verdict;                  // infeasible: "unreachable"
  std::vector<std::int32_t> links;  // in order; empty for a chip to itself
};

class Routes {
 public:
  // `topology` has to outlive this. A broken link is named by its number in Topology::links; break its twin too where
  // the cable is cut.
  explicit Routes(const Topology& topology, const std::vector<std::int32_t>& broken = {});

  // Dimension-ordered: O(hops). Shortest: one search over the topology; use towards() for many pairs.
  Route between(std::int32_t from, std::int32_t to) const;
  // From every chip to one node; entry i is chip i's. One search.
  std::vector<Route> towards(std::int32_t to) const;

  // What a shortest way from each node to `to` costs: weight and number of links. weight -1: no way.
  struct Distance {
    std::int32_t weight = -1;
    std::int32_t links = 0;
  };
  std::vector<Distance> distances(std::int32_t to) const;
  // The links out of `node` that begin a shortest way to the node whose distances are given.
  void next_links(std::int32_t node, std::int32_t to, const std::vector<Distance>& distance,
                  std::vector<std::int32_t>& out) const;

  const Topology& topology() const { return *topology_; }
  bool broken(std::int32_t link) const { return !broken_.empty() && broken_[static_cast<std::size_t>(link)]; }

 private:
  bool forwards(std::int32_t node) const { return topology_->chips_forward || node >= topology_->chips; }
  bool dimension_ordered(std::int32_t from, std::int32_t to, std::vector<std::int32_t>& links) const;
  std::int32_t link_between(std::int64_t from, std::int64_t to) const;
  Route walk(std::int32_t from, std::int32_t to, const std::vector<Distance>& distance) const;
  std::vector<Distance> by_hops(std::int32_t to) const;
  std::vector<Distance> by_weight(std::int32_t to) const;

  const Topology* topology_;
  Adjacency out_, in_;
  std::vector<bool> broken_;  // empty: none
  bool weighted_ = false;
};

// Ordered pairs of different chips whose route crosses each link, by the routes themselves. One search for each chip.
std::vector<std::int64_t> route_loads(const Routes& routes);

}  // namespace tpusim::topologies
