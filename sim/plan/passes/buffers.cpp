// Pass 2: where every value that outlives its kernel lives.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

struct Boundary {
  ir::TensorType type;
  BufferId x, dx;
};

// A tied parameter's buffers, shared by all holders.
struct Shared {
  std::string tie;
  ir::TensorType type;
  const ParameterUse* use = nullptr;  // of the holder that owns them
};

class Buffers {
 public:
  explicit Buffers(Lowering& l) : l_(l) {}
  void run();

 private:
  Binding& binding(std::int32_t program) { return l_.bindings[at(program)]; }
  void bind(std::int32_t program, ir::ValueId value, BufferRef ref, bool keep, bool in_place = false);
  BufferId boundary(const ir::TensorType& type, bool gradient);
  BufferId make(const ir::Value& value, ir::ValueId id, Category category, Scope scope, bool persistent,
                std::int32_t block, Role role);
  void ports(std::size_t b);
  void saved(std::size_t b);
  void parameter(std::size_t b, std::size_t p);
  void own_parameter(std::size_t b, ParameterUse& use, const UpdatePorts& port);
  void bind_updates(std::size_t b, ParameterUse& use, const UpdatePorts& port);
  void bind_reduction(const BlockPlan& block, ParameterUse& use, const UpdatePorts& port);
  void stage_reduces();
  void clipping();

  Lowering& l_;
  std::vector<Boundary> boundaries_;
  std::vector<Shared> shared_;
};

void Buffers::bind(std::int32_t program, ir::ValueId value, BufferRef ref, bool keep, bool in_place) {
  if (!value.valid()) return;
  Binding& b = binding(program);
  b.bound[at(value.index)] = ref;
  b.keep[at(value.index)] = keep ? 1 : 0;
  b.in_place[at(value.index)] = in_place ? 1 : 0;
}

BufferId Buffers::boundary(const ir::TensorType& type, bool gradient) {
  std::size_t i = 0;
  while (i < boundaries_.size() && !(boundaries_[i].type == type)) ++i;
  if (i == boundaries_.size()) boundaries_.push_back({type, {}, {}});
  BufferId& id = gradient ? boundaries_[i].dx : boundaries_[i].x;
  if (!id.valid()) {
    Buffer buffer;
    buffer.label = gradient ? "dx" : "x";
    buffer.type = type;
    buffer.category = Category::activations;
    buffer.scope = Scope::microbatch;
    id = l_.add_buffer(buffer, gradient ? Role::dx : Role::x);
  }
  return id;
}

BufferId Buffers::make(const ir::Value& value, ir::ValueId id, Category category, Scope scope, bool persistent,
                       std::int32_t block, Role role) {
  Buffer buffer;
  buffer.label = value.label;
  buffer.type = value.type;
  buffer.category = category;
  buffer.scope = scope;
  buffer.persistent = persistent;
  buffer.block = block;
  buffer.value = id;
  return l_.add_buffer(buffer, role);
}

void Buffers::ports(std::size_t b) {
  const BlockPlan& block = l_.blocks[b];
  const ir::Program& program = l_.program(block.program);
  const auto index = static_cast<std::int32_t>(b);
  for (const ir::DataInput& data : program.data)
    bind(block.program, data.value,
         {make(program.value(data.value), data.value, Category::activations, Scope::microbatch, true, index,
               Role::persistent),
          0},
         false);
  const auto port = [&](ir::ValueId value, bool gradient, std::int32_t delta, bool keep) {
    if (value.valid()) bind(block.program, value, {boundary(program.value(value).type, gradient), delta}, keep);
  };
  port(program.x_in, false, -1, false);
  port(program.x_out, false, 0, true);
  port(program.dx_out, true, 0, false);
  if (program.dx_out.valid()) l_.blocks[b].dx_out = boundary(program.value(program.dx_out).type, true);
  port(program.dx_in, true, -1, true);
  if (program.loss.valid()) {
    TPUSIM_CHECK(!l_.out.loss.valid(), "one block makes the loss");
    l_.out.loss = make(program.value(program.loss), program.loss, Category::workspace, Scope::microbatch, true, index,
                       Role::persistent);
    bind(block.program, program.loss, {l_.out.loss, 0}, true);
  }
}

// Forward values that the backward call reads.
void Buffers::saved(std::size_t b) {
  BlockPlan& block = l_.blocks[b];
  const ir::Program& program = l_.program(block.program);
  Binding& home = binding(block.program);
  for (ir::OpId id : block.backward_ops)
    for (ir::ValueId v : program.op(id).operands) {
      block.x_in_in_backward |= v == program.x_in;
      block.x_out_in_backward |= v == program.x_out;
      const ir::OpId producer = program.value(v).producer;
      if (home.bound[at(v.index)].buffer.valid() || !producer.valid() ||
          program.op(producer).phase != ir::Phase::forward)
        continue;
      bind(block.program, v,
           {make(program.value(v), v, Category::activations, Scope::microbatch, false, static_cast<std::int32_t>(b),
                 Role::saved),
            0},
           true);
    }
}

void Buffers::own_parameter(std::size_t b, ParameterUse& use, const UpdatePorts& port) {
  const auto index = static_cast<std::int32_t>(b);
  const BlockPlan& block = l_.blocks[b];
  const ir::Program& program = l_.program(block.program);
  const ir::Program& update = l_.program(block.update_program);
  const Scope scope = use.tied ? Scope::step : Scope::site;
  const auto mark = [&](BufferId id, std::int32_t slot) {
    l_.out.buffers[at(id.index)].parameter = use.index;
    l_.out.buffers[at(id.index)].slot = slot;
    return id;
  };
  const ir::ValueId value = program.parameters[at(use.index)].value;
  use.parameter_buffer =
      mark(make(program.value(value), value, Category::parameters, scope, true, index, Role::persistent), -1);
  use.gradient_buffer = mark(
      make(program.value(use.gradient), use.gradient, Category::gradients, scope, false, index, Role::gradient), -1);
  for (std::size_t s = 0; s < port.slots.size(); ++s)
    use.slot_buffers.push_back(mark(
        make(update.value(port.slots[s]), port.slots[s], Category::optimizer, scope, true, index, Role::persistent),
        static_cast<std::int32_t>(s)));
  // Where the reduction does more than all-reduce in place, its result has a buffer of its own.
  ir::ValueId root = port.reduced;
  while (root != port.accumulated && std::holds_alternative<ir::AllReduce>(update.op(update.value(root).producer).kind))
    root = update.op(update.value(root).producer).operands[0];
  use.reduced_buffer = root == port.accumulated ? use.gradient_buffer
                                                : mark(make(update.value(port.reduced), port.reduced,
                                                            Category::gradients, scope, false, index, Role::reduced),
                                                       -1);
}

void Buffers::bind_reduction(const BlockPlan& block, ParameterUse& use, const UpdatePorts& port) {
  const ir::Program& update = l_.program(block.update_program);
  bind(block.update_program, port.accumulated, {use.gradient_buffer, 0}, false);
  ir::ValueId v = port.reduced;
  while (v != port.accumulated) {
    const ir::Op& op = update.op(update.value(v).producer);
    const bool in_place = std::holds_alternative<ir::AllReduce>(op.kind);
    bind(block.update_program, v, {use.reduced_buffer, 0}, true, in_place);
    if (!in_place) break;
    v = op.operands[0];
  }
}

void Buffers::bind_updates(std::size_t b, ParameterUse& use, const UpdatePorts& port) {
  const std::int32_t program = l_.blocks[b].update_program;
  const ir::Program& update = l_.program(program);
  bind_reduction(l_.blocks[b], use, port);
  bind(program, port.parameter, {use.parameter_buffer, 0}, false);
  bind(program, port.new_parameter, {use.parameter_buffer, 0}, true, true);
  for (std::size_t s = 0; s < port.slots.size(); ++s) {
    bind(program, port.slots[s], {use.slot_buffers[s], 0}, false);
    bind(program, port.new_slots[s], {use.slot_buffers[s], 0}, true, true);
  }
  bool step_read = false;
  for (ir::OpId op : use.update_ops) step_read |= port.step.valid() && update.op(op).operands.contains(port.step);
  if (step_read) {
    if (!l_.out.step_number.valid())
      l_.out.step_number =
          make(update.value(port.step), ir::ValueId(), Category::optimizer, Scope::step, true, -1, Role::persistent);
    bind(program, port.step, {l_.out.step_number, 0}, false);
  }
  if (port.gscale.valid()) {
    if (!l_.out.gscale.valid())
      l_.out.gscale =
          make(update.value(port.gscale), ir::ValueId(), Category::workspace, Scope::step, false, -1, Role::gscale);
    bind(program, port.gscale, {l_.out.gscale, 0}, false);
  }
}

void Buffers::parameter(std::size_t b, std::size_t p) {
  BlockPlan& block = l_.blocks[b];
  const ir::Program& program = l_.program(block.program);
  const ir::Parameter& parameter = program.parameters[p];
  const auto found = std::find_if(block.parameters.begin(), block.parameters.end(),
                                  [p](const ParameterUse& u) { return u.index == static_cast<std::int32_t>(p); });
  binding(block.program).parameter[at(parameter.value.index)] = 1;
  if (found == block.parameters.end()) {  // not trained
    const BufferId id = make(program.value(parameter.value), parameter.value, Category::parameters, Scope::site, true,
                             static_cast<std::int32_t>(b), Role::persistent);
    l_.out.buffers[at(id.index)].parameter = static_cast<std::int32_t>(p);
    bind(block.program, parameter.value, {id, 0}, false);
    return;
  }
  ParameterUse& use = *found;
  const UpdatePorts& port = l_.ports[b][static_cast<std::size_t>(found - block.parameters.begin())];
  const auto held =
      std::find_if(shared_.begin(), shared_.end(), [&](const Shared& s) { return use.tied && s.tie == parameter.tie; });
  if (held == shared_.end()) {
    own_parameter(b, use, port);
    if (use.tied) shared_.push_back({parameter.tie, program.value(parameter.value).type, &use});
  } else {
    TPUSIM_CHECK(held->type.dtype == program.value(parameter.value).type.dtype &&
                     held->type.shape == program.value(parameter.value).type.shape,
                 "the holders of a tied parameter lay it out alike");
    use.parameter_buffer = held->use->parameter_buffer;
    use.gradient_buffer = held->use->gradient_buffer;
    use.reduced_buffer = held->use->reduced_buffer;
    use.slot_buffers = held->use->slot_buffers;
  }
  if (use.tied) {
    std::vector<BufferId> all = use.slot_buffers;
    all.insert(all.end(), {use.parameter_buffer, use.gradient_buffer});
    if (use.reduced_buffer != use.gradient_buffer) all.push_back(use.reduced_buffer);
    const std::int32_t stage = l_.out.sites[at(l_.sites_of_block[b][0])].stage;
    for (BufferId id : all) {
      std::vector<std::int32_t>& stages = l_.out.buffers[at(id.index)].stages;
      if (std::find(stages.begin(), stages.end(), stage) == stages.end()) stages.push_back(stage);
    }
  }
  bind(block.program, parameter.value, {use.parameter_buffer, 0}, false);
  const ir::Op& accumulate = program.op(use.accumulate);
  bind(block.program, accumulate.operands[0], {use.gradient_buffer, 0}, false);
  bind(block.program, use.accumulated, {use.gradient_buffer, 0}, true, true);
  for (ir::ValueId v = use.gradient;;) {
    binding(block.program).gradient[at(v.index)] = 1;
    const ir::OpId producer = program.value(v).producer;
    if (!producer.valid() || !is_collective(program.op(producer).kind)) break;
    v = program.op(producer).operands[0];
  }
  if (use.updates) bind_updates(b, use, port);
}

// A tied parameter on several stages: its reduced gradients are summed over them.
void Buffers::stage_reduces() {
  for (BlockPlan& block : l_.blocks)
    for (ParameterUse& use : block.parameters) {
      if (!use.tied || !use.updates) continue;
      const Buffer& buffer = l_.out.buffers[at(use.reduced_buffer.index)];
      if (buffer.stages.size() < 2) continue;
      for (std::size_t i = 0; i < l_.out.stage_reduces.size(); ++i)
        if (l_.out.stage_reduces[i].buffer.buffer == use.reduced_buffer)
          use.stage_reduce = static_cast<std::int32_t>(i);
      if (use.stage_reduce >= 0) continue;
      const StageLink link = stage_link(l_, buffer.stages.front(), buffer.stages.back());
      use.stage_reduce = static_cast<std::int32_t>(l_.out.stage_reduces.size());
      l_.out.stage_reduces.push_back({{use.reduced_buffer, 0},
                                      buffer.stages,
                                      buffer.bytes,
                                      link.alpha,
                                      link.beta,
                                      l_.out.resources - 1,
                                      link.level});
    }
}

void Buffers::clipping() {
  ClipPlan& clip = l_.clip;
  if (clip.program < 0) return;
  const ir::Program& program = l_.program(clip.program);
  for (std::size_t i = 0; i < clip.norm_axes.size(); ++i) {
    clip.norm.push_back(
        make(program.value(clip.zero[i]), ir::ValueId(), Category::workspace, Scope::step, false, -1, Role::norm));
    bind(clip.program, clip.zero[i], {clip.norm[i], 0}, true);
    bind(clip.program, clip.sum[i], {clip.norm[i], 0}, false);
  }
  binding(clip.program).keep[at(clip.total.index)] = 1;
  bind(clip.program, clip.gscale, {l_.out.gscale, 0}, true);
  for (const BlockPlan& block : l_.blocks)
    for (const NormPort& norm : block.norms) {
      bind(block.update_program, norm.before, {clip.norm[norm.set], 0}, false);
      bind(block.update_program, norm.after, {clip.norm[norm.set], 0}, true, true);
    }
  if (l_.out.stages == 1) return;
  std::vector<std::int32_t> stages;
  for (std::int32_t s = 0; s < l_.out.stages; ++s) stages.push_back(s);
  const StageLink link = stage_link(l_, 0, l_.out.stages - 1);
  const BufferRef total = l_.home(clip.program, clip.total);
  clip.stage_reduce = static_cast<std::int32_t>(l_.out.stage_reduces.size());
  l_.out.stage_reduces.push_back({total, stages, l_.out.buffers[at(total.buffer.index)].bytes, link.alpha, link.beta,
                                  l_.out.resources - 1, link.level});
}

void Buffers::run() {
  for (const spmd::Partitioned& p : l_.out.programs) {
    const std::size_t n = p.local.values.size();
    l_.bindings.push_back({std::vector<BufferRef>(n), std::vector<std::uint8_t>(n), std::vector<std::uint8_t>(n),
                           std::vector<std::uint8_t>(n), std::vector<std::uint8_t>(n)});
  }
  for (std::size_t b = 0; b < l_.blocks.size(); ++b) {
    ports(b);
    for (std::size_t p = 0; p < l_.program(l_.blocks[b].program).parameters.size(); ++p) parameter(b, p);
    saved(b);
  }
  stage_reduces();
  clipping();
}

}  // namespace

void make_buffers(Lowering& l) {
  Buffers(l).run();
}

}  // namespace tpusim::plan::passes
