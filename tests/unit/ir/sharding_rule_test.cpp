#include <doctest/doctest.h>

#include "sim/ir/flash_dims.hpp"
#include "sim/ir/ops.hpp"

using namespace tpusim::ir;

namespace {

constexpr DimName kEmbed{Axis::embed, 0}, kMlp{Axis::mlp, 0}, kVocab{Axis::vocab, 0};
Dim dim(DimName name, std::int64_t size) {
  return {name, size, size};
}

// One line a factor: "embed contracted 2,0 -> -1", then "linear 11 additive".
std::string rule_text(const OpKind& kind, const std::vector<TensorType>& operands, const Shape& like = Shape()) {
  const Inferred inferred = infer(kind, operands, DType::f32, like);
  REQUIRE(inferred.error == "");
  const std::vector<TensorType> results(inferred.results.begin(), inferred.results.end());
  const ShardingRule rule = sharding_rule(kind, operands, results);
  static constexpr const char* kKinds[] = {"parallel", "contracted", "sum", "max", "whole"};
  std::string out;
  for (const Factor& f : rule.factors) {
    std::string name;
    for (std::size_t i = 0; i < operands.size() && name.empty(); ++i)
      if (f.operand_dim[i] >= 0) name = to_string(operands[i].shape[static_cast<std::size_t>(f.operand_dim[i])].name);
    for (std::size_t i = 0; i < results.size() && name.empty(); ++i)
      if (f.result_dim[i] >= 0) name = to_string(results[i].shape[static_cast<std::size_t>(f.result_dim[i])].name);
    out += name + " " + kKinds[static_cast<int>(f.kind)] + " ";
    for (std::size_t i = 0; i < operands.size(); ++i) out += (i > 0 ? "," : "") + std::to_string(f.operand_dim[i]);
    out += " -> ";
    for (std::size_t i = 0; i < results.size(); ++i) out += (i > 0 ? "," : "") + std::to_string(f.result_dim[i]);
    out += "\n";
  }
  out += "linear ";
  for (const bool l : rule.linear) out += l ? "1" : "0";
  return out + (rule.additive ? " additive" : "");
}

TensorType f32(Shape shape) {
  return {DType::f32, shape, Place::none};
}
TensorType i32(Shape shape) {
  return {DType::i32, shape, Place::none};
}
const Shape kX = {dim(kBatch, 2), dim(kSeq, 4), dim(kEmbed, 8)};
const Shape kIds = {dim(kBatch, 2), dim(kSeq, 4)};

}  // namespace

TEST_CASE("a product contracts what both operands have and the result lacks, and is linear in each operand") {
  CHECK(
      rule_text(Dot{}, {f32(kX), f32({dim(kEmbed, 8), dim(kMlp, 16)})}, {dim(kBatch, 1), dim(kSeq, 1), dim(kMlp, 1)}) ==
      "batch parallel 0,-1 -> 0\nseq parallel 1,-1 -> 1\nembed contracted 2,0 -> -1\nmlp parallel -1,1 -> 2\nlinear "
      "11");
}

TEST_CASE("elementwise ops are parallel in every dim and linear where mathematics says so") {
  const TensorType x = f32({dim(kSeq, 4)});
  CHECK(rule_text(Map{Elementwise::add, 0}, {x, f32(kX)}) ==
        "seq parallel 0,1 -> 0\nbatch parallel -1,0 -> 1\nembed parallel -1,2 -> 2\nlinear 11 additive");
  const auto linear = [&](Elementwise kind) {
    const std::string text = rule_text(Map{kind, 2}, kind < Elementwise::add ? std::vector{x} : std::vector{x, x});
    return text.substr(text.find("linear ") + 7);
  };
  for (const auto kind : {Elementwise::copy, Elementwise::cast, Elementwise::neg, Elementwise::scale})
    CHECK(linear(kind) == "1");
  for (const auto kind :
       {Elementwise::add_scalar, Elementwise::exp, Elementwise::log, Elementwise::sqrt, Elementwise::rsqrt,
        Elementwise::reciprocal, Elementwise::square, Elementwise::tanh, Elementwise::sigmoid, Elementwise::relu,
        Elementwise::silu, Elementwise::gelu, Elementwise::minimum_scalar})
    CHECK(linear(kind) == "0");
  CHECK(linear(Elementwise::sub) == "11 additive");
  CHECK(linear(Elementwise::mul) == "11");
  CHECK(linear(Elementwise::div) == "10");
  CHECK(linear(Elementwise::maximum) == "00");
  for (const auto kind :
       {Elementwise::relu_grad, Elementwise::silu_grad, Elementwise::gelu_grad, Elementwise::tanh_grad})
    CHECK(linear(kind) == "01");
}

TEST_CASE("sums and maxima leave partial results of their kind over a split dim") {
  CHECK(rule_text(Reduce{Reduction::sum, {kEmbed}}, {f32(kX)}) ==
        "batch parallel 0 -> 0\nseq parallel 1 -> 1\nembed sum 2 -> -1\nlinear 1");
  CHECK(rule_text(Reduce{Reduction::max, {kEmbed}}, {f32(kX)}) ==
        "batch parallel 0 -> 0\nseq parallel 1 -> 1\nembed max 2 -> -1\nlinear 0");
}

TEST_CASE(
    "rename carries a split over to the new name; masks are linear when they fill with 0; rope needs its dim whole") {
  CHECK(rule_text(Rename{kSeq, kKeySeq}, {f32(kX)}) ==
        "batch parallel 0 -> 0\nseq parallel 1 -> 1\nembed parallel 2 -> 2\nlinear 1");
  CHECK(rule_text(MaskPadding{kEmbed, 0, {}}, {f32({dim(kEmbed, 8)})}) == "embed parallel 0 -> 0\nlinear 1");
  CHECK(rule_text(MaskPadding{kEmbed, -1, {}}, {f32({dim(kEmbed, 8)})}) == "embed parallel 0 -> 0\nlinear 0");
  CHECK(rule_text(MaskCausal{kSeq, kEmbed, 0, {}, {}}, {f32({dim(kSeq, 4), dim(kEmbed, 8)})}) ==
        "seq parallel 0 -> 0\nembed parallel 1 -> 1\nlinear 1");
  CHECK(rule_text(Rope{kSeq, kEmbed, 1e4, false, {}}, {f32({dim(kSeq, 4), dim(kEmbed, 8)})}) ==
        "seq parallel 0 -> 0\nembed whole 1 -> 1\nlinear 1");
}

TEST_CASE("a split table or split classes give partial sums, their gradients make each device's own rows") {
  CHECK(rule_text(Lookup{kVocab, {}}, {f32({dim(kVocab, 10), dim(kEmbed, 8)}), i32(kIds)}) ==
        "vocab sum 0,-1 -> -1\nembed parallel 1,-1 -> 2\nbatch parallel -1,0 -> 0\nseq parallel -1,1 -> 1\nlinear 10");
  CHECK(rule_text(LookupGrad{dim(kVocab, 10), {}}, {i32(kIds), f32(kX)}) ==
        "batch sum 0,0 -> -1\nseq sum 1,1 -> -1\nembed parallel -1,2 -> 1\nvocab parallel -1,-1 -> 0\nlinear 01");
  CHECK(rule_text(Pick{kEmbed, {}}, {f32(kX), i32(kIds)}) ==
        "batch parallel 0,0 -> 0\nseq parallel 1,1 -> 1\nembed sum 2,-1 -> -1\nlinear 10");
  CHECK(rule_text(PickGrad{dim(kVocab, 10), {}}, {i32(kIds), f32(kIds)}) ==
        "batch parallel 0,0 -> 0\nseq parallel 1,1 -> 1\nvocab parallel -1,-1 -> 2\nlinear 01");
}

TEST_CASE("flash splits batch, heads and queries; in its gradient keys and values are partial over split queries") {
  const TensorType q = f32({dim(kBatch, 2), dim(kSeq, 6), dim(kKvHeads, 2), dim(kQGroup, 3), dim(kHeadDim, 4)});
  const TensorType k = f32({dim(kBatch, 2), dim(kKeySeq, 6), dim(kKvHeads, 2), dim(kHeadDim, 4)});
  const TensorType lse = f32({dim(kBatch, 2), dim(kKvHeads, 2), dim(kQGroup, 3), dim(kSeq, 6)});
  CHECK(rule_text(Flash{}, {q, k, k}) ==
        "batch parallel 0,0,0 -> 0,0\nseq parallel 1,-1,-1 -> 1,3\nkv_heads parallel 2,2,2 -> 2,1\n"
        "q_group parallel 3,-1,-1 -> 3,2\nhead_dim whole 4,3,3 -> 4,-1\nkey_seq whole -1,1,1 -> -1,-1\nlinear 000");
  CHECK(
      rule_text(FlashGrad{}, {q, k, k, q, lse, q}) ==
      "batch parallel 0,0,0,0,0,0 -> 0,0,0\nseq sum 1,-1,-1,1,3,1 -> 1,-1,-1\nkv_heads parallel 2,2,2,2,1,2 -> 2,2,2\n"
      "q_group sum 3,-1,-1,3,2,3 -> 3,-1,-1\nhead_dim whole 4,3,3,4,-1,4 -> 4,3,3\n"
      "key_seq whole -1,1,1,-1,-1,-1 -> -1,1,1\nlinear 000000");
}

TEST_CASE("updates and fills are parallel in every dim") {
  const TensorType p = f32({dim(kEmbed, 8)});
  CHECK(rule_text(Update{Optimizer::momentum}, {p, p, f32({}), p}) == "embed parallel 0,0,-1,0 -> 0,0\nlinear 0000");
  CHECK(rule_text(Fill{1}, {}, {dim(kEmbed, 8)}) == "embed parallel  -> 0\nlinear ");
}
