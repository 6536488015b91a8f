// A Program: values and ops of one block (embedding, layer, head, ...), forward and, once differentiated, backward.
//
// A model is a list of (block, count). Blocks meet at ports: x_in is the previous block's x_out; in backward dx_out
// comes from the next block and dx_in goes to the previous one. A value made in phase forward and used in backward is
// *saved* (kept from the forward call of a microbatch to its backward call); what is not saved is computed again in
// phase recompute.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/op.hpp"

namespace tpusim::ir {

enum class Phase : std::uint8_t { forward, recompute, backward, update };

// Which sharding table says how a value wants to be split.
enum class Table : std::uint8_t { activations, parameters, gradients, optimizer };

struct Value {
  TensorType type;
  OpId producer;  // invalid: an input of the program
  Table table = Table::activations;
  std::string_view label;  // static text: "q", "scores", ... for printing, remat lists and culprits
};

struct Op {
  OpKind kind;
  InlineVector<ValueId, 8> operands;
  InlineVector<ValueId, 4> results;
  Phase phase = Phase::forward;
};

enum class Init : std::uint8_t { normal /* std 0.02 */, zeros, ones };

struct Parameter {
  ValueId value;
  std::string name;  // "wq"; unique in the block. Equal `tie` names in two blocks are one parameter.
  std::string tie;   // "" or the model-wide name of a shared parameter ("embedding")
  Init init = Init::normal;
  DimNames input_dims;   // for Adafactor's row means: the dims that the product contracts
  DimNames output_dims;  // ... and those it makes
  ValueId gradient;      // set by differentiate(); table gradients, dtype gradient_dtype, same dims
};

enum class DataKind : std::uint8_t { tokens, targets, positions, features, labels };
struct DataInput {
  ValueId value;
  DataKind kind = DataKind::tokens;
};

struct Program {
  std::string name;  // "embedding", "layer", "head"
  std::vector<Value> values;
  std::vector<Op> ops;  // in an order that respects dataflow, phases ascending
  std::vector<Parameter> parameters;
  std::vector<DataInput> data;
  ValueId x_in, x_out;    // invalid where the block has none
  ValueId dx_out, dx_in;  // set by differentiate()
  ValueId loss;           // scalar f32 (f64 in f64 runs): this block's share of the mean loss of the global batch

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id.index)]; }
  Value& value(ValueId id) { return values[static_cast<std::size_t>(id.index)]; }
  const Op& op(OpId id) const { return ops[static_cast<std::size_t>(id.index)]; }
  std::int64_t parameter_count() const;  // valid entries only, ties counted here too
};

// Adds values and ops with inferred result types. The only way to write a program.
class Builder {
 public:
  explicit Builder(Program& program) : program_(program) {}
  Phase phase = Phase::forward;
  ValueId input(TensorType type, std::string_view label, Table table = Table::activations);
  // Result types are inferred (ops.hpp) except the given dtype and place; label is static text.
  struct As {
    std::string_view label;
    Place place = Place::none;
    Table table = Table::activations;
  };
  ValueId dot(ValueId lhs, ValueId rhs, const DimNames& result, DType dtype, As as);
  ValueId map(Elementwise kind, ValueId x, As as, double a = 0);
  ValueId map(Elementwise kind, ValueId x, ValueId y, As as);
  ValueId cast(ValueId x, DType dtype, As as);
  ValueId reduce(Reduction kind, ValueId x, const DimNames& dims, As as);
  ValueId fill(double value, const Shape& shape, DType dtype, As as);
  // Any op: operands and attributes given; result types inferred; `dtype` only matters to ops that have one of their
  // own.
  InlineVector<ValueId, 4> add(const OpKind& kind, const InlineVector<ValueId, 8>& operands, DType dtype, As as,
                               const Shape& like);
  InlineVector<ValueId, 4> add(const OpKind& kind, const InlineVector<ValueId, 8>& operands, DType dtype, As as) {
    return add(kind, operands, dtype, as, Shape());
  }
  void relabel(ValueId id, std::string_view label) { program_.value(id).label = label; }
  const TensorType& type(ValueId id) const { return program_.value(id).type; }
  const Program& program() const { return program_; }

 private:
  Program& program_;
};

// The model as a whole. Blocks with equal programs are one entry with a count.
struct BlockUse {
  int block = 0;  // index into Model::blocks
  std::int64_t count = 1;
};
struct Model {
  std::string name;
  std::vector<Program> blocks;
  std::vector<BlockUse> uses;            // in forward order
  std::int64_t parameter_count() const;  // a tied parameter once; padding not
  std::int64_t layers = 0;
};

// The whole program as text, one op a line; for `explain` and for tests.
std::string print(const Program& program);

}  // namespace tpusim::ir
