// What the passes of lower() share while they build a StepProgram. Internal to sim/plan.
//
// A *node* is an instruction of one call before it has a place in a template; the *parts* of a call kind are its nodes
// in plan order: those issued at the head of the preceding call (prefetch), its own (main), and those that the
// following call carries out for it (deferred).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/lower.hpp"

namespace tpusim::plan::passes {

// What a buffer is, which decides when its instances are born and die.
enum class Role : std::uint8_t { persistent, x, dx, saved, temporary, gradient, reduced, norm, gscale };

struct Node {
  InstrKind kind = InstrKind::kernel;
  std::int32_t body = -1;
  bool late = false;        // reads parameters alone: placed right before its first user
  bool prefetch = false;    // a parameter's cast and gather, or a receive: may be issued in the preceding call
  bool accumulate = false;  // only adds a gradient to its accumulator
  bool bucket = false;      // a once-a-step gradient reduction
  std::vector<BufferRef> reads, writes;
  std::vector<BufferRef> births, deaths;
  std::int32_t awaits = -1;  // done: index in its part of the node that the compute stream waits for
  bool asynchronous() const { return kind != InstrKind::kernel && kind != InstrKind::done; }
};

struct Parts {
  std::vector<Node> prefetch, main, deferred;
  BufferRef x_in;               // {x, -1} when the call uses its boundary input
  std::int32_t x_in_last = -1;  // index in main of the node after which x_in may die; -1: not used
};

// Where the values of a program live.
struct Binding {
  std::vector<BufferRef> bound;         // by value; invalid: a temporary, made when first needed
  std::vector<std::uint8_t> in_place;   // by value: its writer overwrites an instance that is there
  std::vector<std::uint8_t> keep;       // by value: read beyond the list of ops being fused
  std::vector<std::uint8_t> parameter;  // by value: a parameter as it arrives
  std::vector<std::uint8_t> gradient;   // by value: a parameter's gradient, or what collectives make it from
};

// A parameter as one block sees it. The holders of a tied parameter on one stage share its buffers.
struct ParameterUse {
  std::int32_t index = 0;  // in the block's program
  bool tied = false;
  bool writes_first = true;  // the first backward call of the step writes the gradient (else it always adds)
  bool updates = true;       // this block's update call reduces and updates it
  bool counts = true;        // its norm is counted here
  std::int32_t stage_reduce = -1;
  ir::ValueId gradient, accumulated;  // in the block's program: of one microbatch; after adding
  ir::OpId accumulate;
  BufferId parameter_buffer, gradient_buffer, reduced_buffer;
  std::vector<BufferId> slot_buffers;
  std::vector<ir::OpId> reduce_ops, update_ops;  // in the block's update program; reduce_ops are a chain
  std::int32_t produced_at = 0;                  // op index of the gradient's producer: the order of buckets
};

// Values of one parameter in its block's update program; invalid where there is none.
struct UpdatePorts {
  ir::ValueId accumulated, reduced, parameter, new_parameter, gscale, step;
  std::vector<ir::ValueId> slots, new_slots;
  ir::MeshAxes norm_axes;
};

// The sum of squares of a block's gradients with equal norm axes: an accumulator before and after, in its update
// program.
struct NormPort {
  std::size_t set = 0;  // index into ClipPlan::norm_axes
  ir::ValueId before, after;
};

struct BlockPlan {
  std::int32_t program = 0, update_program = 0;
  std::vector<ParameterUse> parameters;
  std::vector<ir::OpId> forward_ops, backward_ops;  // without accumulation
  std::vector<ir::OpId> norm_ops;                   // in the update program
  std::vector<NormPort> norms;
  bool x_in_in_backward = false, x_out_in_backward = false;
  BufferId dx_out;  // where the next site leaves the gradient of x_out; invalid if the block has none
  std::vector<Node> forward, backward[2], reduce, norm, update;  // [first]; in a legal sequential order
};

// Step-wide scalars of clipping by the global norm: accumulators -> their sums over devices and stages -> gscale.
struct ClipPlan {
  std::int32_t program = -1;
  std::vector<ir::MeshAxes> norm_axes;  // one accumulator for each distinct set
  std::vector<ir::ValueId> zero, sum;   // by set: its start, and what the site's norms have made of it
  ir::ValueId total, gscale;
  std::vector<ir::OpId> start_ops, sum_ops, scale_ops;
  std::vector<BufferId> norm;  // by set
  std::int32_t stage_reduce = -1;
  std::vector<Node> start, nodes;
};

struct PlanKey {
  CollectiveKind kind;
  ir::Reduction reduction;
  std::int64_t elements, element_bytes;
  ir::MeshAxes axes;
  bool operator==(const PlanKey&) const = default;
};

struct Lowering {
  explicit Lowering(const LowerInput& input) : in(input) {}
  const LowerInput& in;
  StepProgram out;
  std::vector<Role> roles;        // by buffer
  std::vector<Binding> bindings;  // by program
  std::vector<BlockPlan> blocks;
  std::vector<std::vector<UpdatePorts>> ports;  // by block, parallel to BlockPlan::parameters
  std::vector<std::vector<std::int32_t>> sites_of_block;
  ClipPlan clip;
  std::vector<std::vector<std::int32_t>>
      made_first;                  // by program and op: the newest kernel or collective whose first op it is, or -1
  std::vector<PlanKey> plan_keys;  // by plan
  std::vector<std::vector<std::int32_t>> plan_resources;

  bool clipping() const { return in.options.optimizer.clip_norm > 0; }
  BufferId add_buffer(const Buffer& buffer, Role role);
  const ir::Program& program(std::int32_t index) const { return out.programs[static_cast<std::size_t>(index)].local; }
  // The home of a value for a reader or writer; makes the temporary when there is none.
  BufferRef home(std::int32_t program, ir::ValueId value);
};

// The passes, in order.
void lay_out_sites(Lowering& l);     // sites.cpp
void partition_blocks(Lowering& l);  // partition_pass.cpp: programs, parameter uses, update programs
void add_clipping(Lowering& l);      // clip.cpp: the ops of clipping by global norm
void make_buffers(Lowering& l);      // buffers.cpp
void make_nodes(Lowering& l);        // nodes.cpp: fuses and turns ops into kernels and collectives
void make_schedules(Lowering& l);    // calls.cpp: kinds, parts, templates, segments
void summarize_memory(Lowering& l);  // memory.cpp

// --- pieces that the passes share
// ------------------------------------------------------------------------------------- Appends ops to a per-device
// program and keeps its tables of specs and origins in step.
struct Extension {
  spmd::Partitioned& partitioned;
  ir::Builder builder;
  explicit Extension(spmd::Partitioned& p) : partitioned(p), builder(p.local) {}
  // Gives the values and ops added since the last call this spec and this origin.
  void settle(const spmd::PartitionSpec& spec, ir::OpId origin = ir::OpId());
};

// buckets.cpp: deals collectives of one program, in the order in which their operands are made or their results needed,
// into buckets of at most `limit` bytes, counted whole (gathered, or not yet scattered). A bucket is one Collective.
class Buckets {
 public:
  Buckets(const ir::Program& program, std::int64_t limit) : program_(program), limit_(limit) {}
  std::size_t put(ir::OpId id);  // the index of its bucket
  std::size_t size() const { return buckets_.size(); }
  const std::vector<ir::OpId>& ops(std::size_t bucket) const { return buckets_[bucket].ops; }

 private:
  struct Bucket {
    std::size_t kind = 0;
    ir::Reduction reduction = ir::Reduction::sum;
    ir::MeshAxes axes;
    ir::DType dtype = ir::DType::f32;
    std::int64_t bytes = 0;
    std::vector<ir::OpId> ops;
  };
  const ir::Program& program_;
  std::int64_t limit_;
  std::vector<Bucket> buckets_;
};

// fuse.cpp: groups `ops` of a program into kernels and collectives, in an order that respects dataflow and overwriting.
// `keep`: values needed beyond these ops. A group that nobody needs is left out. Collectives of parameters and their
// gradients are grouped in buckets of `bucket_bytes`.
std::vector<std::vector<ir::OpId>> fuse(const ir::Program& program, const std::vector<ir::OpId>& ops,
                                        const Binding& binding, std::int64_t bucket_bytes);
bool is_collective(const ir::OpKind& kind);
bool is_elementwise_like(const ir::OpKind& kind);
bool on_matrix_unit(const ir::OpKind& kind);

// kernel.cpp
Node kernel_node(Lowering& l, std::int32_t program, const std::vector<ir::OpId>& ops,
                 const std::vector<std::uint8_t>& used_after);
// collective.cpp
Node collective_node(Lowering& l, std::int32_t program, const std::vector<ir::OpId>& ops);
// Nodes of a fused list.
std::vector<Node> nodes_of(Lowering& l, std::int32_t program, const std::vector<ir::OpId>& ops);

// order.cpp: puts nodes, given in a legal sequential order, into the order in which they are issued.
Parts order(std::vector<Node> nodes, const LowerOptions& options, std::size_t buffers);

// lifetimes.cpp: where each instance that the call ends is released.
void end_lifetimes(const Lowering& l, const CallKind& kind, Parts& parts);

// templates.cpp: the instructions of a call between its neighbours. `parts`: by call kind.
Template make_template(const Lowering& l, const std::vector<Parts>& parts, std::int32_t kind, std::int32_t previous,
                       std::int32_t next);

// Cost of a hop between two stages along the pipeline axis.
struct StageLink {
  Seconds alpha;
  BytesPerSecond beta;
  fabric::Level level = fabric::Level::chip;  // of its slowest part
};
StageLink stage_link(const Lowering& l, std::int32_t from, std::int32_t to);  // stage_link.cpp

}  // namespace tpusim::plan::passes
