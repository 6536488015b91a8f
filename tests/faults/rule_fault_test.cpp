// The sharding rule of every op that the models use is broken in turn; verification says whose it is.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "faults_support.hpp"

using namespace tpusim;
using namespace tpusim::tests;

namespace {

// Ways to state a rule wrongly. (To call a dim whole, or a linear op not linear, is no fault: it costs transfers and
// changes no value.)
enum class Wrong {
  sum_is_max,      // what is to be added is compared
  free_reduced,    // a dim that only some results lack is said to be in none of their sums
  all_linear,      // partial sums are said to pass through
  additive,        // the operation on partial sums is said to be a partial sum of results
  whole_parallel,  // what must be whole is said to be free
  crossed          // the first two dims of the first result are taken for one another
};
constexpr Wrong kWrongs[] = {Wrong::sum_is_max, Wrong::free_reduced,   Wrong::all_linear,
                             Wrong::additive,   Wrong::whole_parallel, Wrong::crossed};

// A plain function must serve as ir::ShardingRuleOf, hence the file's own state.
struct Fault {
  std::string op;
  Wrong wrong = Wrong::sum_is_max;
  std::set<std::string>* seen = nullptr;
  std::size_t planted = 0;
};
Fault fault;

bool plant_factor(ir::Factor& f, Wrong wrong) {
  const bool in_a_result = std::any_of(f.result_dim.begin(), f.result_dim.end(), [](std::int8_t d) { return d >= 0; });
  if (wrong == Wrong::sum_is_max && (f.kind == ir::FactorKind::sum || f.kind == ir::FactorKind::contracted))
    f.kind = ir::FactorKind::max;
  else if ((wrong == Wrong::free_reduced && f.kind == ir::FactorKind::sum && in_a_result) ||
           (wrong == Wrong::whole_parallel && f.kind == ir::FactorKind::whole))
    f.kind = ir::FactorKind::parallel;
  else if (wrong == Wrong::crossed && (f.result_dim[0] == 0 || f.result_dim[0] == 1))
    f.result_dim[0] = static_cast<std::int8_t>(1 - f.result_dim[0]);
  else
    return false;
  return true;
}

bool plant(ir::ShardingRule& rule, Wrong wrong) {
  bool changed = false;
  for (ir::Factor& f : rule.factors) changed = plant_factor(f, wrong) || changed;
  for (bool& linear : rule.linear)
    if (wrong == Wrong::all_linear && !linear) linear = changed = true;
  if (wrong == Wrong::additive && !rule.additive && rule.linear.size() > 1) rule.additive = changed = true;
  return changed;
}

ir::ShardingRule wrong_rule(const ir::OpKind& kind, const std::vector<ir::TensorType>& operands,
                            const std::vector<ir::TensorType>& results) {
  ir::ShardingRule rule = ir::sharding_rule(kind, operands, results);
  const std::string name(ir::op_name(kind));
  if (fault.seen != nullptr) fault.seen->insert(name);
  if (fault.op == name && (fault.wrong != Wrong::crossed || results[0].shape.size() > 1) && plant(rule, fault.wrong))
    ++fault.planted;
  return rule;
}

// Jobs whose tables bring each op into the places where its rule matters.
std::vector<session::JobSpec> jobs() {
  const auto split = [](std::initializer_list<std::pair<ir::Table, ir::Axis>> rules) {
    std::vector<strategies::HandRule> out;
    for (const auto& [table, axis] : rules) out.push_back({table, axis, ir::Place::none, {"tensor"}, ""});
    return out;
  };
  std::vector<session::JobSpec> out;
  out.push_back(small_job(Style::llama, {{"fsdp", 2}, {"tensor", 2}}));
  out.push_back(out[0]);
  out.back().model.kv_heads = 1;  // tensor goes to the query groups, which share keys and values
  out.push_back(small_job(Style::gpt2, {{"data", 2}, {"tensor", 2}}));
  out.back().attention = ir::AttentionKind::unfused;
  out.back().strategies.sequence_parallel = true;
  // embed split in parameters and activations: every product contracts over tensor, so partial sums reach every op
  // behind one.
  out.push_back(small_job(Style::palm, {{"data", 2}, {"tensor", 2}}));
  out.back().by_hand = split({{ir::Table::parameters, ir::Axis::embed}, {ir::Table::activations, ir::Axis::embed}});
  out.push_back(small_job(Style::gpt2, {{"data", 2}, {"tensor", 2}}));
  out.back().by_hand = out[3].by_hand;
  out.back().attention = ir::AttentionKind::unfused;
  // What rotary positions and attention want whole.
  out.push_back(small_job(Style::llama, {{"data", 2}, {"tensor", 2}}));
  out.back().by_hand = split({{ir::Table::activations, ir::Axis::seq}, {ir::Table::activations, ir::Axis::head_dim}});
  return out;
}

// "site 1 (layer), ..., forward: dot "q"", or "dot.c2: layer/op 3 dot: ..." where the program itself is unsound.
bool names(const std::string& culprit, const std::string& op) {
  return culprit.find(": " + op + " ") != std::string::npos || culprit.find(" " + op + ":") != std::string::npos;
}

}  // namespace

TEST_CASE("each op's sharding rule, stated wrongly, gives a plan that verification refuses, with the op's name") {
  std::map<std::string, int> named;
  for (const session::JobSpec& spec : jobs()) {
    const fabric::Fabric fabric = rings(spec);
    session::Proof proof;
    proof.steps = 1;
    proof.gradient = false;
    std::set<std::string> seen;
    fault = {};
    fault.seen = &seen;
    const session::Planned sound = plan_with(spec, fabric, &ir::vjp, &wrong_rule);
    REQUIRE(failures(prove(spec, sound, fabric, proof)) == "");
    const std::string text = plan::print(sound.program);
    for (const std::string& op : seen)
      for (Wrong wrong : kWrongs) {
        fault = {op, wrong, nullptr, 0};
        session::Planned planned;
        try {
          planned = plan_with(spec, fabric, &ir::vjp, &wrong_rule);
        } catch (const InternalError&) {
          continue;  // the partitioner's own checks were first
        }
        if (fault.planted == 0 || plan::print(planned.program) == text) continue;  // nothing here is split that way
        INFO(op, ", fault ", static_cast<int>(wrong));
        const result::Verification v = prove(spec, planned, fabric, proof);
        if (wrong == Wrong::additive && v.passed)
          continue;  // no two partial operands met: partial sums were only added sooner
        if (wrong == Wrong::all_linear && op == "mask_padding" && v.passed)
          continue;  // twice the fill masks the padding as well
        CHECK_FALSE(v.passed);
        if (names(v.culprit, op)) ++named[op];
      }
    for (const std::string& op : seen) named[op] += 0;
  }
  named.erase("fill");  // all its entries are alike: its rule cannot be wrong in a way that shows here
  for (const auto& [op, times] : named) {
    INFO(op);
    CHECK(times > 0);
  }
  CHECK(named.size() >= 30);
}
