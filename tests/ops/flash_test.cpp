#include <cmath>
#include <limits>

#include "ops_support.hpp"

using namespace tpusim;
using namespace tpusim::ops_test;
using numeric::Tensor;

namespace {

struct Sizes {
  std::int64_t batch = 2, seq = 5, keys = 5, heads = 2, group = 3, width = 4;
};
ir::Shape q_shape(const Sizes& s) {
  return {dim(kBatch, s.batch), dim(kSeq, s.seq), dim(kHeads, s.heads), dim(kGroup, s.group), dim(kWidth, s.width)};
}
ir::Shape k_shape(const Sizes& s) {
  return {dim(kBatch, s.batch), dim(kKeySeq, s.keys), dim(kHeads, s.heads), dim(kWidth, s.width)};
}

// softmax(scale q k^T) v by its definition, one query at a time.
std::vector<double> attention(const Tensor& q, const Tensor& k, const Tensor& v, const Sizes& s, double scale,
                              bool causal) {
  std::vector<double> o;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t i = 0; i < s.seq; ++i)
      for (std::int64_t h = 0; h < s.heads; ++h)
        for (std::int64_t g = 0; g < s.group; ++g) {
          const auto key = [&](std::int64_t j, std::int64_t w) {
            return ((b * s.keys + j) * s.heads + h) * s.width + w;
          };
          std::vector<double> weight;
          double total = 0;
          for (std::int64_t j = 0; j < s.keys && (!causal || j <= i); ++j) {
            double score = 0;
            for (std::int64_t w = 0; w < s.width; ++w)
              score += q.at((((b * s.seq + i) * s.heads + h) * s.group + g) * s.width + w) * k.at(key(j, w));
            weight.push_back(std::exp(scale * score));
            total += weight.back();
          }
          for (std::int64_t w = 0; w < s.width; ++w) {
            double sum = 0;
            for (std::size_t j = 0; j < weight.size(); ++j)
              sum += weight[j] / total * v.at(key(static_cast<std::int64_t>(j), w));
            o.push_back(sum);
          }
        }
  return o;
}

}  // namespace

TEST_CASE("flash attention is softmax attention, for every block size, causal or not, grouped heads included") {
  for (const Sizes& s : {Sizes{}, Sizes{1, 8, 8, 1, 1, 2}, Sizes{1, 1, 1, 2, 2, 2}})
    for (bool causal : {false, true})
      for (std::int32_t block : {1, 2, 3, 4, 8, 128}) {
        const Tensor q = uniform(q_shape(s), 1), k = uniform(k_shape(s), 2), v = uniform(k_shape(s), 3);
        const auto y = evaluate(ir::Flash{0.7, causal, block, {}}, {q, k, v});
        // Two ways to the same sums of at most 8 terms near 1.
        check_close(y[0], attention(q, k, v, s, 0.7, causal), 1e-14);
      }
}

TEST_CASE("keys may be more than queries") {
  const Sizes s{1, 3, 7, 1, 2, 4};
  const Tensor q = uniform(q_shape(s), 1), k = uniform(k_shape(s), 2), v = uniform(k_shape(s), 3);
  for (bool causal : {false, true})
    check_close(evaluate(ir::Flash{0.5, causal, 2, {}}, {q, k, v})[0], attention(q, k, v, s, 0.5, causal), 1e-14);
}

TEST_CASE("one key has all the weight, and lse is its score") {
  const Sizes s{1, 1, 1, 1, 1, 2};
  const auto y = evaluate(ir::Flash{0.5, true, 128, {}},
                          {tensor(q_shape(s), {2, 3}), tensor(k_shape(s), {4, 5}), tensor(k_shape(s), {6, 7})});
  CHECK(y[0].to_doubles() == std::vector<double>{6, 7});
  CHECK(y[1].to_doubles() == std::vector<double>{11.5});  // 0.5 (2 x 4 + 3 x 5)
}

TEST_CASE("large scores neither overflow nor lose the softmax") {
  const Sizes s{1, 2, 2, 1, 1, 1};
  // Scores of query 1: 1000 and 2000; the larger has all the weight.
  const auto y = evaluate(ir::Flash{1, true, 1, {}},
                          {tensor(q_shape(s), {1, 1000}), tensor(k_shape(s), {1, 2}), tensor(k_shape(s), {3, 5})});
  CHECK(y[0].to_doubles() == std::vector<double>{3, 5});
  CHECK(y[1].to_doubles() == std::vector<double>{1, 2000});
}

TEST_CASE("wholly masked blocks are skipped and edge blocks count their true size") {
  // 5 queries and keys in blocks of 2: rows 2, 2, 1 see 2, 4, 5 keys: 2x2 + 2x4 + 1x5 = 17 scores of 25.
  // Forward has 2 products of 2 x 17 x width 4 for each of 2 x 2 x 3 heads: 3264; backward 5: 8160.
  const Sizes s;
  const Tensor q = uniform(q_shape(s), 1), k = uniform(k_shape(s), 2);
  const auto flops = [&](const ir::OpKind& kind, std::vector<const Tensor*> x, std::vector<ir::TensorType> types) {
    return numeric::evaluate(kind, x, types, {}).flops;
  };
  const ir::TensorType lse = type(ir::DType::f64, {dim(kBatch, 2), dim(kHeads, 2), dim(kGroup, 3), dim(kSeq, 5)});
  const Tensor zero(lse);
  CHECK(flops(ir::Flash{1, true, 2, {}}, {&q, &k, &k}, {q.type(), lse}) == 3264);
  CHECK(flops(ir::FlashGrad{1, true, 2, {}}, {&q, &k, &k, &q, &zero, &q}, {q.type(), k.type(), k.type()}) == 8160);
  CHECK(flops(ir::Flash{1, false, 2, {}}, {&q, &k, &k}, {q.type(), lse}) == 4800);  // all 25 scores
}

TEST_CASE("flash's gradients are those of finite differences, with and without blocks and groups") {
  for (const Sizes& s : {Sizes{1, 3, 3, 1, 2, 2}, Sizes{2, 4, 4, 2, 1, 2}})
    for (bool causal : {false, true}) {
      const Tensor q = uniform(q_shape(s), 1), k = uniform(k_shape(s), 2), v = uniform(k_shape(s), 3);
      for (std::size_t operand : {0u, 1u, 2u}) check_gradient(ir::Flash{0.8, causal, 2, {}}, {q, k, v}, operand);
    }
}

TEST_CASE("the backward pass counts the operations that the cost rule says, for every block size") {
  const Sizes s;
  for (bool causal : {false, true})
    for (std::int32_t block : {1, 2, 3, 5, 128}) {
      const Tensor q = uniform(q_shape(s), 1), k = uniform(k_shape(s), 2), v = uniform(k_shape(s), 3);
      const auto y = evaluate(ir::Flash{0.7, causal, block, {}}, {q, k, v});
      evaluate(ir::FlashGrad{0.7, causal, block, {}}, {q, k, v, y[0], y[1], q});
    }
}

TEST_CASE("padded keys are never seen and padded queries stay 0, forward and backward") {
  const Sizes s{1, 4, 4, 1, 1, 2};
  const auto pad = [](ir::Shape shape, std::size_t at) {
    shape[at].valid = 3;
    return shape;
  };
  const Tensor q = uniform(pad(q_shape(s), 1), 1), k = uniform(pad(k_shape(s), 1), 2),
               v = uniform(pad(k_shape(s), 1), 3);
  const Sizes t{1, 3, 3, 1, 1, 2};
  const auto first = [](const Tensor& x, std::int64_t count) {
    const auto all = x.to_doubles();
    return std::vector<double>(all.begin(), all.begin() + count);
  };
  const Tensor q3 = tensor(q_shape(t), first(q, 6)), k3 = tensor(k_shape(t), first(k, 6)),
               v3 = tensor(k_shape(t), first(v, 6));
  for (bool causal : {false, true}) {
    const auto y = evaluate(ir::Flash{0.7, causal, 2, {}}, {q, k, v}),
               y3 = evaluate(ir::Flash{0.7, causal, 2, {}}, {q3, k3, v3});
    CHECK(first(y[0], 6) == y3[0].to_doubles());
    CHECK(y[0].at(6) == 0);
    CHECK(y[0].at(7) == 0);
    const auto d = evaluate(ir::FlashGrad{0.7, causal, 2, {}}, {q, k, v, y[0], y[1], q});
    const auto d3 = evaluate(ir::FlashGrad{0.7, causal, 2, {}}, {q3, k3, v3, y3[0], y3[1], q3});
    for (std::size_t i = 0; i < 3; ++i) {
      check_close(d3[i], first(d[i], 6), 1e-15);
      CHECK(d[i].at(6) == 0);
      CHECK(d[i].at(7) == 0);
    }
  }
}

TEST_CASE("queries split over devices mask by their global positions") {
  const spmd::Mesh mesh{{{"context", 2, "context"}}};
  const Sizes s{1, 4, 4, 1, 1, 2};
  const Tensor q = uniform(q_shape(s), 1), k = uniform(k_shape(s), 2), v = uniform(k_shape(s), 3);
  const std::vector<double> whole = attention(q, k, v, s, 0.7, true), values = q.to_doubles();
  ir::Shape half = q_shape(s);
  half[1].size = 2;
  for (std::int64_t device : {0, 1}) {
    const Tensor mine = tensor(half, {values.begin() + 4 * device, values.begin() + 4 * device + 4});
    const auto y = evaluate(ir::Flash{0.7, true, 2, {0}}, {mine, k, v}, ir::DType::f64, {}, {&mesh, device});
    check_close(y[0], {whole.begin() + 4 * device, whole.begin() + 4 * device + 4}, 1e-14);
  }
}

TEST_CASE("bf16 attention keeps its statistics in f32 and is near that of f64") {
  const Sizes s{1, 8, 8, 2, 1, 8};
  const Tensor q = uniform(q_shape(s), 1, ir::DType::bf16), k = uniform(k_shape(s), 2, ir::DType::bf16),
               v = uniform(k_shape(s), 3, ir::DType::bf16);
  const auto y = evaluate(ir::Flash{0.35, true, 4, {}}, {q, k, v}, ir::DType::bf16);
  CHECK(y[1].dtype() == ir::DType::f32);
  // The operands are the same rounded numbers; what is left is one rounding of o, below 1: half of 2^-8.
  check_close(y[0], attention(q, k, v, s, 0.35, true), 0.5 / 256 + 1e-6);
}
