// Whole blocks of models: backward against central differences, under every remat, attention and padding.
#include <doctest/doctest.h>

#include "models/builders.hpp"
#include "tests/unit/ir/gradient_check.hpp"

using namespace tpusim;
using models::ModelConfig;

namespace {

constexpr double kTolerance = 1e-7;  // two decades above the error of the differences (gradient_check.hpp)

ModelConfig small_llama() {
  ModelConfig c;
  c.layers = 2;
  c.embed = 6;
  c.heads = 4;
  c.kv_heads = 2;
  c.head_dim = 2;
  c.mlp = 5;
  c.vocab = 7;
  return c;
}

ModelConfig small_gpt2() {
  ModelConfig c = small_llama();
  c.kv_heads = 4;
  c.gated_mlp = false;
  c.tied_embeddings = true;
  c.positions = models::Positions::learned;
  c.max_positions = 4;
  c.norm = models::Norm::layer;
  c.activation = ir::Activation::gelu;
  c.bias = true;
  return c;
}

ModelConfig small_palm() {
  ModelConfig c = small_llama();
  c.kv_heads = 1;
  c.parallel_block = true;
  c.tied_embeddings = true;
  return c;
}

ModelConfig small_mlp() {
  ModelConfig c = small_llama();
  c.family = models::Family::mlp;
  c.gated_mlp = false;
  c.activation = ir::Activation::silu;  // relu has kinks, where differences show nothing
  return c;
}

models::BuildOptions options_f64(bool padded) {
  models::BuildOptions o;
  o.batch = 2;
  o.seq = 3;
  o.compute_dtype = o.parameter_dtype = ir::DType::f64;
  o.global_tokens = 6;
  o.flash_block = 2;
  if (!padded) return o;
  o.padded[static_cast<std::size_t>(ir::Axis::embed)] = 8;
  o.padded[static_cast<std::size_t>(ir::Axis::mlp)] = 8;
  o.padded[static_cast<std::size_t>(ir::Axis::vocab)] = 8;
  o.padded[static_cast<std::size_t>(ir::Axis::position)] = 6;
  return o;
}

struct Case {
  const char* name;
  ModelConfig config;
};
std::vector<Case> cases() {
  return {{"llama", small_llama()}, {"gpt2", small_gpt2()}, {"palm", small_palm()}, {"mlp", small_mlp()}};
}

// The sum of padded and of all entries' magnitudes.
double padding_of(const naive::Tensor& t) {
  double sum = 0;
  for (std::size_t i = 0; i < t.data.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    bool valid = true;
    for (std::size_t k = t.shape.size(); k-- > 0;) {
      valid = valid && rest % t.shape[k].size < t.shape[k].valid;
      rest /= t.shape[k].size;
    }
    if (!valid) sum += std::abs(t.data[i]);
  }
  return sum;
}

}  // namespace

TEST_CASE("every block of every kind of model has the gradient that differences show, padded or not") {
  for (const Case& c : cases())
    for (const auto attention : {ir::AttentionKind::flash, ir::AttentionKind::unfused})
      for (const bool padded : {false, true}) {
        CAPTURE(c.name);
        CAPTURE(padded);
        models::BuildOptions o = options_f64(padded);
        o.attention = attention;
        for (ir::Program& block : models::build(c.config, o).blocks) {
          CAPTURE(block.name);
          ir::differentiate(block, {ir::Remat::none, ir::DType::f64});
          CHECK(ir::verify(block) == std::vector<std::string>{});
          const auto inputs = naive::random_inputs(block, 17, c.config.vocab);
          CHECK(naive::slope_error(block, inputs, 19) < kTolerance);
          const auto values = naive::run(block, inputs).values;
          for (const ir::Parameter& p : block.parameters) CHECK(padding_of(values.at(p.gradient.index)) == 0);
          if (block.dx_in.valid()) CHECK(padding_of(values.at(block.dx_in.index)) == 0);
          if (block.x_out.valid()) CHECK(padding_of(values.at(block.x_out.index)) == 0);
        }
      }
}

TEST_CASE("remat changes what is kept and never a gradient, to the bit") {
  for (const Case& c : cases())
    for (const auto attention : {ir::AttentionKind::flash, ir::AttentionKind::unfused}) {
      models::BuildOptions o = options_f64(true);
      o.attention = attention;
      const ir::Model model = models::build(c.config, o);
      for (const ir::Program& block : model.blocks) {
        CAPTURE(c.name);
        CAPTURE(block.name);
        std::vector<std::vector<double>> found[3];
        for (const auto remat : {ir::Remat::none, ir::Remat::selective, ir::Remat::full}) {
          ir::Program p = block;
          ir::differentiate(p, {remat, ir::DType::f64});
          CHECK(ir::verify(p) == std::vector<std::string>{});
          const auto values = naive::run(p, naive::random_inputs(p, 23, c.config.vocab)).values;
          auto& out = found[static_cast<std::size_t>(remat)];
          for (const ir::Parameter& q : p.parameters) out.push_back(values.at(q.gradient.index).data);
          if (p.dx_in.valid()) out.push_back(values.at(p.dx_in.index).data);
        }
        CHECK(found[0] == found[1]);
        CHECK(found[0] == found[2]);
      }
    }
}

TEST_CASE("padding changes no gradient and no loss") {
  // The same numbers in the valid corner of a padded block: sums over zeros added, so equal within rounding.
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    ir::Model plain = models::build(c.config, options_f64(false));
    ir::Model padded = models::build(c.config, options_f64(true));
    CHECK(plain.parameter_count() == padded.parameter_count());
    for (std::size_t b = 0; b < plain.blocks.size(); ++b) {
      ir::Program &p = plain.blocks[b], &q = padded.blocks[b];
      CAPTURE(p.name);
      ir::differentiate(p, {ir::Remat::none, ir::DType::f64});
      ir::differentiate(q, {ir::Remat::none, ir::DType::f64});
      // random_inputs draws valid entries only, in row-major order, and ids below vocab: the same draws for both.
      const auto x = naive::run(p, naive::random_inputs(p, 29, c.config.vocab)).values;
      const auto y = naive::run(q, naive::random_inputs(q, 29, c.config.vocab)).values;
      const auto valid_entries = [](const naive::Tensor& t) {
        std::vector<double> out;
        for (std::size_t i = 0; i < t.data.size(); ++i) {
          auto rest = static_cast<std::int64_t>(i);
          bool valid = true;
          for (std::size_t k = t.shape.size(); k-- > 0;) {
            valid = valid && rest % t.shape[k].size < t.shape[k].valid;
            rest /= t.shape[k].size;
          }
          if (valid) out.push_back(t.data[i]);
        }
        return out;
      };
      const auto compare = [&](ir::ValueId one, ir::ValueId two) {
        if (!one.valid()) return;
        const auto m = valid_entries(x.at(one.index)), n = valid_entries(y.at(two.index));
        REQUIRE(m.size() == n.size());
        for (std::size_t i = 0; i < m.size(); ++i) CHECK(m[i] == doctest::Approx(n[i]).epsilon(1e-12));
      };
      compare(p.loss, q.loss);
      compare(p.dx_in, q.dx_in);
      for (std::size_t i = 0; i < p.parameters.size(); ++i) compare(p.parameters[i].gradient, q.parameters[i].gradient);
    }
  }
}

TEST_CASE("the naive loops multiply as often as the costs say, op by op") {
  for (const Case& c : cases())
    for (const auto attention : {ir::AttentionKind::flash, ir::AttentionKind::unfused}) {
      models::BuildOptions o = options_f64(true);
      o.attention = attention;
      for (ir::Program& block : models::build(c.config, o).blocks) {
        ir::differentiate(block, {ir::Remat::full, ir::DType::f64});
        const naive::Result r = naive::run(block, naive::random_inputs(block, 31, c.config.vocab));
        for (std::size_t i = 0; i < block.ops.size(); ++i) {
          const ir::Op& op = block.ops[i];
          std::vector<ir::TensorType> operands, results;
          for (const ir::ValueId v : op.operands) operands.push_back(block.value(v).type);
          for (const ir::ValueId v : op.results) results.push_back(block.value(v).type);
          CAPTURE(ir::op_name(op.kind));
          CHECK(ir::cost(op.kind, operands, results).executed_flops == 2.0 * static_cast<double>(r.multiplies[i]));
        }
      }
    }
}
