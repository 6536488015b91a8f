// Neighbour links along axes: ring, line, mesh, torus of any number of dimensions, twisted torus, hypercube.
//
// Chips lie on a grid of X_1 x ... x X_d. Two chips are linked when they differ by one step on one axis; on a wrapped
// axis the ends are linked too. An axis of two chips has one link between them, wrapped or not, as on the machine. A
// torus whose axes all wrap looks the same from every chip: distance on a ring of X is at most floor(X/2), and even X
// has the mean X/4 over all ordered pairs, a chip with itself included. Halves meet in 2 N/X links for the longest even
// X (Dally and Towles, Principles and Practices of Interconnection Networks, 2004, section 5.2). Routes go
// dimension by dimension, the shorter way round.
//
// A twisted torus moves the later axes when it wraps: with k x k x 2k each turn around a short axis moves the long one
// by k, which evens out the distances (Camara et al., Twisted torus topologies for enhanced interconnection networks,
// IEEE TPDS 2010; Jouppi et al., TPU v4, ISCA 2023, section 2.8). Its routes are shortest paths, spread by a hash.
//
// A hypercube is a torus with d axes of two chips: diameter d, mean d/2, bisection 2^(d-1) links.
//
// Ignored: the optical switches between cubes (no hop of their own), and links that differ within one axis.
#pragma once

#include "topologies/topology.hpp"

namespace tpusim::topologies {

struct GridOptions {
  Shape shape;
  std::vector<bool> wrapped;     // one an axis
  std::vector<LinkClass> links;  // one an axis, or one for all
  // As Grid::twist; not empty only where every axis wraps and is longer than 2.
  std::vector<Shape> twist;
};
// Broken options are an InternalError, more than max_topology_chips chips a CapacityError.
Topology grid(const GridOptions& options);

// All axes wrapped, none wrapped; the same link everywhere.
Topology torus(const Shape& shape, const LinkClass& link);
Topology mesh(const Shape& shape, const LinkClass& link);
Topology ring(std::int64_t chips, const LinkClass& link);
// 2^dimensions chips.
Topology hypercube(int dimensions, const LinkClass& link);

// The twist of a slice k x k x 2k or k x 2k x 2k (in this order of its axes), k a multiple of 4 (the optical switches
// join cubes of 4); empty for other shapes. Source: Google Cloud documentation, docs.cloud.google.com/tpu/docs/v4 and
// v5p.
std::vector<Shape> slice_twist(const Shape& shape);
Topology twisted_torus(const Shape& shape, const LinkClass& link);  // InternalError where slice_twist is empty

// Neighbour links of a part of a larger topology, whose chips start at `first`: used by builders of several slices.
void add_grid_links(Topology& topology, const Grid& grid, std::int64_t first);

}  // namespace tpusim::topologies
