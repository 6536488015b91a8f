// The parts of verification, one file each. Private to the session.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/numeric/numeric_backend.hpp"
#include "sim/numeric/reference_run.hpp"
#include "sim/session/job.hpp"
#include "sim/timing/timing_backend.hpp"

namespace tpusim::session {

// What one check found: the largest relative error, and who is to blame first ("" if nobody).
struct Finding {
  double error = 0;
  std::string culprit;
  std::int64_t compared = 0;
};

// Tells time and computes at once: the same interpretation drives both readers, so that what is executed can be put in
// exactly the order in which timing finished.
class PairBackend {
 public:
  struct Token {
    run::TimeToken time;
    numeric::NumericBackend::Token task{};
  };
  static constexpr bool kOrdered = false;
  PairBackend(numeric::NumericBackend& numeric, timing::TimingBackend& timing) : numeric_(numeric), timing_(timing) {}
  // Completion times of the issues so far, from `first` on.
  std::vector<std::int64_t> finish_from(std::int64_t first) const { return {finish_.begin() + first, finish_.end()}; }

  Token origin() { return {timing_.origin(), numeric_.origin()}; }
  Token join(Token a, Token b) { return {timing_.join(a.time, b.time), numeric_.join(a.task, b.task)}; }
  Token kernel(std::int32_t c, const run::KernelCall& k, Token s, Token r) {
    return note({timing_.kernel(c, k, s.time, r.time), numeric_.kernel(c, k, s.task, r.task)});
  }
  Token collective(const run::CollectiveCall& k, Token s, Token r) {
    return note({timing_.collective(k, s.time, r.time), numeric_.collective(k, s.task, r.task)});
  }
  Token permute(const run::PermuteCall& k, Token s, Token a, Token b) {
    return note({timing_.permute(k, s.time, a.time, b.time), numeric_.permute(k, s.task, a.task, b.task)});
  }
  Token stage_reduce(const run::StageReduceCall& k, Token s, Token r) {
    return note({timing_.stage_reduce(k, s.time, r.time), numeric_.stage_reduce(k, s.task, r.task)});
  }
  Token allocate(std::int32_t c, const run::Instance& i, Token m) {
    return note({timing_.allocate(c, i, m.time), numeric_.allocate(c, i, m.task)});
  }
  Token release(std::int32_t c, const run::Instance& i, Token m, Token d) {
    return note({timing_.release(c, i, m.time, d.time), numeric_.release(c, i, m.task, d.task)});
  }
  Token batch(std::int32_t c, std::int64_t step) { return {timing_.batch(c, step), numeric_.batch(c, step)}; }

 private:
  Token note(Token t) {
    finish_.resize(static_cast<std::size_t>(numeric_.issues()), t.time.ps);
    return t;
  }
  numeric::NumericBackend& numeric_;
  timing::TimingBackend& timing_;
  std::vector<std::int64_t> finish_;
};

// All values of the first step, by (program, local value, site, microbatch): one tensor per device, empty where a
// device has none.
using Observed =
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int64_t>, std::vector<numeric::Tensor>>;

// Entries that count (no padding), row-major.
std::vector<double> valid_entries(const numeric::Tensor& tensor);
// Largest difference over max(1, largest magnitude); infinite when the numbers of entries differ.
double relative_difference(const std::vector<double>& a, const std::vector<double>& b);

// "site 1 (layer), microbatch 0, forward: all_gather "wq" over fsdp [rule 3: gathered for use]"; microbatch -1: none.
std::string describe_op(const spmd::Partitioned& part, const spmd::Mesh& mesh, std::size_t op_index, std::int64_t site,
                        std::int64_t microbatch);
// (a) In program order; the culprit is the instruction, its op, rule or collective.
Finding compare_values(const Planned& planned, const Observed& observed, const numeric::ReferenceModel& reference,
                       double tolerance);
// (a) of what follows the microbatches: each reduced gradient, new parameter and clipping scale of the first step.
// `reference` has made one step.
Finding compare_updates(const Planned& planned, const Observed& observed, const numeric::ReferenceModel& reference,
                        double tolerance);
// (b) The reference's gradient along a seeded direction; the culprit an op whose own derivative fails.
Finding check_gradient(const Planned& planned, const JobSpec& spec, const numeric::InitialSettings& settings,
                       double tolerance, ir::Vjp vjp);
// (e) Every algorithm of the full plan on at most 4 members of each axis.
Finding check_collectives(const plan::StepProgram& full, std::uint64_t seed,
                          plan::LineSteps steps_of = &plan::line_steps);

}  // namespace tpusim::session
