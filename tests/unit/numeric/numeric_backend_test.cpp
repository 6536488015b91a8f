// Whole steps on several devices against the same model on one, through the real planner and interpreter.
#include "sim/numeric/numeric_backend.hpp"

#include <doctest/doctest.h>

#include "sim/numeric/reference_run.hpp"
#include "sim/run/interpreter.hpp"
#include "tests/unit/numeric/small_model_support.hpp"

using namespace tpusim;
using namespace tpusim::numeric;
using tpusim::numeric::testing::Asked;
using tpusim::numeric::testing::SmallModel;

namespace {

struct Outcome {
  std::vector<double> losses;
  std::map<std::string, Tensor> parameters;
  std::vector<run::Tally> tallies;
  double replica_difference = 0;
  bool operator==(const Outcome&) const = default;
};

const InitialSettings kSettings{7, 0.3, false};

Outcome run_sharded(const plan::StepProgram& program, const Order& order, int steps = 3,
                    const InitialSettings& settings = kSettings) {
  NumericBackend backend(program);
  backend.initialize(initial_values(program, settings));
  backend.set_batches(batch_values(program, settings));
  backend.set_transport_seed(order.seed);
  run::Interpreter<NumericBackend> interpreter(program, run::Folding::per_device, backend);
  Outcome outcome;
  for (int step = 1; step <= steps; ++step) {
    backend.reset_tally();
    const auto stall = interpreter.run(step);
    REQUIRE(!stall.has_value());
    backend.execute(order);
    outcome.losses.push_back(testing::whole_loss(program, backend));
    outcome.tallies.push_back(backend.tally());
  }
  outcome.parameters = testing::whole_parameters(program, backend, outcome.replica_difference);
  return outcome;
}

// Losses and parameters within 1e-12 x max(1, magnitude) of one device: a few hundred additions in another order.
void check_equals_one_device(const Asked& asked) {
  const SmallModel small(asked);
  const plan::StepProgram program = small.lower();
  const Outcome sharded = run_sharded(program, Order{1, 1});
  ReferenceModel reference(small.model, small.options.optimizer, small.options.gradient_dtype,
                           small.options.master_dtype, kSettings);
  for (int step = 0; step < 3; ++step) {
    const double loss = reference.step(step, asked.microbatches);
    CHECK(std::abs(loss - sharded.losses[static_cast<std::size_t>(step)]) <= 1e-12 * std::max(1.0, std::abs(loss)));
  }
  CHECK(sharded.replica_difference == 0);
  REQUIRE(sharded.parameters.size() == reference.parameters().size());
  for (const auto& parameter : reference.parameters()) {
    const std::string& key = parameter.first;
    const Tensor& value = parameter.second;
    CAPTURE(key);
    CHECK(max_difference(value, sharded.parameters.at(key)) <= 1e-12 * std::max(1.0, max_magnitude(value)));
  }
}

}  // namespace

TEST_CASE("one device through planner and interpreter gives exactly the reference's numbers") {
  const SmallModel small(Asked{});
  const plan::StepProgram program = small.lower();
  const Outcome outcome = run_sharded(program, Order{});
  ReferenceModel reference(small.model, small.options.optimizer, small.options.gradient_dtype,
                           small.options.master_dtype, kSettings);
  for (int step = 0; step < 3; ++step) CHECK(reference.step(step, 1) == outcome.losses[static_cast<std::size_t>(step)]);
  CHECK(outcome.parameters == reference.parameters());
}

TEST_CASE("sharded runs equal one device: data, fsdp of every stage, tensor and mixes") {
  for (int zero : {1, 2, 3}) {
    check_equals_one_device({.mesh = {{"fsdp", 4}}, .zero = zero});
    check_equals_one_device({.mesh = {{"data", 2}, {"fsdp", 2}, {"tensor", 2}}, .zero = zero, .microbatches = 2});
  }
  check_equals_one_device({.mesh = {{"data", 4}}, .microbatches = 2, .clip = 0.05});
  check_equals_one_device({.mesh = {{"tensor", 4}}, .tied = true, .clip = 0.05});
  check_equals_one_device({.mesh = {{"fsdp", 2}, {"tensor", 2}}, .tied = true, .microbatches = 3});
}

TEST_CASE("every optimizer gives on a mesh what it gives on one device, Adafactor's split means included") {
  for (ir::Optimizer optimizer :
       {ir::Optimizer::sgd, ir::Optimizer::momentum, ir::Optimizer::adam, ir::Optimizer::adafactor}) {
    check_equals_one_device({.mesh = {{"fsdp", 4}}, .optimizer = optimizer});
    check_equals_one_device(
        {.mesh = {{"fsdp", 2}, {"tensor", 2}}, .zero = 1, .microbatches = 2, .optimizer = optimizer});
  }
}

TEST_CASE("pipelined runs equal one device, tied embeddings and clipping over stages included") {
  for (bool gpipe : {false, true}) {
    check_equals_one_device({.mesh = {{"pipeline", 2}}, .gpipe = gpipe, .microbatches = 2});
    check_equals_one_device(
        {.mesh = {{"pipeline", 2}, {"data", 2}}, .tied = true, .gpipe = gpipe, .microbatches = 3, .clip = 0.05});
  }
  check_equals_one_device(
      {.mesh = {{"pipeline", 2}, {"fsdp", 2}, {"tensor", 2}}, .tied = true, .microbatches = 2, .clip = 0.05});
}

TEST_CASE("every order and number of threads gives the same bits and the same tally") {
  const SmallModel small(
      {.mesh = {{"pipeline", 2}, {"fsdp", 2}, {"tensor", 2}}, .tied = true, .microbatches = 2, .clip = 0.05});
  const plan::StepProgram program = small.lower();
  const Outcome first = run_sharded(program, Order{1, 1});
  for (std::uint64_t seed : {2u, 3u, 4u}) CHECK(run_sharded(program, Order{seed, 1}) == first);
  CHECK(run_sharded(program, Order{5, 2}) == first);
  CHECK(run_sharded(program, Order{6, 4}) == first);
}

TEST_CASE("the counted tally is what the plan says: peak memory, operations and wire bytes") {
  const SmallModel small({.mesh = {{"data", 2}, {"fsdp", 2}}, .microbatches = 2});
  const plan::StepProgram program = small.lower();
  const Outcome outcome = run_sharded(program, Order{1, 1});
  CHECK(outcome.tallies[0] == outcome.tallies[1]);
  CHECK(outcome.tallies[0].peak_bytes == program.memory[0].peak_bytes);
  // Products of one microbatch of 8 x 3 tokens: per layer 2 x (2 x 24 x 8 x 16) forward and twice that backward, head 2
  // x 24 x 8 x 12 forward and twice that backward: 3 x (2 x 12288 + 4608) over all devices; two microbatches.
  CHECK(outcome.tallies[0].executed_flops == 2 * 3 * (2 * 12288 + 4608));
}

TEST_CASE("sgd on integers is exact: loss and parameters are one device's, bit for bit, on every mesh") {
  // All sums are of integers below 2^53, so their order does not matter; the update is then the same arithmetic on the
  // same numbers.
  const InitialSettings integers{3, 1, true};
  using Mesh = std::vector<std::pair<std::string, std::int64_t>>;
  for (const Mesh& mesh :
       {Mesh{{"fsdp", 2}, {"tensor", 2}}, Mesh{{"data", 4}}, Mesh{{"pipeline", 2}, {"tensor", 4}}, Mesh{{"fsdp", 8}}}) {
    const SmallModel small(
        {.mesh = mesh, .layers = 1, .microbatches = 2, .optimizer = ir::Optimizer::sgd, .squared = true});
    const plan::StepProgram program = small.lower();
    const Outcome outcome = run_sharded(program, Order{1, 1}, 1, integers);
    ReferenceModel reference(small.model, small.options.optimizer, small.options.gradient_dtype,
                             small.options.master_dtype, integers);
    CHECK(reference.step(0, 2) == outcome.losses[0]);
    CHECK(outcome.parameters == reference.parameters());
  }
}

TEST_CASE("bf16 parameters keep f32 masters that begin with the same values") {
  const SmallModel small({.mesh = {{"fsdp", 2}}, .dtype = ir::DType::bf16});
  const plan::StepProgram program = small.lower();
  const Outcome outcome = run_sharded(program, Order{1, 1});
  ReferenceModel reference(small.model, small.options.optimizer, small.options.gradient_dtype,
                           small.options.master_dtype, kSettings);
  for (int step = 0; step < 3; ++step) reference.step(step, 1);
  // bf16 has 8 bits: partial sums in another order differ by a few units in the last place, 2^-8, of values below 2.
  for (const auto& [key, value] : reference.parameters())
    CHECK(max_difference(value, outcome.parameters.at(key)) <= 8.0 / 256);
  CHECK(outcome.replica_difference == 0);
}

TEST_CASE("a given order is replayed, and an order that breaks a dependence is an error") {
  const SmallModel small({.mesh = {{"fsdp", 2}}});
  const plan::StepProgram program = small.lower();
  const Outcome shuffled = run_sharded(program, Order{1, 1}, 1);
  const auto prepared = [&](NumericBackend& backend) {
    backend.initialize(initial_values(program, kSettings));
    backend.set_batches(batch_values(program, kSettings));
    run::Interpreter<NumericBackend> interpreter(program, run::Folding::per_device, backend);
    CHECK(!interpreter.run(1).has_value());
  };
  NumericBackend backend(program);
  prepared(backend);
  // All finish at one instant: ties go by issue, which is a legal order.
  std::vector<std::int64_t> finish(static_cast<std::size_t>(backend.issues()), 0);
  backend.execute_in_order(backend.order_by_finish(finish));
  CHECK(testing::whole_loss(program, backend) == shuffled.losses[0]);

  NumericBackend reversed(program);
  prepared(reversed);
  for (std::size_t i = 0; i < finish.size(); ++i) finish[i] = -static_cast<std::int64_t>(i);
  CHECK_THROWS_AS(reversed.execute_in_order(reversed.order_by_finish(finish)), InternalError);
}

TEST_CASE("the observer sees every value of a step, those inside fused kernels included") {
  const SmallModel small({.mesh = {{"data", 2}}});
  const plan::StepProgram program = small.lower();
  NumericBackend backend(program);
  backend.initialize(initial_values(program, kSettings));
  backend.set_batches(batch_values(program, kSettings));
  std::map<std::tuple<std::int64_t, std::int32_t, std::int32_t, std::int32_t>, int> seen;
  backend.set_observer([&](const Observation& o) { ++seen[{o.device, o.program, o.site, o.value.index}]; });
  run::Interpreter<NumericBackend> interpreter(program, run::Folding::per_device, backend);
  CHECK(!interpreter.run(1).has_value());
  backend.execute(Order{1, 2});
  // Every result of the forward phase of a layer, on both devices at both of its sites, once.
  const ir::Program& layer = program.programs[1].local;
  for (const ir::Op& op : layer.ops) {
    if (op.phase != ir::Phase::forward) continue;
    for (ir::ValueId result : op.results)
      for (std::int64_t device : {0, 1})
        for (std::int32_t site : {1, 2}) CHECK(seen[{device, 1, site, result.index}] == 1);
  }
}
