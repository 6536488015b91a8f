#include "sim/numeric/initial.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "sim/base/random.hpp"
#include "sim/numeric/shards.hpp"
#include "sim/numeric/walk.hpp"

namespace tpusim::numeric {
namespace {

// FNV-1a (Fowler, Noll, Vo), 64 bits: a purpose for a named stream.
std::uint64_t hash_of(const std::string& name) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

// Sets every valid entry, in row-major order, to draw(position along dim `along`); padded ones stay 0.
template <class Draw>
Tensor drawn(const ir::TensorType& type, int along, Draw&& draw) {
  Tensor result(type);
  const ir::Shape& shape = type.shape;
  const Strides strides = strides_over(shape, shape);
  for (std::int64_t e = 0; e < result.size(); ++e) {
    bool valid = true;
    std::int64_t position = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t at = e / strides[d] % shape[d].size;
      valid = valid && at < shape[d].valid;
      if (static_cast<int>(d) == along) position = at;
    }
    if (valid) result.set(e, draw(position));
  }
  return result;
}

double number(Random& random, const InitialSettings& settings) {
  return settings.integers ? static_cast<double>(random.below(5)) - 2 : settings.deviation * random.normal();
}

}  // namespace

std::string parameter_key(const ir::Parameter& parameter, std::int64_t site) {
  return parameter.tie.empty() ? std::to_string(site) + "." + parameter.name : parameter.tie;
}

Tensor initial_parameter(const ir::TensorType& type, ir::Init init, const std::string& key,
                         const InitialSettings& settings) {
  Random random = Random(settings.seed).fork(hash_of("parameter " + key));
  return drawn(type, -1, [&](std::int64_t) {
    switch (init) {
      case ir::Init::normal:
        return number(random, settings);
      case ir::Init::zeros:
        return 0.0;
      case ir::Init::ones:
        return 1.0;
    }
    return 0.0;
  });
}

namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

std::int64_t bound_or_none(const ir::Program& program, ir::ValueId value) {
  std::int64_t bound = kUnbounded;
  const auto valid_of = [&](const ir::Op& op, ir::DimName name) {
    const ir::Shape& shape = program.value(op.operands[0]).type.shape;
    const int at = ir::find_dim(shape, name);
    TPUSIM_CHECK(at >= 0, "a lookup without its rows");
    return shape[static_cast<std::size_t>(at)].valid;
  };
  for (const ir::Op& op : program.ops) {
    const auto reads = [&](std::size_t operand) { return op.operands[operand] == value; };
    if (const auto* lookup = std::get_if<ir::Lookup>(&op.kind); lookup && reads(1))
      bound = std::min(bound, valid_of(op, lookup->rows));
    if (const auto* pick = std::get_if<ir::Pick>(&op.kind); pick && reads(1))
      bound = std::min(bound, valid_of(op, pick->classes));
    if (const auto* grad = std::get_if<ir::LookupGrad>(&op.kind); grad && reads(0))
      bound = std::min(bound, grad->rows.valid);
    if (const auto* grad = std::get_if<ir::PickGrad>(&op.kind); grad && reads(0))
      bound = std::min(bound, grad->classes.valid);
    // Ids that are gathered or sliced before they are read are the same ids.
    if (!op.operands.empty() && reads(0) && program.value(op.results[0]).type.dtype == ir::DType::i32)
      bound = std::min(bound, bound_or_none(program, op.results[0]));
  }
  return bound;
}

}  // namespace

std::int64_t id_bound(const ir::Program& program, ir::ValueId value) {
  const std::int64_t bound = bound_or_none(program, value);
  TPUSIM_CHECK(bound < kUnbounded, "nothing in the program bounds these ids");
  return bound;
}

Tensor initial_batch(const ir::TensorType& type, ir::DataKind kind, std::int64_t bound, std::int64_t step,
                     std::int64_t microbatch, const InitialSettings& settings) {
  const std::string stream =
      "batch " + std::to_string(static_cast<int>(kind)) + " " + std::to_string(step) + " " + std::to_string(microbatch);
  Random random = Random(settings.seed).fork(hash_of(stream));
  if (kind == ir::DataKind::positions) {
    const int seq = ir::find_dim(type.shape, {ir::Axis::seq, 0});
    TPUSIM_CHECK(seq >= 0, "positions without a sequence");
    return drawn(type, seq, [](std::int64_t position) { return static_cast<double>(position); });
  }
  if (kind == ir::DataKind::features || type.dtype != ir::DType::i32) {
    InitialSettings wide = settings;
    wide.deviation = 1;  // inputs have unit variance, unlike weights
    return drawn(type, -1, [&](std::int64_t) { return number(random, wide); });
  }
  return drawn(type, -1,
               [&](std::int64_t) { return static_cast<double>(random.below(static_cast<std::uint64_t>(bound))); });
}

const spmd::PartitionSpec& buffer_spec(const plan::StepProgram& program, plan::BufferId id) {
  const auto find = [&](std::int32_t index, const auto& values) -> const spmd::PartitionSpec* {
    for (const auto& [value, ref] : values)
      if (ref.buffer == id)
        return &program.programs[static_cast<std::size_t>(index)].specs[static_cast<std::size_t>(value.index)];
    return nullptr;
  };
  for (const plan::Kernel& k : program.kernels) {
    if (const auto* spec = find(k.program, k.writes)) return *spec;
    if (const auto* spec = find(k.program, k.reads)) return *spec;
  }
  for (const plan::Collective& c : program.collectives) {
    if (const auto* spec = find(c.program, c.writes)) return *spec;
    if (const auto* spec = find(c.program, c.reads)) return *spec;
  }
  TPUSIM_CHECK(false, "no instruction touches the buffer " +
                          std::string(program.buffers[static_cast<std::size_t>(id.index)].label));
  return program.programs[0].specs[0];
}

namespace {

// A parameter of a block and how it is laid out, as a buffer names it.
struct ParameterHome {
  const ir::Parameter* parameter = nullptr;
  ir::TensorType global;
};
ParameterHome parameter_of(const plan::StepProgram& program, const plan::Buffer& buffer) {
  const spmd::Partitioned& block = program.programs[static_cast<std::size_t>(buffer.block)];
  const ir::Parameter& parameter = block.local.parameters[static_cast<std::size_t>(buffer.parameter)];
  const spmd::PartitionSpec& spec = block.specs[static_cast<std::size_t>(parameter.value.index)];
  return {&parameter, global_type(block.local.value(parameter.value).type, spec, program.mesh)};
}

const ir::DataInput* data_of(const plan::StepProgram& program, const plan::Buffer& buffer) {
  if (!buffer.persistent || buffer.scope != plan::Scope::microbatch || buffer.block < 0) return nullptr;
  for (const ir::DataInput& input : program.programs[static_cast<std::size_t>(buffer.block)].local.data)
    if (input.value == buffer.value) return &input;
  return nullptr;
}

// Whole parameters already drawn: every device asks for its shard of the same one.
using Drawn = std::map<std::string, Tensor>;

Tensor data_shard(const plan::StepProgram& program, const plan::Buffer& buffer, const ir::DataInput& input,
                  std::int64_t device, const run::Instance& instance, std::int64_t step,
                  const InitialSettings& settings) {
  const spmd::Partitioned& block = program.programs[static_cast<std::size_t>(buffer.block)];
  const spmd::PartitionSpec& spec = block.specs[static_cast<std::size_t>(buffer.value.index)];
  const ir::TensorType whole = global_type(buffer.type, spec, program.mesh);
  const bool ids = whole.dtype == ir::DType::i32 && input.kind != ir::DataKind::positions;
  const Tensor batch =
      initial_batch(whole, input.kind, ids ? id_bound(block.local, input.value) : 0, step, instance.index, settings);
  return shard(batch, spec, program.mesh, device);
}

}  // namespace

NumericBackend::Initial initial_values(const plan::StepProgram& program, const InitialSettings& settings) {
  auto drawn_before = std::make_shared<Drawn>();
  return [&program, settings, drawn_before](std::int64_t device, const run::Instance& instance,
                                            const plan::Buffer& buffer) {
    if (const ir::DataInput* input = data_of(program, buffer))
      return data_shard(program, buffer, *input, device, instance, 0, settings);
    const bool master = buffer.slot >= 0 && buffer.label == "master";
    const bool parameter = buffer.category == plan::Category::parameters && buffer.slot < 0 && buffer.parameter >= 0;
    if (!parameter && !master) return Tensor(buffer.type);
    const ParameterHome home = parameter_of(program, buffer);
    const std::string key = parameter_key(*home.parameter, instance.site);
    const auto known = drawn_before->find(key);
    const Tensor& whole =
        known != drawn_before->end()
            ? known->second
            : drawn_before->emplace(key, initial_parameter(home.global, home.parameter->init, key, settings))
                  .first->second;
    if (!master)
      return shard(whole,
                   program.programs[static_cast<std::size_t>(buffer.block)]
                       .specs[static_cast<std::size_t>(home.parameter->value.index)],
                   program.mesh, device);
    // The master copy holds the same, already rounded, values at first, laid out as the optimizer state.
    ir::TensorType wide = home.global;
    wide.dtype = buffer.type.dtype;
    return shard(Tensor(wide, whole.to_doubles()), buffer_spec(program, instance.buffer), program.mesh, device);
  };
}

NumericBackend::Batches batch_values(const plan::StepProgram& program, const InitialSettings& settings) {
  return [&program, settings](std::int64_t device, const run::Instance& instance, const plan::Buffer& buffer,
                              std::int64_t step) {
    const ir::DataInput* input = data_of(program, buffer);
    TPUSIM_CHECK(input != nullptr, "a batch for a buffer that holds no data");
    return data_shard(program, buffer, *input, device, instance, step, settings);
  };
}

}  // namespace tpusim::numeric
