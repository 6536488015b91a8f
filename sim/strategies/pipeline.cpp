// Pipeline parallelism: stages of whole layers, and the order in which a stage works on the microbatches.
//
// GPipe: all microbatches forward, then all backward; stage s keeps m microbatches alive. 1F1B: stage s of p does
// w = min(p - 1 - s, m) forwards, then one forward and one backward in turn, then the last w backwards; it keeps min(p
// - s, m) alive. Both idle (p - 1)/(m + p - 1) of a step when stages are equal and transfers free (D. Narayanan et al.,
// SC 2021, 2.2).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/strategies/draft.hpp"

namespace tpusim::strategies {
namespace {

constexpr std::string_view kName = "pipeline";

// Costs of layers as a running sum, with what is before the first and after the last layer added to it.
struct LayerCosts {
  std::vector<double> sum;  // sum[i]: layers below i
  double before = 0, after = 0;
  std::int64_t layers() const { return static_cast<std::int64_t>(sum.size()) - 1; }
  double stage(std::int64_t first, std::int64_t last) const {
    return sum[static_cast<std::size_t>(last)] - sum[static_cast<std::size_t>(first)] + (first == 0 ? before : 0) +
           (last == layers() ? after : 0);
  }
};

LayerCosts layer_costs(const SiteCosts& sites) {
  LayerCosts costs;
  costs.sum.assign(1, 0);
  for (std::int64_t i = 0; i < sites.before + sites.layers + sites.after; ++i) {
    const bool layer = i >= sites.before && i < sites.before + sites.layers;
    const double cost = sites.cost.empty() ? (layer ? 1 : 0) : sites.cost[static_cast<std::size_t>(i)];
    if (layer) {
      costs.sum.push_back(costs.sum.back() + cost);
    } else {
      (i < sites.before ? costs.before : costs.after) += cost;
    }
  }
  return costs;
}

// The furthest boundary after which a stage that begins at `first` still costs at most `bound`; at least one layer.
std::int64_t furthest(const LayerCosts& costs, std::int64_t first, std::int64_t limit, double bound) {
  std::int64_t low = first + 1, high = limit;
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (costs.stage(first, middle) <= bound)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Fills the earliest stages first; false when some stage costs more than `bound`. `worst` is the largest stage cost.
bool fits(const LayerCosts& costs, std::int64_t stages, double bound, double& worst) {
  std::int64_t first = 0;
  worst = 0;
  for (std::int64_t s = 0; s < stages; ++s) {
    const std::int64_t later = stages - 1 - s;  // each needs a layer
    const std::int64_t last = later == 0 ? costs.layers() : furthest(costs, first, costs.layers() - later, bound);
    worst = std::max(worst, costs.stage(first, last));
    if (worst > bound) return false;
    first = last;
  }
  return true;
}

// The least possible largest stage cost: bisection over a bound, then the cost that the found split really has.
double least_worst(const LayerCosts& costs, std::int64_t stages) {
  double low = 0, high = costs.stage(0, costs.layers()), worst = 0;
  double best = high;
  for (int i = 0; i < 64 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (fits(costs, stages, middle, worst)) {
      best = worst;
      high = std::min(worst, middle);
    } else {
      low = middle;
    }
    if (high - low <= 1e-12 * high) break;
  }
  return best;
}

// Earliest begin of each stage so that it and all later ones stay within the bound.
std::vector<std::int64_t> earliest_begins(const LayerCosts& costs, std::int64_t stages, double bound) {
  std::vector<std::int64_t> begin(static_cast<std::size_t>(stages) + 1, costs.layers());
  for (std::int64_t s = stages - 1; s > 0; --s) {
    const std::int64_t last = begin[static_cast<std::size_t>(s) + 1];
    std::int64_t low = s, high = last - 1;  // s layers at least are needed before
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (costs.stage(middle, last) <= bound)
        high = middle;
      else
        low = middle + 1;
    }
    begin[static_cast<std::size_t>(s)] = low;
  }
  begin[0] = 0;
  return begin;
}

}  // namespace

double stage_cost(const SiteCosts& sites, const std::vector<std::int64_t>& first_site, std::size_t stage) {
  double cost = 0;
  for (std::int64_t i = first_site[stage]; i < first_site[stage + 1]; ++i) {
    const bool layer = i >= sites.before && i < sites.before + sites.layers;
    cost += sites.cost.empty() ? (layer ? 1 : 0) : sites.cost[static_cast<std::size_t>(i)];
  }
  return cost;
}

std::vector<std::int64_t> balance_stages(const SiteCosts& sites, std::int64_t stages) {
  const std::int64_t total = sites.before + sites.layers + sites.after;
  TPUSIM_CHECK(stages >= 1 && stages <= std::max<std::int64_t>(sites.layers, 1), "more stages than layers");
  TPUSIM_CHECK(sites.cost.empty() || static_cast<std::int64_t>(sites.cost.size()) == total, "one cost per site");
  if (stages == 1) return {0, total};
  const LayerCosts costs = layer_costs(sites);
  const double bound = least_worst(costs, stages) * (1 + 1e-9);  // equal but for rounding counts as equal
  const std::vector<std::int64_t> earliest = earliest_begins(costs, stages, bound);
  std::vector<std::int64_t> first_site = {0};
  std::int64_t begin = 0;
  for (std::int64_t s = 1; s < stages; ++s) {
    const std::int64_t even = sites.layers * s / stages;
    const std::int64_t limit = furthest(costs, begin, sites.layers - (stages - s), bound);
    begin = std::clamp(even, std::min(earliest[static_cast<std::size_t>(s)], limit), limit);
    first_site.push_back(sites.before + begin);
  }
  first_site.push_back(total);
  return first_site;
}

plan::ScheduleSpec make_schedule(PipelineSchedule kind, const std::vector<std::int64_t>& first_site,
                                 std::int64_t microbatches) {
  using plan::Unit;
  plan::ScheduleSpec spec;
  spec.first_site = first_site;
  spec.microbatches = microbatches;
  const std::int64_t stages = static_cast<std::int64_t>(first_site.size()) - 1;
  const auto forward = [](std::int64_t m) { return Unit{ir::Phase::forward, m}; };
  const auto backward = [](std::int64_t m) { return Unit{ir::Phase::backward, m}; };
  for (std::int64_t s = 0; s < stages; ++s) {
    std::vector<plan::UnitSegment> segments;
    const auto add = [&segments](std::vector<Unit> body, std::int64_t repeat) {
      if (repeat > 0) segments.push_back({std::move(body), repeat});
    };
    if (kind == PipelineSchedule::gpipe && stages > 1) {
      add({forward(0)}, microbatches);
      add({backward(0)}, microbatches);
    } else {
      const std::int64_t warmup = std::min(stages - 1 - s, microbatches);
      add({forward(0)}, warmup);
      add({forward(warmup), backward(0)}, microbatches - warmup);
      add({backward(microbatches - warmup)}, warmup);
    }
    add({Unit{ir::Phase::update, -1}}, 1);
    spec.stages.push_back(std::move(segments));
  }
  return spec;
}

void pipeline_split(Draft& draft) {
  const std::int64_t stages = draft.requested(kName);
  const std::int64_t layers = draft.request.sites.layers;
  if (layers % stages == 0) return;
  draft.refuse(fmt::format("pipeline {} does not divide the layers", stages),
               fmt::format("a size that divides {} layers: {}", layers, list_text(divisors(layers))),
               fmt::format("pipeline {}", stages), "/mesh/pipeline");
}

void pipeline_schedule(Draft& draft) {
  draft.out.schedule =
      make_schedule(draft.request.options.schedule, balance_stages(draft.request.sites, draft.requested(kName)),
                    draft.out.microbatches);
}

}  // namespace tpusim::strategies
