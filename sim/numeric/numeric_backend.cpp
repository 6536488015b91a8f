#include "sim/numeric/numeric_backend.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "sim/ir/ops.hpp"

namespace tpusim::numeric {
namespace {

bool is_data(const plan::StepProgram& program, const plan::Buffer& buffer) {
  if (!buffer.persistent || buffer.scope != plan::Scope::microbatch || buffer.block < 0) return false;
  const ir::Program& local = program.programs[static_cast<std::size_t>(buffer.block)].local;
  return std::any_of(local.data.begin(), local.data.end(),
                     [&](const ir::DataInput& input) { return input.value == buffer.value; });
}

}  // namespace

struct NumericBackend::KernelTask {
  std::int64_t device = 0;
  std::int32_t kernel = 0, site = 0;
  std::int64_t microbatch = 0, step = 0;
  std::vector<Bound> reads, writes;
};

struct NumericBackend::CollectiveTask {
  std::int32_t collective = 0, site = 0;
  std::int64_t microbatch = 0, step = 0;
  const Transport* transport = nullptr;
  std::uint64_t seed = 0;
  struct Member {
    std::int64_t device = 0;
    std::vector<Bound> reads, writes;
  };
  std::vector<Member> members;
};

NumericBackend::NumericBackend(const plan::StepProgram& program)
    : program_(program),
      memories_(static_cast<std::size_t>(program.mesh.devices())),
      data_(program.programs.size()),
      batch_tokens_(memories_.size()),
      data_readers_(memories_.size()),
      transports_(program.plans.size()) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b)
    if (is_data(program, program.buffers[b])) data_[static_cast<std::size_t>(program.buffers[b].block)].emplace_back(b);
}

std::vector<run::Instance> NumericBackend::persistent_instances(std::int64_t device, plan::BufferId id) const {
  const plan::Buffer& b = buffer(id);
  const std::int32_t stage = program_.pipeline_axis < 0
                                 ? 0
                                 : static_cast<std::int32_t>(program_.mesh.coordinate(device, program_.pipeline_axis));
  std::vector<run::Instance> result;
  if (b.scope == plan::Scope::step) {
    if (b.stages.empty() || std::find(b.stages.begin(), b.stages.end(), stage) != b.stages.end())
      result.push_back({id, 0, 0});
    return result;
  }
  TPUSIM_CHECK(b.scope != plan::Scope::call, "a persistent buffer of one call");
  for (std::size_t site = 0; site < program_.sites.size(); ++site) {
    if (program_.sites[site].block != b.block || program_.sites[site].stage != stage) continue;
    const std::int64_t count = b.scope == plan::Scope::microbatch ? program_.microbatches : 1;
    for (std::int64_t i = 0; i < count; ++i) result.push_back({id, static_cast<std::int32_t>(site), i});
  }
  return result;
}

void NumericBackend::initialize(const Initial& initial) {
  for (std::int64_t device = 0; device < program_.mesh.devices(); ++device)
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
      const plan::BufferId id(b);
      if (!buffer(id).persistent) continue;
      for (const run::Instance& instance : persistent_instances(device, id)) {
        Cell* cell = memory(device).add(instance);
        memory(device).allocate(*cell, buffer(id).type);
        write(*cell, id, initial(device, instance, buffer(id)));
      }
    }
}

NumericBackend::Token NumericBackend::issue(std::function<void()> work, const TaskGraph::Dependences& after) {
  issues_.push_back(graph_.add(std::move(work), after));
  return issues_.back();
}

void NumericBackend::write(Cell& cell, plan::BufferId id, Tensor value) const {
  const ir::TensorType& type = buffer(id).type;
  TPUSIM_CHECK(cell.live, "a value is written to a buffer that is not live: " + std::string(buffer(id).label));
  TPUSIM_CHECK(value.type().dtype == type.dtype && value.shape() == type.shape,
               "a value of " + ir::to_string(value.type()) + " is written to a buffer of " + ir::to_string(type));
  cell.tensor = std::move(value);
  cell.written = true;
}

void NumericBackend::observe(const Observation& observation) {
  const std::scoped_lock lock(observer_mutex_);
  observer_(observation);
}

// --- kernels
// -----------------------------------------------------------------------------------------------------------------

NumericBackend::Token NumericBackend::kernel(std::int32_t device, const run::KernelCall& call, Token stream,
                                             Token ready) {
  const plan::Kernel& k = program_.kernels[static_cast<std::size_t>(call.kernel)];
  auto task = std::make_shared<KernelTask>();
  task->device = device;
  task->kernel = call.kernel;
  task->site = call.site;
  task->microbatch = call.microbatch;
  task->step = call.step;
  TPUSIM_CHECK(call.reads->size() == k.reads.size() && call.writes->size() == k.writes.size(),
               "a kernel call with another number of buffers than its kernel");
  bool reads_data = false;
  for (std::size_t i = 0; i < k.reads.size(); ++i) {
    const run::Instance& instance = (*call.reads)[i];
    task->reads.push_back({k.reads[i].first, memory(device).find(instance), instance.buffer});
    reads_data = reads_data || is_data(program_, buffer(instance.buffer));
  }
  for (std::size_t i = 0; i < k.writes.size(); ++i)
    task->writes.push_back({k.writes[i].first, memory(device).find((*call.writes)[i]), (*call.writes)[i].buffer});
  const Token done = issue([this, task] { run_kernel(*task); }, {stream, ready});
  if (reads_data) data_readers_[static_cast<std::size_t>(device)].push_back(done);
  return done;
}

void NumericBackend::run_kernel(const KernelTask& task) {
  const plan::Kernel& k = program_.kernels[static_cast<std::size_t>(task.kernel)];
  const ir::Program& local = program_.programs[static_cast<std::size_t>(k.program)].local;
  std::unordered_map<std::int32_t, Tensor> made;
  std::unordered_map<std::int32_t, const Tensor*> values;
  Tensor step_number;
  for (const Bound& read : task.reads) {
    TPUSIM_CHECK(read.cell->live && read.cell->written, "kernel " + std::string(k.label) + " reads " +
                                                            std::string(buffer(read.buffer).label) +
                                                            " before it is written");
    values[read.value.index] = &read.cell->tensor;
    if (read.buffer == program_.step_number && program_.step_number.valid()) {
      step_number = Tensor(buffer(read.buffer).type, {static_cast<double>(task.step + 1)});
      values[read.value.index] = &step_number;
    }
  }
  const Location where{&program_.mesh, task.device};
  std::int64_t flops = 0;
  for (ir::OpId id : k.ops) {
    const ir::Op& op = local.op(id);
    std::vector<const Tensor*> operands;
    for (ir::ValueId operand : op.operands) {
      const auto found = values.find(operand.index);
      TPUSIM_CHECK(found != values.end(), "kernel " + std::string(k.label) + " lacks the value " +
                                              std::string(local.value(operand).label) + " that " +
                                              std::string(ir::op_name(op.kind)) + " reads");
      operands.push_back(found->second);
    }
    std::vector<ir::TensorType> types;
    for (ir::ValueId result : op.results) types.push_back(local.value(result).type);
    Evaluation evaluation = evaluate(op.kind, operands, types, where);
    flops += evaluation.flops;
    for (std::size_t i = 0; i < op.results.size(); ++i) {
      const std::int32_t index = op.results[i].index;
      values[index] = &(made[index] = std::move(evaluation.results[i]));
      if (observer_)
        observe({task.device, k.program, id, op.results[i], task.site, task.microbatch, task.step, made[index]});
    }
  }
  for (const Bound& bound : task.writes) {
    const auto found = made.find(bound.value.index);
    TPUSIM_CHECK(found != made.end(),
                 "kernel " + std::string(k.label) + " does not make " + std::string(buffer(bound.buffer).label));
    write(*bound.cell, bound.buffer, found->second);
  }
  executed_flops_ += flops;
}

// --- transfers
// ---------------------------------------------------------------------------------------------------------------

const Transport& NumericBackend::transport(std::int32_t plan) {
  std::unique_ptr<Transport>& made = transports_[static_cast<std::size_t>(plan)];
  if (!made) made = std::make_unique<Transport>(program_.plans[static_cast<std::size_t>(plan)]);
  return *made;
}

NumericBackend::Token NumericBackend::collective(const run::CollectiveCall& call, Token streams, Token ready) {
  const plan::Collective& c = program_.collectives[static_cast<std::size_t>(call.collective)];
  auto task = std::make_shared<CollectiveTask>();
  task->collective = call.collective;
  task->site = call.site;
  task->microbatch = call.microbatch;
  task->step = call.step;
  task->transport = &transport(c.plan);
  task->seed = transport_seed_ * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(issues());
  for (const run::CollectiveMember& member : *call.members) {
    CollectiveTask::Member bound;
    bound.device = member.device_class;
    TPUSIM_CHECK(member.reads.size() == c.reads.size() && member.writes.size() == c.writes.size(),
                 "a member of a collective with another number of buffers");
    TPUSIM_CHECK(program_.mesh.index_in(bound.device, c.mesh_axes) == static_cast<std::int64_t>(task->members.size()),
                 "the members of a collective are not in the order of their group");
    for (std::size_t i = 0; i < c.reads.size(); ++i)
      bound.reads.push_back({c.reads[i].first, memory(bound.device).find(member.reads[i]), member.reads[i].buffer});
    for (std::size_t i = 0; i < c.writes.size(); ++i)
      bound.writes.push_back({c.writes[i].first, memory(bound.device).find(member.writes[i]), member.writes[i].buffer});
    task->members.push_back(std::move(bound));
  }
  return issue([this, task] { run_collective(*task); }, {streams, ready});
}

void NumericBackend::run_collective(const CollectiveTask& task) {
  const plan::Collective& c = program_.collectives[static_cast<std::size_t>(task.collective)];
  const ir::Program& local = program_.programs[static_cast<std::size_t>(c.program)].local;
  std::vector<ir::OpKind> kinds;
  std::vector<ir::TensorType> types;
  for (std::size_t i = 0; i < c.ops.size(); ++i) {
    kinds.push_back(local.op(c.ops[i]).kind);
    types.push_back(local.value(local.op(c.ops[i]).results[0]).type);
  }
  std::vector<std::vector<const Tensor*>> operands;
  for (const CollectiveTask::Member& member : task.members) {
    operands.emplace_back();
    for (const Bound& read : member.reads) {
      TPUSIM_CHECK(read.cell->live && read.cell->written, "collective " + std::string(c.label) + " reads " +
                                                              std::string(buffer(read.buffer).label) +
                                                              " before it is written");
      operands.back().push_back(&read.cell->tensor);
    }
  }
  std::vector<std::vector<Tensor>> results;
  const std::int64_t bytes = task.transport->run(kinds, operands, types, task.seed, results);
  const plan::CollectiveKind kind = program_.plans[static_cast<std::size_t>(c.plan)].kind;
  count(kind == plan::CollectiveKind::all_gather       ? run::Traffic::all_gather
        : kind == plan::CollectiveKind::reduce_scatter ? run::Traffic::reduce_scatter
                                                       : run::Traffic::all_reduce,
        bytes);
  for (std::size_t m = 0; m < task.members.size(); ++m)
    for (std::size_t i = 0; i < c.ops.size(); ++i) {
      const Bound& bound = task.members[m].writes[i];
      if (observer_)
        observe({task.members[m].device, c.program, c.ops[i], bound.value, task.site, task.microbatch, task.step,
                 results[m][i]});
      write(*bound.cell, bound.buffer, std::move(results[m][i]));
    }
}

NumericBackend::Token NumericBackend::permute(const run::PermuteCall& call, Token stream, Token sender,
                                              Token receiver) {
  Cell* source = memory(call.from_class).find(call.source);
  Cell* target = memory(call.to_class).find(call.target);
  const auto work = [this, source, target, from = call.source.buffer, id = call.target.buffer] {
    TPUSIM_CHECK(source->live && source->written,
                 "a stage sends " + std::string(buffer(from).label) + " before it is written");
    count(run::Traffic::permute, source->tensor.bytes());
    write(*target, id, source->tensor);
  };
  return issue(work, {stream, sender, receiver});
}

// Each stage sends its own to every other and all add in the order of the stages, so that they end with equal sums.
NumericBackend::Token NumericBackend::stage_reduce(const run::StageReduceCall& call, Token streams, Token ready) {
  std::vector<Cell*> cells;
  std::vector<plan::BufferId> ids;
  for (std::size_t i = 0; i < call.classes.size(); ++i) {
    cells.push_back(memory(call.classes[i]).find(call.instances[i]));
    ids.push_back(call.instances[i].buffer);
  }
  const auto work = [this, cells, ids] {
    for (const Cell* cell : cells)
      TPUSIM_CHECK(cell->live && cell->written, "a stage's sum is read before it is written");
    Tensor sum = cells[0]->tensor;
    const ir::Map add{ir::Elementwise::add, 0};
    for (std::size_t i = 1; i < cells.size(); ++i)
      sum = std::move(evaluate(add, {&sum, &cells[i]->tensor}, {sum.type()}, {}).results[0]);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      count(run::Traffic::stage_reduce, static_cast<std::int64_t>(cells.size() - 1) * cells[i]->tensor.bytes());
      write(*cells[i], ids[i], sum);
    }
  };
  return issue(work, {streams, ready});
}

// --- memory and batches
// ------------------------------------------------------------------------------------------------------

NumericBackend::Token NumericBackend::allocate(std::int32_t device, const run::Instance& instance, Token previous) {
  Cell* cell = memory(device).add(instance);
  return issue([this, device, cell, id = instance.buffer] { memory(device).allocate(*cell, buffer(id).type); },
               {previous});
}

NumericBackend::Token NumericBackend::release(std::int32_t device, const run::Instance& instance, Token previous,
                                              Token done) {
  TPUSIM_CHECK(!buffer(instance.buffer).persistent, "a persistent buffer is released");
  Cell* cell = memory(device).remove(instance);
  return issue([this, device, cell] { memory(device).release(*cell); }, {previous, done});
}

NumericBackend::Token NumericBackend::batch(std::int32_t device, std::int64_t step) {
  if (!batches_) return origin();
  const std::size_t d = static_cast<std::size_t>(device);
  const auto known = batch_tokens_[d].find(step);
  if (known != batch_tokens_[d].end()) return known->second;
  const auto work = [this, device, step] {
    const std::scoped_lock lock(batches_mutex_);
    for (const auto& ids : data_)
      for (plan::BufferId id : ids)
        for (const run::Instance& instance : persistent_instances(device, id))
          write(*memory(device).find(instance), id, batches_(device, instance, buffer(id), step));
  };
  // The batch overwrites the one before: its readers must be done.
  const Token token = graph_.add(work, {graph_.join(data_readers_[d])});
  data_readers_[d].clear();
  batch_issues_.push_back(token);
  batch_tokens_[d][step] = token;
  return token;
}

static_assert(run::Backend<NumericBackend>);

}  // namespace tpusim::numeric
