// Transfers that share links, as fluids: the max-min fair network.
//
// A link l has a capacity C_l (bytes/s). A flow f has bytes to move over a route of links and, while it moves, a rate
// r_f that is constant between two instants at which the set of flows changes. Rates are feasible when on every link
// the sum of the rates of the flows that cross it is at most C_l, and r_f is at most the flow's own bound. They are
// max-min fair when no rate can be raised without lowering one that is not larger. That allocation is unique and found
// by progressive filling: raise all rates together until a link is full or a bound is met, fix the flows there, go on
// with the rest. A flow of b bytes over an idle route with latency a ends a + b / min C_l after its start: latency is
// paid once, before the first byte moves. Ignored: packets, windows, unfairness by round-trip time, the time that a
// change of rates needs to spread. It holds for long transfers on links with hardware flow control (ICI, NVLink,
// InfiniBand). Source: D. Bertsekas, R. Gallager, "Data Networks", 2nd ed., 6.5.2 (max-min fairness, progressive
// filling); A. Legrand et al., SimGrid's LMM solver (the same model, by which the tests check this one).
//
// Folding. A flow may stand for many equal ones and a link for many equal links; a hop says how many of those flows
// cross each of those links. A link's load is the sum of count x rate over distinct rates in ascending order, so a
// folded and an unfolded network get the same rates bit for bit. All flows that end at one instant leave before rates
// are solved again, in ascending (order, id). Cost: a solve touches only the connected part of the network in which
// something changed: O(rounds x its hops).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/base/strong_id.hpp"
#include "sim/base/units.hpp"
#include "sim/engine/simulator.hpp"

namespace tpusim::engine {

using LinkId = StrongId<struct LinkTag>;
// Names one flow once; an old id never names a new flow.
struct FlowId {
  std::int32_t slot = -1;
  std::uint64_t number = 0;  // counts up from 1; 0: none
  bool operator==(const FlowId&) const = default;
};

struct Hop {
  LinkId link;
  // Flows, of those that this one stands for, that cross each link that `link` stands for.
  std::int64_t count = 1;
};

struct FlowSpec {
  std::vector<Hop> route;  // empty: only the bound and the latency hold
  Bytes bytes;             // of one flow
  SimTime latency;         // once, before the first byte
  BytesPerSecond bound{std::numeric_limits<double>::infinity()};
  std::int64_t order = 0;  // ties at one instant: lower first, then the flow started first
};

class FluidNetwork {
 public:
  explicit FluidNetwork(Simulator& simulator) : simulator_(simulator) {}
  FluidNetwork(const FluidNetwork&) = delete;
  FluidNetwork& operator=(const FluidNetwork&) = delete;

  // Capacity 0 is a link that is down: flows over it wait. InternalError when negative or NaN; infinite is allowed.
  LinkId add_link(BytesPerSecond capacity);
  void set_capacity(LinkId link, BytesPerSecond capacity);
  BytesPerSecond capacity(LinkId link) const {
    return BytesPerSecond(links_.at(static_cast<std::size_t>(link.index)).capacity);
  }

  // Starts now. `done` runs when the last byte has arrived. Without bytes a flow ends after its latency.
  FlowId start(FlowSpec spec, Action done);
  // False when the flow has ended. Its `done` does not run.
  bool cancel(FlowId flow);

  // 0 for a flow that has not begun to move, waits for a solve, or has ended.
  BytesPerSecond rate(FlowId flow) const;
  // Bytes not yet moved, at now(); 0 for a flow that has ended.
  Bytes remaining(FlowId flow) const;
  // Sum of the rates over a link, as of the last solve.
  BytesPerSecond load(LinkId link) const;
  std::size_t active_flows() const { return active_; }
  std::uint64_t solves() const { return solves_; }

 private:
  struct LinkState {
    double capacity = 0;
    std::vector<std::int32_t> flows;  // slots of moving flows; one entry per hop
    bool dirty = false;
    // Scratch of a solve.
    std::int64_t open = 0;      // crossings by flows without a rate yet
    double used = 0;            // Σ count x rate of the rates below `level`
    double level = -1;          // the last rate fixed on this link ...
    std::int64_t at_level = 0;  // ... and the crossings that have it
    bool in_part = false;
  };
  enum class Phase : std::uint8_t { free, latency, moving };
  struct FlowState {
    std::uint64_t number = 0;
    Phase phase = Phase::free;
    std::vector<Hop> route;
    double bound = 0;
    std::int64_t order = 0;
    double rate = 0;
    double remaining = 0;  // at `since`
    SimTime since;
    Handle start_event;   // while in latency
    Handle finish_event;  // in finishes_
    Action done;
    // Scratch of a solve.
    bool in_part = false, fixed = false;
    double new_rate = 0;
  };

  const FlowState* find(FlowId id) const;  // nullptr when it has ended
  void begin_moving(std::int32_t slot);
  void leave(std::int32_t slot);  // out of its links; the slot is free
  void touch(LinkId link);
  void request_solve();
  void solve();
  void collect_part(std::size_t seed_link);
  void take_into_part(std::int32_t slot);
  void solve_part();
  void fill_part();
  void fix_flow(FlowState& flow, double rate);
  void apply_rates();
  void arm_wake();
  void wake();
  void end(std::int32_t slot);
  LinkState& link(LinkId id) { return links_[static_cast<std::size_t>(id.index)]; }
  FlowState& flow(std::int32_t slot) { return flows_[static_cast<std::size_t>(slot)]; }

  Simulator& simulator_;
  std::vector<LinkState> links_;
  std::vector<FlowState> flows_;
  std::vector<std::int32_t> free_;
  std::size_t active_ = 0;
  std::uint64_t next_number_ = 1, solves_ = 0;
  EventQueue<std::int32_t> finishes_;  // slots by finish time
  Handle wake_event_, solve_event_;
  std::vector<std::size_t> dirty_links_;
  std::vector<std::int32_t> dirty_flows_;  // moving flows without links
  // The part of the network being solved.
  std::vector<std::size_t> part_links_;
  std::vector<std::int32_t> part_flows_;
};

}  // namespace tpusim::engine
