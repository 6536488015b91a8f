// Every move of every collective algorithm is dropped, doubled and misdirected in turn; then whole plans of a job are
// broken.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "faults_support.hpp"
#include "sim/session/verify/parts.hpp"

using namespace tpusim;
using namespace tpusim::tests;

namespace {

enum class What { nothing, drop, repeat, misdirect };
constexpr What kFaults[] = {What::drop, What::repeat, What::misdirect};

// Which move of which line algorithm is wrong. A plain function must serve as plan::LineSteps, hence the file's own
// state.
struct Fault {
  What what = What::nothing;
  plan::LineAlgorithm algorithm = plan::LineAlgorithm::ring;
  std::int64_t members = 0;
  std::size_t step = 0, move = 0;
};
Fault fault;

std::vector<plan::LineStep> wrong_steps(plan::LineAlgorithm algorithm, std::int64_t members, std::int64_t pieces) {
  std::vector<plan::LineStep> steps = plan::line_steps(algorithm, members, pieces);
  if (fault.what == What::nothing || algorithm != fault.algorithm || members != fault.members) return steps;
  plan::LineStep& step = steps[fault.step];
  const auto at = step.begin() + static_cast<std::ptrdiff_t>(fault.move);
  switch (fault.what) {
    case What::nothing:
      break;
    case What::drop:
      step.erase(at);
      break;
    case What::repeat:
      step.insert(at, *at);
      break;
    case What::misdirect:
      at->to = static_cast<std::int32_t>((at->to + 1) % members);
      break;
  }
  return steps;
}

plan::GroupAxis axis(int physical, std::int64_t size, fabric::Link link) {
  return {physical, size, 1, link, size, Seconds(1e-6), BytesPerSecond(1e9)};
}

// A switch along which every algorithm that one has is offered.
plan::GroupAxis offering(int physical, std::int64_t size) {
  plan::GroupAxis a = axis(physical, size, fabric::Link::switched);
  for (plan::LineAlgorithm algorithm :
       {plan::LineAlgorithm::ring, plan::LineAlgorithm::halving_doubling, plan::LineAlgorithm::direct,
        plan::LineAlgorithm::double_tree, plan::LineAlgorithm::in_network})
    a.offers.push_back({algorithm, fabric::Protocol::none, Seconds(0), a.alpha, a.beta});
  return a;
}

// Every kind on rings, lines and switches of 2 to 4 members, alone and two at a time.
std::vector<plan::CollectivePlan> all_plans() {
  std::vector<std::vector<plan::GroupAxis>> groups;
  for (fabric::Link link : {fabric::Link::ring, fabric::Link::line, fabric::Link::switched})
    for (std::int64_t n : {2, 3, 4}) groups.push_back({axis(0, n, link)});
  groups.push_back({axis(0, 3, fabric::Link::ring), axis(1, 4, fabric::Link::ring)});
  groups.push_back({axis(0, 2, fabric::Link::switched), axis(1, 4, fabric::Link::line)});
  for (std::int64_t n : {2, 3, 4}) groups.push_back({offering(0, n)});
  groups.push_back({offering(0, 2), offering(1, 3)});
  std::vector<plan::CollectivePlan> out;
  for (const auto& group : groups) {
    std::int64_t members = 1;
    for (const plan::GroupAxis& a : group) members *= a.size;
    for (plan::CollectiveKind kind :
         {plan::CollectiveKind::all_gather, plan::CollectiveKind::reduce_scatter, plan::CollectiveKind::all_reduce})
      for (const plan::Candidate& c : plan::candidates(kind, ir::Reduction::sum, 12 * members, 8, group))
        out.push_back(c.plan);
  }
  return out;
}

// A misdirected move that is no fault: what goes through the switch and back lands where a sum replaces it, and what a
// tree sends up past the parent, to one above it, is added there all the same.
bool harmless(plan::LineAlgorithm algorithm, const plan::Move& move, std::int64_t members, std::int64_t pieces) {
  if (algorithm == plan::LineAlgorithm::in_network) return move.from == move.to;
  if (algorithm != plan::LineAlgorithm::double_tree || !move.add) return false;
  const std::vector<std::int32_t> parents = plan::tree_parents(members, move.piece > pieces);
  for (std::int32_t above = move.to; above >= 0; above = parents[static_cast<std::size_t>(above)])
    if (above == (move.to + 1) % members) return true;
  return false;
}

std::string culprit_of(const plan::CollectivePlan& plan) {
  plan::StepProgram program;
  program.plans.push_back(plan);
  return session::check_collectives(program, 3, &wrong_steps).culprit;
}

}  // namespace

TEST_CASE(
    "each move of each collective algorithm dropped, doubled or misdirected is found, with the collective's name") {
  std::size_t planted = 0;
  for (const plan::CollectivePlan& plan : all_plans()) {
    INFO(plan::name_of(plan.kind), " ", plan.algorithm, " on ", plan.members);
    fault = {};
    REQUIRE(culprit_of(plan) == "");
    const std::string name = fmt::format("collective {} ({})", plan::name_of(plan.kind), plan.algorithm);
    std::set<std::tuple<int, std::int64_t, std::int64_t>> lines;
    for (const plan::Phase& phase : plan.phases)
      for (const plan::Phase::Work& work : phase.works)
        lines.emplace(static_cast<int>(work.algorithm), plan.axes[static_cast<std::size_t>(work.axis)].size,
                      std::min<std::int64_t>(3, work.pieces));  // as the check cuts them
    for (const auto& [algorithm, members, pieces] : lines) {
      const std::vector<plan::LineStep> steps =
          plan::line_steps(static_cast<plan::LineAlgorithm>(algorithm), members, pieces);
      for (std::size_t s = 0; s < steps.size(); ++s)
        for (std::size_t m = 0; m < steps[s].size(); ++m)
          for (What what : kFaults) {
            if (what == What::misdirect &&
                harmless(static_cast<plan::LineAlgorithm>(algorithm), steps[s][m], members, pieces))
              continue;
            fault = {what, static_cast<plan::LineAlgorithm>(algorithm), members, s, m};
            INFO(plan::name_of(fault.algorithm), ", step ", s, ", move ", m, ", fault ", static_cast<int>(what));
            REQUIRE(culprit_of(plan).find(name) == 0);
            ++planted;
          }
    }
  }
  fault = {};
  CHECK(planted > 1000);
}

TEST_CASE(
    "a phase left out or carried out twice in any collective plan of a job fails its verification, which names the "
    "collective") {
  // data, fsdp and tensor with sequence parallelism: gathers of parameters and of activations, scatters of gradients
  // and of activations, all-reduces of what is whole, of losses and of the norm.
  session::JobSpec spec = small_job(Style::llama, {{"data", 2}, {"fsdp", 2}, {"tensor", 2}});
  spec.strategies.sequence_parallel = true;
  const fabric::Fabric fabric = rings(spec);
  const session::Planned sound = session::make_plan(spec, fabric);
  session::Proof proof;
  proof.steps = 1;
  proof.gradient = false;
  REQUIRE(failures(prove(spec, sound, fabric, proof)) == "");
  std::set<plan::CollectiveKind> kinds;
  for (std::size_t p = 0; p < sound.program.plans.size(); ++p) {
    const plan::CollectivePlan& plan = sound.program.plans[p];
    if (plan.phases.empty()) continue;
    kinds.insert(plan.kind);
    for (What what : {What::drop, What::repeat, What::misdirect}) {
      session::Planned broken = sound;
      std::vector<plan::Phase>& phases = broken.program.plans[p].phases;
      if (what == What::drop) phases.pop_back();
      if (what == What::repeat) phases.push_back(phases.back());
      if (what == What::misdirect)  // copied where it should be added, added where it should be copied
        for (plan::Phase::Work& work : phases.back().works) work.reduce = !work.reduce;
      INFO("plan ", p, ": ", plan::name_of(plan.kind), " ", plan.algorithm, " of ", plan.shard_elements, " x ",
           plan.members, ", fault ", static_cast<int>(what));
      const result::Verification v = prove(spec, broken, fabric, proof);
      CHECK_FALSE(v.passed);
      INFO(failures(v));
      const char* op = plan.kind == plan::CollectiveKind::all_gather       ? "all_gather"
                       : plan.kind == plan::CollectiveKind::reduce_scatter ? "reduce_scatter"
                                                                           : "all_reduce";
      const char* plain = plan.kind == plan::CollectiveKind::all_gather       ? "all-gather"
                          : plan.kind == plan::CollectiveKind::reduce_scatter ? "reduce-scatter"
                                                                              : "all-reduce";
      // A copy made twice changes no value, only the bytes: then it is the tally that names the kind.
      CHECK((v.culprit.find(op) != std::string::npos || v.culprit.find(plain) != std::string::npos));
    }
  }
  CHECK(kinds.size() == 3);
}
