// First values: parameters and batches from a seed, the same whole values whatever the mesh.
//
// A whole value is drawn over its valid entries in row-major order, so that neither sharding nor padding changes it,
// and is then cut into shards. A parameter's stream is named by its key, a batch's by kind, step and microbatch.
#pragma once

#include <cstdint>
#include <string>

#include "sim/numeric/numeric_backend.hpp"

namespace tpusim::numeric {

struct InitialSettings {
  std::uint64_t seed = 1;
  // Standard deviation of Init::normal parameters and of features.
  double deviation = 0.02;
  // Small integers in [-2, 2] for parameters and features instead: every sum of products is then exact.
  bool integers = false;
};

// "embedding" for a tied parameter, else "<site>.<name>"; the site is the block's depth in the model.
std::string parameter_key(const ir::Parameter& parameter, std::int64_t site);
// The whole parameter; `type` is global (padded entries are 0).
Tensor initial_parameter(const ir::TensorType& type, ir::Init init, const std::string& key,
                         const InitialSettings& settings);

// One more than the largest id that every reader of a data value takes: the smallest number of valid rows or classes
// among the lookups and picks of `value`. InternalError when nothing in the program bounds it.
std::int64_t id_bound(const ir::Program& program, ir::ValueId value);
// The whole batch of one microbatch. tokens, targets, labels: ids below `bound`; positions: 0, 1, ... along seq;
// features: normal.
Tensor initial_batch(const ir::TensorType& type, ir::DataKind kind, std::int64_t bound, std::int64_t step,
                     std::int64_t microbatch, const InitialSettings& settings);

// For NumericBackend: parameters (and master copies of them) as above, other state zero, data of step 0.
NumericBackend::Initial initial_values(const plan::StepProgram& program, const InitialSettings& settings);
NumericBackend::Batches batch_values(const plan::StepProgram& program, const InitialSettings& settings);

// The spec of a buffer's value: from the program that it lives in, else from the first kernel or collective that
// touches it. InternalError when nothing does.
const spmd::PartitionSpec& buffer_spec(const plan::StepProgram& program, plan::BufferId buffer);

}  // namespace tpusim::numeric
