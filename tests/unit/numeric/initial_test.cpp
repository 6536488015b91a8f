#include "sim/numeric/initial.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace tpusim;
using namespace tpusim::numeric;

namespace {
const ir::DimName kBatch{ir::Axis::batch, 0}, kSeq{ir::Axis::seq, 0}, kVocab{ir::Axis::vocab, 0},
    kEmbed{ir::Axis::embed, 0};
ir::TensorType table(std::int64_t padded) {
  return {ir::DType::f64, {{kVocab, padded, 10}, {kEmbed, 4, 4}}, ir::Place::none};
}
}  // namespace

TEST_CASE("padding changes no valid entry of a first value and is 0 itself") {
  const InitialSettings settings;
  const Tensor a = initial_parameter(table(10), ir::Init::normal, "0.table", settings);
  const Tensor b = initial_parameter(table(12), ir::Init::normal, "0.table", settings);
  for (std::int64_t i = 0; i < 48; ++i) CHECK(b.at(i) == (i < 40 ? a.at(i) : 0));
}

TEST_CASE("parameters differ by key and seed, and their deviation is the one asked for") {
  InitialSettings settings;
  const ir::TensorType type{ir::DType::f64, {{kEmbed, 10000, 10000}}, ir::Place::none};
  const Tensor a = initial_parameter(type, ir::Init::normal, "0.w", settings);
  CHECK(!(a == initial_parameter(type, ir::Init::normal, "1.w", settings)));
  settings.seed = 2;
  CHECK(!(a == initial_parameter(type, ir::Init::normal, "0.w", settings)));
  double square = 0;
  for (double x : a.to_doubles()) square += x * x;
  // The relative standard error of a variance of 10^4 draws is sqrt(2/10^4) = 1.4 %: five of them.
  CHECK(std::abs(square / 10000 / (0.02 * 0.02) - 1) < 0.07);
}

TEST_CASE("ones and zeros are exact, and integers lie in [-2, 2]") {
  InitialSettings settings;
  for (double x : initial_parameter(table(10), ir::Init::ones, "a", settings).to_doubles()) CHECK(x == 1);
  for (double x : initial_parameter(table(10), ir::Init::zeros, "a", settings).to_doubles()) CHECK(x == 0);
  settings.integers = true;
  for (double x : initial_parameter(table(10), ir::Init::normal, "a", settings).to_doubles()) {
    CHECK(x == std::round(x));
    CHECK(std::abs(x) <= 2);
  }
}

TEST_CASE("a tied parameter has one key and others one for each site") {
  ir::Parameter p;
  p.name = "w";
  CHECK(parameter_key(p, 3) == "3.w");
  p.tie = "embedding";
  CHECK(parameter_key(p, 3) == "embedding");
}

TEST_CASE("ids stay below the smallest table that reads them, and positions count along the sequence") {
  ir::Program program;
  ir::Builder builder(program);
  const ir::TensorType type{ir::DType::i32, {{kBatch, 2, 2}, {kSeq, 50, 50}}, ir::Place::none};
  const ir::ValueId ids = builder.input(type, "ids");
  const ir::ValueId weights = builder.input(table(12), "table");
  builder.add(ir::Lookup{kVocab, {}}, {weights, ids}, ir::DType::f64, {"x"}, {});
  CHECK(id_bound(program, ids) == 10);
  CHECK_THROWS_AS(id_bound(program, weights), InternalError);
  // Ids that are gathered before they are read are the same ids.
  const ir::ValueId part = builder.input(type, "part");
  const ir::ValueId whole =
      builder.add(ir::AllGather{kSeq, {0}}, {part}, ir::DType::i32, {"whole"}, {{kBatch, 2, 2}, {kSeq, 100, 50}})[0];
  builder.add(ir::Lookup{kVocab, {}}, {weights, whole}, ir::DType::f64, {"y"}, {});
  CHECK(id_bound(program, part) == 10);
  const Tensor batch = initial_batch(type, ir::DataKind::tokens, 10, 0, 0, {});
  double largest = 0;
  for (double x : batch.to_doubles()) {
    CHECK(x >= 0);
    largest = std::max(largest, x);
  }
  CHECK(largest == 9);  // 100 draws: absent with probability 0.9^100 < 3e-5
  CHECK(!(batch == initial_batch(type, ir::DataKind::tokens, 10, 0, 1, {})));
  CHECK(!(batch == initial_batch(type, ir::DataKind::tokens, 10, 1, 0, {})));
  const Tensor positions = initial_batch(type, ir::DataKind::positions, 0, 5, 5, {});
  for (std::int64_t i = 0; i < 100; ++i) CHECK(positions.at(i) == static_cast<double>(i % 50));
}
