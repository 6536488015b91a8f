// A plain evaluator of programs in double precision, loop by loop: the judge of whether a partitioned program computes
// what the global one does. It knows nothing of tpusim's kernels.
#pragma once

#include <string>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/spmd/partitioner.hpp"

namespace tpusim::spmd::testing {

struct Tensor {
  ir::Shape shape;
  std::vector<double> data;  // row-major
};
using PerDevice = std::vector<Tensor>;

// Values of every input of a global program: parameters and activations normal, padded entries 0; ids below `ids`.
std::vector<Tensor> random_inputs(const ir::Program& global, Random& random, std::int64_t ids);
// The shard that `spec` gives a device.
Tensor shard(const Tensor& whole, const PartitionSpec& spec, const Mesh& mesh, std::int64_t device);
// All values of a program on all devices of the mesh; `values` holds the inputs, by value and device.
void evaluate(const ir::Program& program, const Mesh& mesh, std::vector<PerDevice>& values);
// "" or the first value in which a local program differs from the global one, values given by both evaluations.
std::string first_difference(const ir::Program& global, const std::vector<PerDevice>& whole, const Partitioned& p,
                             const std::vector<PerDevice>& local, const Mesh& mesh);
// Evaluates both and compares every value that was placed.
std::string compare(const ir::Program& global, const Partitioned& p, const Mesh& mesh, Random& random,
                    std::int64_t ids);

}  // namespace tpusim::spmd::testing
