// The end of a parameter's life in a step: the reductions of its gradient, its update, the gather of its new value, and
// clipping.
#include <algorithm>
#include <map>
#include <set>

#include "sim/numeric/shards.hpp"
#include "sim/session/verify/parts.hpp"

namespace tpusim::session {

namespace {

struct Owner {  // a parameter: of which block, and its index there
  std::int32_t block = -1, parameter = -1;
};

// What a value of an update program is, where the reference has it too: a gradient on its way to its state's spec, the
// scale of clipping, or a new parameter on its way home.
enum class Makes { nothing, gradient, scale, parameter };
struct Meaning {
  Owner owner;
  Makes makes = Makes::nothing;
};

bool is_move(const ir::OpKind& kind) {
  return std::holds_alternative<ir::AllReduce>(kind) || std::holds_alternative<ir::ReduceScatter>(kind) ||
         std::holds_alternative<ir::AllGather>(kind) || std::holds_alternative<ir::Slice>(kind);
}

// By value of an update program, from the buffers that its kernels and collectives read and write, through what only
// moves a value.
std::vector<Meaning> meanings(const plan::StepProgram& program, std::int32_t index) {
  const ir::Program& local = program.programs[static_cast<std::size_t>(index)].local;
  std::vector<Meaning> out(local.values.size());
  const auto seed = [&](const auto& list, bool written) {
    for (const auto& [value, ref] : list) {
      const plan::Buffer& buffer = program.buffers[static_cast<std::size_t>(ref.buffer.index)];
      if (!value.valid() || buffer.parameter < 0) continue;
      const bool gradient = buffer.category == plan::Category::gradients,
                 updated = written && buffer.category == plan::Category::parameters && buffer.persistent;
      if (gradient || updated)
        out[static_cast<std::size_t>(value.index)] = {{buffer.block, buffer.parameter},
                                                      gradient ? Makes::gradient : Makes::parameter};
    }
  };
  for (const plan::Kernel& kernel : program.kernels)
    if (kernel.program == index) seed(kernel.reads, false), seed(kernel.writes, true);
  for (const plan::Collective& collective : program.collectives)
    if (collective.program == index) seed(collective.reads, false), seed(collective.writes, true);
  const auto at = [&](ir::ValueId v) -> Meaning& { return out[static_cast<std::size_t>(v.index)]; };
  for (const ir::Op& op : local.ops) {
    if (is_move(op.kind) && at(op.operands[0]).makes == Makes::gradient) at(op.results[0]) = at(op.operands[0]);
    if (local.value(op.results[0]).label == "gscale" && !std::holds_alternative<ir::Fill>(op.kind))
      at(op.results[0]).makes = Makes::scale;
  }
  for (std::size_t o = local.ops.size(); o-- > 0;)
    if (const ir::Op& op = local.ops[o]; is_move(op.kind) && at(op.results[0]).makes == Makes::parameter)
      at(op.operands[0]) = at(op.results[0]);
  return out;
}

class Comparison {
 public:
  Comparison(const Planned& planned, const Observed& observed, const numeric::ReferenceModel& reference,
             double tolerance)
      : planned_(planned),
        program_(planned.program),
        observed_(observed),
        reference_(reference),
        tolerance_(tolerance) {
    for (const plan::StageReduce& reduce : program_.stage_reduces) {
      const plan::Buffer& buffer = program_.buffers[static_cast<std::size_t>(reduce.buffer.buffer.index)];
      if (buffer.parameter >= 0) summed_over_stages_.emplace(buffer.block, buffer.parameter);
    }
  }
  // Everything of one sort that the update program `index` makes.
  void compare(std::int32_t index, Makes what) {
    const ir::Program& local = program_.programs[static_cast<std::size_t>(index)].local;
    const std::vector<Meaning> meaning = meanings(program_, index);
    for (std::size_t o = 0; o < local.ops.size(); ++o) {
      const Meaning& result = meaning[static_cast<std::size_t>(local.ops[o].results[0].index)];
      if (result.makes != what) continue;
      if (what == Makes::scale)
        compare_scale(index, o);
      else
        compare_owned(index, o, result.owner,
                      what == Makes::gradient ? reference_.gradients() : reference_.parameters(),
                      what == Makes::gradient);
    }
  }
  Finding finding;

 private:
  // `use(site, value, replica difference)` for each site where the op's first result was seen.
  template <class Use>
  void each(std::int32_t index, std::size_t o, const Use& use) {
    const spmd::Partitioned& part = program_.programs[static_cast<std::size_t>(index)];
    const ir::ValueId value = part.local.ops[o].results[0];
    for (auto it = observed_.lower_bound({index, value.index, INT32_MIN, INT64_MIN}); it != observed_.end(); ++it) {
      const auto& [in, id, site, microbatch] = it->first;
      if (in != index || id != value.index) return;
      std::vector<const numeric::Tensor*> shards;
      for (const numeric::Tensor& t : it->second)
        shards.push_back(t.size() > 0 && t.shape().size() == part.local.value(value).type.shape.size() ? &t : nullptr);
      const numeric::Assembled whole =
          numeric::assemble(shards, part.specs[static_cast<std::size_t>(value.index)], program_.mesh);
      use(site, valid_entries(whole.value), whole.replica_difference);
    }
  }
  void compare_owned(std::int32_t index, std::size_t o, const Owner& owner,
                     const std::map<std::string, numeric::Tensor>& wanted, bool gradient) {
    if (owner.parameter < 0) return;
    if (gradient && summed_over_stages_.count({owner.block, owner.parameter}) > 0) return;
    const ir::Parameter& parameter = planned_.model.blocks[static_cast<std::size_t>(owner.block)]
                                         .parameters[static_cast<std::size_t>(owner.parameter)];
    each(index, o, [&](std::int32_t site, const std::vector<double>& have, double drift) {
      const std::string key = numeric::parameter_key(parameter, site);
      if (const auto found = wanted.find(key); found != wanted.end())
        note(index, o, site, key, std::max(relative_difference(have, valid_entries(found->second)), drift));
    });
  }
  // The scale says only that the norm is wrong; its sums over devices are the likeliest cause.
  void compare_scale(std::int32_t index, std::size_t o) {
    const ir::Program& local = program_.programs[static_cast<std::size_t>(index)].local;
    std::size_t blamed = o;
    for (std::size_t i = o; i-- > 0;)
      if (std::holds_alternative<ir::AllReduce>(local.ops[i].kind)) blamed = i;
    each(index, o, [&](std::int32_t site, const std::vector<double>& have, double drift) {
      note(index, blamed, site, "the global norm", std::max(relative_difference(have, {reference_.gscale()}), drift));
    });
  }
  void note(std::int32_t index, std::size_t op, std::int32_t site, const std::string& of, double error) {
    ++finding.compared;
    finding.error = std::max(finding.error, error);
    if (!(error <= tolerance_) && finding.culprit.empty())
      finding.culprit =
          describe_op(program_.programs[static_cast<std::size_t>(index)], program_.mesh, op, site, -1) + " of " + of;
  }

  const Planned& planned_;
  const plan::StepProgram& program_;
  const Observed& observed_;
  const numeric::ReferenceModel& reference_;
  double tolerance_;
  std::set<std::pair<std::int32_t, std::int32_t>>
      summed_over_stages_;  // what a stage has of these gradients is a part of the sum
};

}  // namespace

// In the order of a step: all gradients are reduced, the scale is made of them, parameters are updated.
Finding compare_updates(const Planned& planned, const Observed& observed, const numeric::ReferenceModel& reference,
                        double tolerance) {
  Comparison comparison(planned, observed, reference, tolerance);
  for (Makes what : {Makes::gradient, Makes::scale, Makes::parameter})
    for (std::size_t index = planned.model.blocks.size(); index < planned.program.programs.size(); ++index)
      comparison.compare(static_cast<std::int32_t>(index), what);
  return comparison.finding;
}

}  // namespace tpusim::session
