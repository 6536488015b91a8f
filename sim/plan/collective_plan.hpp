// A collective as transfer steps that both readers follow: numeric moves real chunks by them, timing turns the same
// steps into flows.
//
// A replica group is a grid: one dimension per GroupAxis. A plan is a list of phases in lockstep; a phase holds one or
// more parts (fractions of the data) at work at the same time, each running a one-dimensional algorithm along one axis
// of the grid, on every line of the grid at once. An all-reduce is a reduce-scatter followed by an all-gather. With V
// the gathered bytes, n members, a one hop's latency, W one direction of one link (derivations in tests/analytic):
//   one-way ring        (n-1)(a + V/(nW))
//   bidirectional ring  floor(n/2) a + V(n-1)/(2nW)      the opposite chunk of an even ring is halved
//   line                (n-1)(a + V/(nW))
//   k wrapped axes of size X, V in k parts in rotated order: k floor(X/2) a + V(1-1/n)/(2kW)
// Source: scaling book (jax-ml/scaling-book, sharding.md) gives their limits; R. Thakur, R. Rabenseifner, W. Gropp,
// IJHPCA 2005.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/inline_vector.hpp"
#include "sim/fabric/fabric.hpp"
#include "sim/ir/op.hpp"
#include "sim/spmd/placement.hpp"

namespace tpusim::plan {

enum class CollectiveKind : std::uint8_t { all_gather, reduce_scatter, all_reduce };
std::string_view name_of(CollectiveKind kind);

// One dimension of a replica group on the machine.
struct GroupAxis {
  int physical = 0;         // index into Fabric::axes
  std::int64_t size = 1;    // members along this dimension
  std::int64_t stride = 1;  // how many chips apart on the physical axis; its links are shared by `stride` groups
  fabric::Link link =
      fabric::Link::ring;  // ring only if the dimension closes on itself (a whole wrapped axis, or its major part)
  std::int64_t physical_size = 1;
  Seconds alpha;        // of one hop; a step between neighbours crosses `stride` hops (ring, line) or one (switched)
  BytesPerSecond beta;  // one direction, not yet divided by sharing
  InlineVector<fabric::Offer, fabric::max_offers> offers = {};
  bool operator==(const GroupAxis&) const = default;
};
// The group that mesh axes span, dimensions major to minor. Neighbouring parts of one physical axis are merged where
// they join up.
std::vector<GroupAxis> group_axes(const ir::MeshAxes& axes, const spmd::Placement& placement,
                                  const fabric::Fabric& fabric);

using LineAlgorithm = fabric::Algorithm;
std::string_view name_of(LineAlgorithm algorithm);
std::string_view name_of(fabric::Protocol protocol);  // "" for none
// Double trees and reduction in the network carry out an all-reduce by themselves; the others gather and scatter.
bool reduces_in_place(LineAlgorithm algorithm);

// One transfer of a one-dimensional algorithm on n members: `from` sends (a piece of) chunk `chunk` to `to`. In an
// all-gather chunk c starts at member c and is copied; in a reduce-scatter it is added and ends at member c; in an
// all-reduce in place everyone starts with its own values of every chunk and ends with the sums.
struct Move {
  static constexpr std::int32_t every_chunk = -1;
  std::int32_t from = 0, to = 0, chunk = 0;
  std::int32_t piece = 0;  // 0 whole, else the piece 1 .. pieces_of(algorithm, pieces)
  bool add = false;        // of an all-reduce in place: added to what is there, else put in its place
  bool free = false;       // a further copy that the switch makes: it leaves nobody's port
  // `from` == `to`: through the switch and back. Bytes on the port, without effect on the values.
  bool operator==(const Move&) const = default;
};
using LineStep = std::vector<Move>;  // moves of one step happen at once; the next begins when all have ended
// Steps of an all-gather, which a reduce-scatter runs backwards with from and to exchanged, adding; or of an all-reduce
// in place, in `pieces` pieces that follow one another (the length of the pipeline).
std::vector<LineStep> line_steps(LineAlgorithm algorithm, std::int64_t members, std::int64_t pieces = 1);
// `line_steps` unless a test puts another in its place, to see that the checks notice.
using LineSteps = std::vector<LineStep> (*)(LineAlgorithm algorithm, std::int64_t members, std::int64_t pieces);
// In how many pieces a chunk is cut: halves where it goes both ways round, `pieces` for each of two trees.
std::int64_t pieces_of(LineAlgorithm algorithm, std::int64_t pieces);

// What a step puts on the busiest link, or port, in each direction, in elements of one slot of a chunk: distinct steps
// and how often each occurs. The same as line_steps says (tests compare the two), without writing the moves down.
struct StepLoad {
  std::int64_t count = 0;
  std::int64_t forward = 0, backward = 0;  // of a port: out, in
  bool operator==(const StepLoad&) const = default;
};
using StepLoads = InlineVector<StepLoad, 24>;
StepLoads step_loads(LineAlgorithm algorithm, std::int64_t members, std::int64_t pieces, std::int64_t part_elements);

// One of the two trees of `double_tree`: the parent of each member, -1 for the root. In the second every member's
// number is mirrored, or shifted by one where n is odd, so that whoever has children in one is a leaf of the other (but
// for the root). Source: P. Sanders, J. Speck, J. L. Traff, "Two-tree algorithms for full bandwidth broadcast,
// reduction and scan", Parallel Computing 35(12), 2009.
std::vector<std::int32_t> tree_parents(std::int64_t members, bool second);

struct Phase {
  struct Work {
    std::int32_t part = 0;  // which part of the data
    std::int32_t axis = 0;  // index into Plan::axes
    LineAlgorithm algorithm = LineAlgorithm::ring;
    bool reduce = false;                     // reduce-scatter along the axis, else all-gather; or all-reduce in place
    std::int8_t offer = -1;                  // index into GroupAxis::offers; -1: the axis's own alpha and beta
    std::int64_t pieces = 1;                 // of an all-reduce in place
    InlineVector<std::int8_t, 8> free_axes;  // see chunk_slots
    std::int64_t slots = 1;                  // shards in one chunk: product of the sizes of free_axes
  };
  std::vector<Work> works;
};

struct CollectivePlan {
  CollectiveKind kind = CollectiveKind::all_gather;
  ir::Reduction reduction = ir::Reduction::sum;
  std::vector<GroupAxis> axes;  // major to minor
  std::int64_t members = 1;
  std::int64_t shard_elements =
      0;  // elements of one member's shard, padded up to equal parts (all-reduce: ceil(E / members))
  std::int64_t element_bytes = 0;
  std::vector<std::int64_t> part_elements;  // elements of the shard in each part; they sum to shard_elements
  std::vector<Phase> phases;
  std::string algorithm;  // "bidirectional ring on x", "2 parts on x, y (rotated)", "chip then host"
  // Bytes that one member sends in the whole collective: the mean over members (a line's ends send less), and the
  // largest.
  std::int64_t total_bytes = 0;  // sum over all members of one group
  double bytes_per_member() const { return static_cast<double>(total_bytes) / static_cast<double>(members); }
};

struct Candidate {
  CollectivePlan plan;
  Seconds alpha_term, beta_term;  // their sum is the estimate
};
// All candidates for a collective whose gathered size (all-gather, reduce-scatter) or tensor size (all-reduce) is
// `elements`, cheapest estimate first; ties by order of construction. Never empty (a group of one gives a plan without
// phases).
std::vector<Candidate> candidates(CollectiveKind kind, ir::Reduction reduction, std::int64_t elements,
                                  std::int64_t element_bytes, const std::vector<GroupAxis>& axes);
// How a candidate's time comes about, phase by phase: in symbols (a a step's latency, W a link's rate, V the size given
// to candidates() in bytes) and in numbers: "7 a + 0.438 V/W = 7 x 1 us + 8 MiB / 45 GB/s".
std::string formula_of(const CollectivePlan& plan, double bytes);
CollectivePlan choose(CollectiveKind kind, ir::Reduction reduction, std::int64_t elements, std::int64_t element_bytes,
                      const std::vector<GroupAxis>& axes);
// Which members' shards make up chunk `chunk` of a line through `member` in a work: those with coordinate `chunk` on
// the work's axis, `member`'s coordinate on the axes not free, any on the free ones. All-gather: free = gathered
// earlier in this part; reduce-scatter: free = still to be reduced. Member indices are row-major over Plan::axes;
// ascending. Numeric moves, for each of these members' slots, the part's elements (or a half: first = rounded up).
std::vector<std::int32_t> chunk_slots(const CollectivePlan& plan, std::size_t phase, std::size_t work,
                                      std::int32_t member, std::int32_t chunk);
// The elements [first, first + count) of one slot that a move carries of its `part_elements`: all, or piece 1 ..
// pieces, which begin at ceil(k part_elements / pieces).
struct Piece {
  std::int64_t first = 0, count = 0;
};
Piece piece_of(std::int64_t part_elements, std::int32_t piece, std::int64_t pieces);
// What a work pays on its axis: by its offer, or by the axis itself.
struct LinkCost {
  Seconds base, alpha;
  BytesPerSecond beta;
};
LinkCost link_cost(const GroupAxis& axis, const Phase::Work& work);
// Once for each collective: the largest `base` of its works.
Seconds base_seconds(const CollectivePlan& plan);
// Seconds of one step of a work on an otherwise idle fabric that puts `bytes` on its busiest link in each direction.
Seconds step_seconds(const GroupAxis& axis, const Phase::Work& work, double bytes);
// The same plan with another length of pipeline where it reduces in place (1 elsewhere); its bytes counted again.
CollectivePlan with_pieces(CollectivePlan plan, std::int64_t pieces);
// The same phases and works on axes of other sizes, with `part_elements` elements in every part that has any; its bytes
// counted again.
CollectivePlan resized(CollectivePlan plan, const std::vector<std::int64_t>& sizes, std::int64_t part_elements);

// "" or the numbered rule that a plan breaks: every chunk ends where its definition says, exactly once (plan.c1 ...).
std::string verify(const CollectivePlan& plan, LineSteps steps_of = &line_steps);

}  // namespace tpusim::plan
