// A model small enough to follow by hand, and everything that lower() wants beside it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/ops.hpp"
#include "sim/plan/lower.hpp"

namespace tpusim::plan::testing {

constexpr std::int64_t kBatch = 8, kEmbed = 4, kMlp = 16;

struct Asked {
  std::int64_t layers = 2;
  std::vector<std::pair<std::string, std::int64_t>> mesh;  // pipeline, data, fsdp, tensor
  int zero = 3;
  bool tied = false;
  std::int64_t microbatches = 1;
  bool gpipe = false;  // all forward, then all backward; else one after the other
  double clip = 0;
  ir::Optimizer optimizer = ir::Optimizer::sgd;
};

// input: x = features * g.  layer: x + relu(x w1) w2.  head: the sum of (x * g - labels)^2. All f32; g is one parameter
// when tied.
struct Tiny {
  explicit Tiny(const Asked& asked);
  ir::Model model;
  spmd::Mesh mesh;
  spmd::ShardingTables tables;
  spmd::Placement placement;
  fabric::Fabric fabric;
  ScheduleSpec schedule;
  LowerOptions options;
  StepProgram lower() const { return plan::lower({model, tables, mesh, placement, fabric, schedule, options}); }
};

// Instructions of the template for (kind, previous, next) given by text: "layer forward".
std::string kind_name(const StepProgram& program, std::int32_t kind);
const Template* find(const StepProgram& program, const std::string& kind, const std::string& previous,
                     const std::string& next);
// "kernel dot", "all_gather", "send", ...; "<" and ">" before those of the preceding and the following call.
std::vector<std::string> instructions(const StepProgram& program, const Template& t);

}  // namespace tpusim::plan::testing
