// Every derivative (vector-Jacobian product) that the models use is broken in turn; verification says whose it is.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "faults_support.hpp"

using namespace tpusim;
using namespace tpusim::tests;

namespace {

// The fault: of which op, and which of its gradients is 1.5 times what it should be. A plain function must serve as
// ir::Vjp, hence the file's own state; the tests of an executable run one after the other.
struct Fault {
  std::string op;
  std::size_t gradient = 0;
  std::map<std::string, std::size_t>* seen = nullptr;  // by op: gradients that it has
  std::size_t planted = 0;
};
Fault fault;

InlineVector<ir::ValueId, 8> wrong_vjp(const ir::Op& op, const InlineVector<ir::ValueId, 4>& dy,
                                       ir::VjpContext& context) {
  InlineVector<ir::ValueId, 8> out = ir::vjp(op, dy, context);
  const std::string name(ir::op_name(op.kind));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!out[i].valid()) continue;
    if (fault.seen != nullptr) (*fault.seen)[name] = std::max((*fault.seen)[name], i + 1);
    if (name != fault.op || i != fault.gradient) continue;
    const ir::Value& x = context.program.value(op.operands[i]);
    // Through the scale that differentiate() would use, so that the type is the gradient's own.
    const ir::Value made = context.program.value(out[i]);
    out[i] = context.builder.map(ir::Elementwise::scale, out[i], {made.label, x.type.place, made.table}, 1.5);
    ++fault.planted;
  }
  return out;
}

session::JobSpec job(Style style, ir::AttentionKind attention) {
  session::JobSpec spec = small_job(style, {{"fsdp", 2}, {"tensor", 2}});
  spec.attention = attention;
  return spec;
}

}  // namespace

TEST_CASE("each derivative that is off by half is found by verification, which names the op") {
  std::set<std::string> done;
  std::vector<session::JobSpec> jobs;
  for (Style style : {Style::llama, Style::gpt2})
    for (ir::AttentionKind attention : {ir::AttentionKind::flash, ir::AttentionKind::unfused})
      jobs.push_back(job(style, attention));
  jobs.push_back(job(Style::gpt2, ir::AttentionKind::flash));
  jobs.back().model.activation = models::Activation::relu;
  for (const session::JobSpec& spec : jobs) {
    const fabric::Fabric fabric = rings(spec);
    session::Proof proof;
    proof.vjp = &wrong_vjp;
    proof.steps = 1;
    std::map<std::string, std::size_t> seen;
    fault = {};
    fault.seen = &seen;
    const session::Planned sound = plan_with(spec, fabric, &wrong_vjp, &ir::sharding_rule);
    REQUIRE(failures(prove(spec, sound, fabric, proof)) == "");
    for (const auto& [op, gradients] : seen)
      for (std::size_t i = 0; i < gradients; ++i) {
        if (done.count(op + " " + std::to_string(i)) > 0) continue;
        fault = {op, i, nullptr, 0};
        INFO(op, ", gradient of operand ", i);
        const session::Planned planned = plan_with(spec, fabric, &wrong_vjp, &ir::sharding_rule);
        if (fault.planted == 0) continue;  // an integer operand, or a gradient that nothing asks for here
        done.insert(op + " " + std::to_string(i));
        const result::Verification v = prove(spec, planned, fabric, proof);
        CHECK_FALSE(v.passed);
        INFO(failures(v));
        CHECK(v.culprit.find("the derivative of " + op + " ") == 0);
      }
  }
  // All that a decoder is made of, and each product on both sides.
  for (const char* op :
       {"dot 0",     "dot 1",       "flash 0",      "flash 1",       "flash 2",        "lookup 0",   "pick 0",
        "rope 0",    "rename 0",    "reduce.sum 0", "mask_causal 0", "mask_padding 0", "map.mul 0",  "map.mul 1",
        "map.add 0", "map.add 1",   "map.sub 0",    "map.silu 0",    "map.relu 0",     "map.gelu 0", "map.exp 0",
        "map.log 0", "map.rsqrt 0", "map.square 0", "map.scale 0"}) {
    INFO(op);
    CHECK(done.count(op) == 1);
  }
}
