#include "sim/session/verification.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/numeric/shards.hpp"
#include "sim/run/interpreter.hpp"
#include "sim/session/verify/parts.hpp"
#include "sim/timing/step_time.hpp"
#include "topologies/catalogue.hpp"

namespace tpusim::session {

namespace {

constexpr double kGradientTolerance = 1e-6;  // of central differences with step 1e-5

enum class Execution { shuffled, as_timed };

struct ShardedRun {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> parameters;
  run::Tally tally;       // of the first step
  std::int64_t peak = 0;  // over all steps
  Observed first_step;
  std::string stall;
};

std::string key_of(const Planned& planned, const plan::Buffer& buffer, std::int32_t site) {
  return numeric::parameter_key(planned.model.blocks[static_cast<std::size_t>(buffer.block)]
                                    .parameters[static_cast<std::size_t>(buffer.parameter)],
                                site);
}

void collect_parameters(const Planned& planned, const numeric::NumericBackend& backend, ShardedRun& out) {
  const plan::StepProgram& program = planned.program;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const plan::Buffer& buffer = program.buffers[b];
    if (buffer.category != plan::Category::parameters || !buffer.persistent) continue;
    for (std::size_t site = 0; site < program.sites.size(); ++site) {
      const bool once = buffer.scope == plan::Scope::step;
      if (once ? site > 0 : program.sites[site].block != buffer.block) continue;
      const run::Instance instance{plan::BufferId(b), static_cast<std::int32_t>(site), 0};
      std::vector<const numeric::Tensor*> shards;
      bool any = false;
      for (std::int64_t d = 0; d < program.mesh.devices(); ++d) {
        shards.push_back(backend.find(d, instance));
        any = any || shards.back() != nullptr;
      }
      if (!any) continue;
      const numeric::Assembled whole =
          numeric::assemble(shards, numeric::buffer_spec(program, plan::BufferId(b)), program.mesh);
      std::vector<double> entries = valid_entries(whole.value);
      if (whole.replica_difference > kValueTolerance)
        entries.push_back(whole.replica_difference);  // replicas that drift apart are an error too
      out.parameters[key_of(planned, buffer, static_cast<std::int32_t>(site))] = std::move(entries);
    }
  }
}

// The loss of one step: the head's share of every microbatch, reduced over the mesh.
double loss_of(const Planned& planned, const Observed& losses) {
  double sum = 0;
  for (const auto& [key, tensors] : losses) {
    const auto& [block, value, site, microbatch] = key;
    std::vector<const numeric::Tensor*> shards;
    for (const numeric::Tensor& t : tensors) shards.push_back(t.size() > 0 && t.shape().empty() ? &t : nullptr);
    const spmd::Partitioned& part = planned.program.programs[static_cast<std::size_t>(block)];
    sum += numeric::assemble(shards, part.specs[static_cast<std::size_t>(value)], planned.program.mesh).value.at(0);
  }
  return sum;
}

ShardedRun run_sharded(const Planned& planned, const timing::Durations& durations,
                       const numeric::InitialSettings& settings, Execution how, std::uint64_t order_seed,
                       const Proof& proof, bool keep_first_step) {
  ShardedRun out;
  const plan::StepProgram& program = planned.program;
  const auto devices = static_cast<std::size_t>(program.mesh.devices());
  numeric::NumericBackend backend(program);
  backend.initialize(numeric::initial_values(program, settings));
  backend.set_batches(numeric::batch_values(program, settings));
  backend.set_transport_seed(order_seed + 5);
  timing::TimingBackend timing(durations, devices, {});
  PairBackend pair(backend, timing);
  run::Interpreter<PairBackend> interpreter(program, run::Folding::per_device, pair);

  std::vector<ir::ValueId> loss_value(planned.model.blocks.size());
  for (std::size_t b = 0; b < planned.model.blocks.size(); ++b)
    if (planned.model.blocks[b].loss.valid())
      loss_value[b] = program.programs[b].placed[static_cast<std::size_t>(planned.model.blocks[b].loss.index)].local;
  Observed losses;
  backend.set_observer([&](const numeric::Observation& o) {
    const auto keep = [&](Observed& where) {
      std::vector<numeric::Tensor>& per_device = where[{o.program, o.value.index, o.site, o.microbatch}];
      per_device.resize(devices);
      per_device[static_cast<std::size_t>(o.device)] = o.tensor;
    };
    if (keep_first_step && o.step == 0) keep(out.first_step);
    if (static_cast<std::size_t>(o.program) < planned.model.blocks.size() &&
        o.value == loss_value[static_cast<std::size_t>(o.program)])
      keep(losses);
  });
  for (std::int64_t step = 0; step < proof.steps; ++step) {
    losses.clear();
    const std::int64_t first = backend.executed_issues();
    if (const auto stall = interpreter.run(step + 1)) {
      out.stall = run::to_string(*stall);
      return out;
    }
    if (how == Execution::shuffled)
      backend.execute({order_seed + static_cast<std::uint64_t>(step), proof.threads});
    else
      backend.execute_in_order(backend.order_by_finish(pair.finish_from(first)));
    if (step == 0) out.tally = backend.tally();
    out.losses.push_back(loss_of(planned, losses));
  }
  out.peak = backend.tally().peak_bytes;
  collect_parameters(planned, backend, out);
  return out;
}

// The same model on one device, not padded: what a user would have without any strategy.
ir::Model unpadded_model(const JobSpec& spec, const Planned& planned) {
  models::BuildOptions options;
  options.batch = planned.setup.replicas * planned.setup.microbatch;
  options.seq = spec.sequence_length;
  options.compute_dtype = spec.compute_dtype;
  options.parameter_dtype = spec.parameter_dtype;
  options.global_tokens = static_cast<double>(spec.global_batch) * static_cast<double>(spec.sequence_length);
  options.attention = spec.attention;
  options.flash_block = spec.flash_block;
  ir::Model model = models::build(spec.model, options);
  for (ir::Program& block : model.blocks)
    ir::differentiate(block, {block.loss.valid() ? ir::Remat::none : spec.remat, spec.gradient_dtype});
  return model;
}

struct Outcome {
  result::Verification out;
  void check(std::string name, bool passed, std::string detail) {
    out.passed = out.passed && passed;
    if (!passed && out.culprit.empty()) out.culprit = detail;
    out.checks.push_back({std::move(name), passed, std::move(detail)});
  }
};

bool finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

// The largest error and where it is. What is not finite proves nothing, even where both runs agree on it.
Finding compare_runs(const ShardedRun& run, const numeric::ReferenceModel& reference,
                     const std::vector<double>& losses) {
  Finding out;
  const auto note = [&](const std::string& what, double error) {
    ++out.compared;
    if (!(error <= out.error)) out.error = error, out.culprit = what;
  };
  if (!run.stall.empty()) {
    note(run.stall, std::numeric_limits<double>::infinity());
    return out;
  }
  if (!finite(losses)) {
    note("the losses, which are not finite on one device either", std::numeric_limits<double>::infinity());
    return out;
  }
  note("the losses", relative_difference(run.losses, losses));
  for (const auto& [key, value] : reference.parameters()) {
    const auto there = run.parameters.find(key);
    if (!finite(valid_entries(value))) {
      note("parameter " + key + ", which is not finite on one device either", std::numeric_limits<double>::infinity());
      return out;
    }
    note("parameter " + key, there == run.parameters.end() ? std::numeric_limits<double>::infinity()
                                                           : relative_difference(there->second, valid_entries(value)));
  }
  return out;
}

std::string error_text(const Finding& finding, double tolerance) {
  std::string text = fmt::format("largest relative error {:.1e}", finding.error);
  return finding.error <= tolerance ? text : text + " in " + finding.culprit;
}

std::int64_t total_bytes(const run::Tally& tally) {
  std::int64_t sum = 0;
  for (std::int64_t bytes : tally.bytes_sent) sum += bytes;
  return sum;
}

std::string tally_difference(const run::Tally& executed, std::int64_t peak, const run::Tally& charged) {
  static constexpr const char* kNames[run::kTrafficKinds] = {"all-gather", "reduce-scatter", "all-reduce",
                                                             "collective-permute", "sum over stages"};
  for (std::size_t k = 0; k < run::kTrafficKinds; ++k)
    if (executed.bytes_sent[k] != charged.bytes_sent[k])
      return fmt::format("{} bytes: {} executed, {} charged", kNames[k], executed.bytes_sent[k], charged.bytes_sent[k]);
  if (executed.executed_flops != charged.executed_flops)
    return fmt::format("FLOPs: {} executed, {} charged", executed.executed_flops, charged.executed_flops);
  if (peak != charged.peak_bytes) return fmt::format("peak bytes: {} executed, {} charged", peak, charged.peak_bytes);
  return "";
}

}  // namespace

result::Verification verify_spec(const JobSpec& spec, const fabric::Fabric& fabric, const topologies::Chip& chip,
                                 std::uint64_t seed, const Proof& proof) {
  return verify_planned(spec, make_plan(spec, fabric), fabric, chip, seed, proof);
}

result::Verification verify_planned(const JobSpec& spec, const Planned& planned, const fabric::Fabric& fabric,
                                    const topologies::Chip& chip, std::uint64_t seed, const Proof& proof) {
  Outcome o;
  o.out.passed = true;
  o.out.steps = proof.steps;
  for (const strategies::RequestedAxis& axis : spec.mesh) o.out.mesh.emplace_back(axis.name, axis.size);
  if (!planned.verdict) {
    o.check("a small copy of the job can be planned", false, planned.verdict.reason + " " + planned.verdict.needed);
    return o.out;
  }
  // Kernels trust the sizes that a program states.
  for (const spmd::Partitioned& part : planned.program.programs)
    if (const std::vector<std::string> broken = ir::verify(part.local); !broken.empty()) {
      o.check("the programs of one device are sound", false, broken.front());
      return o.out;
    }
  const numeric::InitialSettings settings{seed, proof.deviation, proof.integers};
  const timing::Durations durations = timing::durations(planned.program, chip, fabric);
  std::vector<ShardedRun> runs;
  for (std::int64_t shuffle = 0; shuffle < proof.shuffles; ++shuffle)
    runs.push_back(run_sharded(planned, durations, settings, Execution::shuffled,
                               seed + 100 * static_cast<std::uint64_t>(shuffle), proof, proof.values && shuffle == 0));
  if (!runs[0].stall.empty()) {
    o.check("the small copy runs to its end", false, runs[0].stall);
    return o.out;
  }
  Finding values;
  if (proof.values) {
    numeric::ReferenceModel reference(planned.model, spec.optimizer, spec.gradient_dtype, spec.master_dtype, settings);
    reference.keep_values(true);
    reference.step(0, planned.program.microbatches);
    values = compare_values(planned, runs[0].first_step, reference, proof.tolerance);
    const Finding updates = compare_updates(planned, runs[0].first_step, reference, proof.tolerance);
    values.compared += updates.compared;
    values.error = std::max(values.error, updates.error);
    if (values.culprit.empty()) values.culprit = updates.culprit;
    o.check("every value of the first step equals one device's", values.culprit.empty() && values.compared > 0,
            values.culprit.empty()
                ? fmt::format("{} values, largest relative error {:.1e}", values.compared, values.error)
                : values.culprit);
  }
  if (proof.gradient) {
    const Finding gradient = check_gradient(planned, spec, settings, kGradientTolerance, proof.vjp);
    o.check("the gradient equals finite differences", gradient.culprit.empty(),
            gradient.culprit.empty() ? fmt::format("along a random direction in {} parameters, relative error {:.1e}",
                                                   gradient.compared, gradient.error)
                                     : gradient.culprit);
  }
  const ir::Model plain = unpadded_model(spec, planned);
  numeric::ReferenceModel one_device(plain, spec.optimizer, spec.gradient_dtype, spec.master_dtype, settings);
  for (std::int64_t step = 0; step < proof.steps; ++step)
    o.out.loss_reference.push_back(one_device.step(step, planned.program.microbatches));
  o.out.loss_sharded = runs[0].losses;
  const ShardedRun timed = run_sharded(planned, durations, settings, Execution::as_timed, seed, proof, false);
  Finding in_shuffle;
  for (const ShardedRun& run : runs)
    if (Finding one = compare_runs(run, one_device, o.out.loss_reference); !(one.error <= in_shuffle.error))
      in_shuffle = std::move(one);
  const Finding as_timed = compare_runs(timed, one_device, o.out.loss_reference);
  o.out.max_relative_error = std::max({in_shuffle.error, as_timed.error, values.error});
  o.check(
      fmt::format("losses and parameters over {} optimizer steps equal one device's, in shuffled order", proof.steps),
      in_shuffle.error <= proof.tolerance, error_text(in_shuffle, proof.tolerance));
  o.check("the same in exactly the order in which timing finished", as_timed.error <= proof.tolerance,
          error_text(as_timed, proof.tolerance));

  const timing::StepTiming charged = timing::time_step(planned.program, chip, fabric, {});
  o.out.bytes_executed = total_bytes(runs[0].tally);
  o.out.bytes_charged = total_bytes(charged.tally);
  o.out.flops_executed = runs[0].tally.executed_flops;
  o.out.flops_charged = charged.tally.executed_flops;
  o.out.peak_bytes_executed = runs[0].peak;
  o.out.peak_bytes_charged = charged.tally.peak_bytes;
  runs.push_back(timed);
  std::string difference;
  for (const ShardedRun& run : runs)
    if (difference.empty()) difference = tally_difference(run.tally, run.peak, charged.tally);
  o.check("bytes sent, FLOPs and peak memory: executed = charged", difference.empty(),
          difference.empty() ? fmt::format("{} bytes, {} FLOPs, {} bytes at the peak", o.out.bytes_executed,
                                           o.out.flops_executed, o.out.peak_bytes_executed)
                             : difference);
  return o.out;
}

namespace {

// Whether three steps on one device stay finite, and of the size that they begin with: a run that grows amplifies
// roundings until they look like faults.
bool stays_tame(const JobSpec& spec, const Planned& planned, std::uint64_t seed, const Proof& proof) {
  constexpr double kGrowth = 1e3;
  const numeric::InitialSettings settings{seed, proof.deviation, false};
  const ir::Model plain = unpadded_model(spec, planned);
  numeric::ReferenceModel one_device(plain, spec.optimizer, spec.gradient_dtype, spec.master_dtype, settings);
  double first = 1;
  for (std::int64_t step = 0; step < proof.steps; ++step) {
    const double loss = std::abs(one_device.step(step, planned.program.microbatches));
    if (step == 0 && loss <= kGrowth) first = std::max(first, loss);
    if (!(loss <= kGrowth * first)) return false;
  }
  for (const auto& [key, value] : one_device.parameters())
    for (const double x : valid_entries(value))
      if (!(std::abs(x) <= kGrowth)) return false;
  return true;
}

// The shrunken job at a learning rate at which it stays tame: without clipping, or with large decay, that may be far
// below the job's own (but not so far that the updates no longer count). Where none is small enough, it is the values
// that grow from layer to layer (gated MLPs without norms): then smaller ones to begin with.
void tame(Shrunken& small, std::uint64_t seed, Proof& proof) {
  const Planned planned = make_plan(small.spec, small.fabric);
  if (!planned.verdict) return;  // which verification will say
  const double rate = small.spec.optimizer.learning_rate;
  for (int smaller = 0; smaller < 8; ++smaller, proof.deviation /= 2) {
    small.spec.optimizer.learning_rate = rate;
    for (int slower = 0; slower < 3; ++slower, small.spec.optimizer.learning_rate *= 1e-2)
      if (stays_tame(small.spec, planned, seed, proof)) return;
  }
}

// On the job's own chip and links, or, where those are so slow that even the small copy takes longer than can be timed,
// on ordinary ones: any machine's order is one in which the plan may run.
result::Verification verify_small(Shrunken small, const topologies::Chip& chip, std::uint64_t seed,
                                  const Proof& proof) {
  try {
    return verify_spec(small.spec, small.fabric, chip, seed, proof);
  } catch (const CapacityError&) {
    for (fabric::PhysicalAxis& axis : small.fabric.axes) {
      axis.alpha = Seconds(1e-6);
      axis.beta = BytesPerSecond(1e11);
      axis.offers.clear();
    }
    small.fabric.collective_overhead = Seconds();
    return verify_spec(small.spec, small.fabric, *topologies::find_chip("tpu-v5p"), seed, proof);
  }
}

}  // namespace

result::Verification verify_job(const Job& job, const Planned& full, std::uint64_t seed, int threads) {
  Shrunken small = shrink(job, full);
  Outcome o;
  Proof proof;
  proof.threads = threads;
  tame(small, seed, proof);
  o.out = verify_small(std::move(small), job.cluster.chip, seed, proof);
  const Finding collectives = check_collectives(full.program, seed);
  o.check("every collective algorithm of the plan gives what its collective is defined to give",
          collectives.culprit.empty(),
          collectives.culprit.empty()
              ? fmt::format("{} algorithms on up to 4 members of each axis", collectives.compared)
              : collectives.culprit);
  return o.out;
}

}  // namespace tpusim::session
