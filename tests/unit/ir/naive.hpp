// A second opinion on what programs mean: every op by the plainest loops, in double whatever the dtype, on one device.
// It counts the multiplications with an addition that its product loops really run.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "sim/base/random.hpp"
#include "sim/ir/ops.hpp"

namespace naive {

using tpusim::ir::Op;
using tpusim::ir::Program;
using tpusim::ir::Shape;
using tpusim::ir::ValueId;

struct Tensor {
  Shape shape;
  std::vector<double> data;  // row-major by shape; ids as doubles
};
Tensor zeros(const Shape& shape);
// Standard normals times `size` in valid entries, 0 in padded ones.
Tensor random_tensor(const Shape& shape, tpusim::Random& random, double size = 1);
// Whole numbers in [0, below) .
Tensor random_ids(const Shape& shape, tpusim::Random& random, std::int64_t below);
double dot(const Tensor& a, const Tensor& b);

struct Result {
  std::map<int, Tensor> values;          // by value index, inputs too
  std::vector<std::int64_t> multiplies;  // by op index: multiply-adds of products
};
// Runs the ops whose phase `wanted` accepts; every other input must be in `inputs`.
Result run(const Program& program, const std::map<int, Tensor>& inputs);
// Only the forward ops.
Result run_forward(const Program& program, const std::map<int, Tensor>& inputs);

// Inputs of a block: normals for parameters (ones-initialised ones near 1) and ports, ids within range for data.
std::map<int, Tensor> random_inputs(const Program& program, std::uint64_t seed, std::int64_t vocab, double size = 0.5);

}  // namespace naive
