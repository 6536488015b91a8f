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
// Links. A full-duplex cable is two links, one each way; what both ways share (a bus, a PCIe switch) is one link that
// routes of both ways cross; a non-blocking resource (a switch's core) holds each flow to its capacity and shares
// nothing, so it never connects two flows (SimGrid calls it a fat pipe).
//
// Folding. A flow may stand for many equal ones and a link for many equal links; a hop says how many of those flows
// cross each of those links. A link's load is the sum of count x rate over distinct rates in ascending order, so a
// folded and an unfolded network get the same rates bit for bit. All flows that end at one instant leave before rates
// are solved again, in ascending (order, id).
//
// Cost. A solve touches only the connected part of the network in which something changed: O(h log l) for h hops over l
// links, as a link's share only rises while rates are filled and so is looked at again only when it comes up. Where
// flows only left, rates below the lowest of theirs stay (fluid_solve.cpp says why), and those flows are not searched.
// A flow alone on its only link costs O(1). Starts, ends and solves allocate nothing once the network has grown to its
// largest size.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "sim/base/strong_id.hpp"
#include "sim/base/units.hpp"
#include "sim/engine/calendar.hpp"
#include "sim/engine/simulator.hpp"

namespace tpusim::engine {

using LinkId = StrongId<struct LinkTag>;
// Names one flow once; an old id never names a new flow.
struct FlowId {
  std::int32_t slot = -1;
  std::uint64_t number = 0;  // counts up from 1; 0: none
  bool operator==(const FlowId&) const = default;
};

enum class Sharing : std::uint8_t {
  shared,        // the flows' rates add up to at most the capacity
  non_blocking,  // each flow alone gets at most the capacity
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
  LinkId add_link(BytesPerSecond capacity, Sharing sharing = Sharing::shared);
  void set_capacity(LinkId link, BytesPerSecond capacity);
  BytesPerSecond capacity(LinkId link) const {
    return BytesPerSecond(links_.at(static_cast<std::size_t>(link.index)).capacity);
  }

  // Starts now. `done` runs when the last byte has arrived. Without bytes a flow ends after its latency. The spec is
  // copied: a caller that starts many flows keeps one and its route's memory.
  FlowId start(const FlowSpec& spec, Action done);
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
  // One link of one flow's route, and where the link's list has it, so that a flow leaves in O(its hops).
  struct HopState {
    std::int64_t count = 0;
    std::int32_t link = -1, position = -1;
  };
  struct Crossing {
    std::int32_t slot = -1, hop = -1;
  };
  struct LinkState {
    double capacity = 0;
    std::vector<Crossing> flows;  // one entry per hop of a moving flow
    Sharing sharing = Sharing::shared;
    bool dirty = false, in_part = false, touched = false;
  };
  // Scratch of a solve, by link.
  struct Filling {
    std::int64_t open = 0;      // crossings by flows without a rate yet
    double used = 0;            // sum of count x rate of the rates below `level`
    double level = 0;           // the last rate fixed on this link ...
    std::int64_t at_level = 0;  // ... and the crossings that have it
    double key = 0;             // share at which the heap has it: never above the true one
  };
  enum class Phase : std::uint8_t { free, latency, moving };
  struct alignas(64) FlowState {  // what a start, a solve and an end read, in one cache line
    std::uint64_t number = 0;
    double rate = 0, remaining = 0;  // at `since`
    SimTime since;
    double bound = 0;
    CalendarPlace place;      // arrivals_ while in latency, finishes_ while moving
    std::int32_t hops = -1;   // its block in hops_
    std::uint16_t route = 0;  // hops, of which the first `shared` are over shared links
    std::uint16_t shared = 0;
    Phase phase = Phase::free;
    std::int8_t block = -1;  // the block has 2^block hops
  };
  struct FlowEnd {  // what only the end reads
    Action done;
    std::int64_t order = 0;
    Handle event;  // of a flow without bytes
  };
  // Of a flow in a solve; apart from the flows, since every hop of a part asks for it and all of them fit into a cache.
  enum class Mark : std::uint8_t { none, in_part, fixed };
  struct Ended {
    std::int64_t order;
    std::uint64_t number;
    std::int32_t slot;
  };

  const FlowState* find(FlowId id) const;  // nullptr when it has ended
  std::int32_t take_slot();
  void store_route(FlowState& flow, const std::vector<Hop>& route);
  void begin_moving(std::int32_t slot);
  void leave(std::int32_t slot);  // out of its links; the slot is free
  void touch(std::int32_t link);
  void touch_flow(std::int32_t slot);
  void request_solve();
  void arm(Handle& event, SimTime& armed, Calendar& calendar, Priority priority, void (FluidNetwork::*what)());
  void arm_wake();
  void wake();
  void arrive();
  void end(std::int32_t slot);

  // fluid_solve.cpp
  void solve();
  bool solve_alone(std::int32_t link);
  void collect_part(std::int32_t seed_link);
  void take_kept(std::int32_t link);
  void solve_part();
  void fill_part();
  double next_level(double level);
  std::size_t fix_full(double level, double next);
  void fix_flow(std::int32_t slot, double rate);
  void lower_keys();
  void push_key(std::int32_t link);
  double share(std::int32_t link) const;
  double bound_of(const FlowState& flow) const;
  void apply_rate(std::int32_t slot, double rate);

  LinkState& link(std::int32_t index) { return links_[static_cast<std::size_t>(index)]; }
  FlowState& flow(std::int32_t slot) { return flows_[static_cast<std::size_t>(slot)]; }
  HopState& hop(std::int32_t index) { return hops_[static_cast<std::size_t>(index)]; }
  Mark& mark(std::int32_t slot) { return marks_[static_cast<std::size_t>(slot)]; }
  Filling& filling(std::int32_t index) { return fillings_[static_cast<std::size_t>(index)]; }
  auto place() {
    return [this](std::int32_t slot) -> CalendarPlace& { return flow(slot).place; };
  }

  Simulator& simulator_;
  std::vector<LinkState> links_;
  std::vector<FlowState> flows_;
  std::vector<FlowEnd> ends_;
  std::vector<std::int32_t> free_;
  std::vector<HopState> hops_;
  std::vector<std::vector<std::int32_t>> free_blocks_;  // by log2 of their size
  std::size_t active_ = 0;
  std::uint64_t next_number_ = 1, solves_ = 0;
  Calendar arrivals_, finishes_;
  Handle arrive_event_, wake_event_, solve_event_;
  SimTime arrive_at_, wake_at_;
  std::vector<std::int32_t> dirty_links_;
  std::vector<std::int32_t> dirty_flows_;  // moving flows without shared links
  std::vector<Ended> ended_;
  std::vector<Action> actions_;
  // The part of the network being solved.
  std::vector<Filling> fillings_;  // by link
  std::vector<Mark> marks_;        // by slot; none between solves
  std::vector<double> rates_;      // by slot
  std::vector<std::int32_t> part_links_, part_flows_, full_, touched_;
  std::vector<std::pair<double, std::int32_t>> heap_, bounded_;  // links by share, flows by bound
  std::size_t bounded_taken_ = 0;
  std::vector<std::pair<double, std::int32_t>> kept_;            // on one link: rates below keep_below_, and their hops
  double keep_below_ = std::numeric_limits<double>::infinity();  // rates below hold through the next solve
};

}  // namespace tpusim::engine
