#include "models/config.hpp"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/checked.hpp"

namespace tpusim::models {
namespace {

// Far beyond any published model; they keep every size inside 64 bits.
constexpr std::int64_t kMaxLayers = 100'000;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;
constexpr std::int64_t kMaxHeads = std::int64_t{1} << 16;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 28;  // of vocabulary and position tables

class Checker {
 public:
  Checker(const std::string& pointer, DiagnosticSink& sink) : pointer_(pointer), sink_(sink) {}
  void size(const char* field, std::int64_t value, std::int64_t limit) {
    if (value < 1)
      sink_.error(Code::bad_value, at(field), fmt::format("expected a whole number of at least 1, found {}", value));
    else if (value > limit)
      sink_.error(Code::too_large, at(field), fmt::format("{} is beyond the bound of {}", value, limit));
  }
  void positive(const char* field, double value) {
    if (!(std::isfinite(value) && value > 0))
      sink_.error(Code::bad_value, at(field), fmt::format("expected a positive number, found {}", value));
  }
  void error(Code code, const char* field, std::string message) { sink_.error(code, at(field), std::move(message)); }

 private:
  std::string at(const char* field) const { return pointer_ + "/" + field; }
  const std::string& pointer_;
  DiagnosticSink& sink_;
};

void check_transformer(const ModelConfig& c, Checker& checker) {
  checker.size("heads", c.heads, kMaxHeads);
  checker.size("kv_heads", c.kv_heads, kMaxHeads);
  checker.size("head_dim", c.head_dim, kMaxWidth);
  checker.size("vocab", c.vocab, kMaxRows);
  checker.positive("norm_eps", c.norm_eps);
  if (c.heads > 0 && c.kv_heads > 0 && c.heads % c.kv_heads != 0)
    checker.error(Code::not_divisible, "kv_heads",
                  fmt::format("{} key and value heads do not divide {} query heads", c.kv_heads, c.heads));
  if (c.positions == Positions::learned) checker.size("max_positions", c.max_positions, kMaxRows);
  if (c.positions != Positions::rotary) return;
  checker.positive("rope_theta", c.rope_theta);
  if (c.head_dim % 2 != 0)
    checker.error(Code::not_divisible, "head_dim",
                  fmt::format("rotary positions turn pairs, so head_dim is even, found {}", c.head_dim));
}

}  // namespace

std::string_view to_string(Family family) {
  switch (family) {
    case Family::transformer:
      return "transformer";
    case Family::mlp:
      return "mlp";
    case Family::fixed:
      return "fixed";
  }
  internal_error(__FILE__, __LINE__, "family", "a family without a name");
}

std::string_view to_string(Positions positions) {
  switch (positions) {
    case Positions::rotary:
      return "rotary";
    case Positions::learned:
      return "learned";
    case Positions::none:
      return "none";
  }
  internal_error(__FILE__, __LINE__, "positions", "positions without a name");
}

std::string_view to_string(Norm norm) {
  switch (norm) {
    case Norm::rms:
      return "rms";
    case Norm::layer:
      return "layer";
  }
  internal_error(__FILE__, __LINE__, "norm", "a norm without a name");
}

std::string_view to_string(Activation activation) {
  switch (activation) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::relu:
      return "relu";
  }
  internal_error(__FILE__, __LINE__, "activation", "an activation without a name");
}

void check(const ModelConfig& c, const std::string& pointer, DiagnosticSink& sink) {
  Checker checker(pointer, sink);
  if (c.family == Family::fixed) {
    checker.positive("step_compute", c.step_compute.value());
    return;
  }
  checker.size("layers", c.layers, kMaxLayers);
  checker.size("embed", c.embed, kMaxWidth);
  checker.size("mlp", c.mlp, kMaxWidth);
  if (c.family == Family::transformer) check_transformer(c, checker);
}

std::int64_t parameter_count(const ModelConfig& c) {
  if (c.family == Family::fixed) return 0;
  const char* what = "the number of parameters";
  const auto times = [what](std::int64_t a, std::int64_t b) { return checked_mul(a, b, what); };
  const auto plus = [what](std::int64_t a, std::int64_t b) { return checked_add(a, b, what); };
  const std::int64_t one = c.bias ? 1 : 0;
  // Matrices [embed, mlp] going in, one [mlp, embed] going out.
  const std::int64_t inward = c.gated_mlp ? 2 : 1;
  const std::int64_t mlp =
      plus(times(times(inward + 1, c.embed), c.mlp), times(one, plus(times(inward, c.mlp), c.embed)));
  if (c.family == Family::mlp) return times(c.layers, mlp);
  const std::int64_t norm = times(c.norm == Norm::layer ? 2 : 1, c.embed);
  const std::int64_t q = times(c.heads, c.head_dim), kv = times(c.kv_heads, c.head_dim);
  const std::int64_t attention =
      plus(times(times(2, c.embed), plus(q, kv)), times(one, plus(plus(q, times(2, kv)), c.embed)));
  const std::int64_t norms = times(c.parallel_block ? 1 : 2, norm);
  const std::int64_t table = times(c.vocab, c.embed);
  std::int64_t total = times(c.layers, plus(plus(mlp, attention), norms));
  total = plus(total, plus(norm, times(c.tied_embeddings ? 1 : 2, table)));
  if (c.positions == Positions::learned) total = plus(total, times(c.max_positions, c.embed));
  return total;
}

}  // namespace tpusim::models
