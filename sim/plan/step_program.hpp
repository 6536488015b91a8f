// The StepProgram: one training step as both readers see it. What is not in it does not exist.
//
// Two levels. A *site* is one block at one depth of the model (embedding = site 0, the layers, head = last site). A
// *call* runs one template at one site for one microbatch. A *template* is the instruction list of a call kind in its
// neighbourhood: its own instructions, less those deferred to the following call, plus those deferred by the preceding
// call and those prefetched for the following one. A block is fused and scheduled once and then referred to.
// *Schedules* (one per pipeline stage) are lists of segments that repeat over microbatches, so their size does not
// depend on how many microbatches or layers there are.
//
// Calls are no barriers. An instruction waits for its data, its streams and its memory, nothing else:
//   data     every buffer instance it reads was written; every earlier reader of what it overwrites is done
//   streams  compute instructions run in plan order on the compute stream; a transfer occupies all its resources
//   (physical axes,
//            ports), each in plan order, the same on all members
//   memory   allocations and releases of a device happen in plan order; an allocation waits for every release before
//   it.
//            Peak live bytes is thereby a property of the plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/strong_id.hpp"
#include "sim/ir/ops.hpp"
#include "sim/plan/collective_plan.hpp"
#include "sim/spmd/partitioner.hpp"

namespace tpusim::plan {

struct BufferTag;
using BufferId = StrongId<BufferTag>;

enum class Category : std::uint8_t { parameters, gradients, optimizer, activations, workspace };
std::string_view name_of(Category category);

// How many instances of a buffer a device has, and what names one.
enum class Scope : std::uint8_t {
  step,        // one
  site,        // one per site of its block (parameters, gradients, optimizer slots)
  microbatch,  // one per (site, microbatch): boundaries and saved values
  call         // one per call of its template: everything else
};

struct Buffer {
  std::string_view label;
  ir::TensorType type;  // of one device's shard
  std::int64_t bytes = 0;
  Category category = Category::workspace;
  Scope scope = Scope::call;
  bool persistent = false;      // there before the step and after it (parameters, optimizer slots, data)
  std::int32_t block = -1;      // block whose value it is; -1 for boundaries and step-wide scalars
  ir::ValueId value;            // local value in that block's (or update's) program
  std::int32_t parameter = -1;  // index of the parameter in its block, for parameters, gradients and slots
  std::int32_t slot = -1;       // optimizer slot index
  // Scope step: the pipeline stages whose devices have one (a tied parameter: those of its blocks); empty = all. A tied
  // parameter's buffers have scope step, `block` and `parameter` of the first block that holds it.
  std::vector<std::int32_t> stages;
};

// An instance, relative to the call that owns the instruction.
struct BufferRef {
  BufferId buffer;
  std::int32_t site_delta = 0;  // -1: the previous site's (x_in is x of site - 1)
  bool operator==(const BufferRef&) const = default;
};

// Ops of one local program executed as one kernel; values inside (not in `writes`) exist for neither reader.
struct Kernel {
  std::int32_t program = 0;   // index into StepProgram::programs
  std::vector<ir::OpId> ops;  // in order; either one dot/flash/... or a fused chain of elementwise ops and reductions
  std::vector<std::pair<ir::ValueId, BufferRef>> reads, writes;  // external values only
  ir::OpCost cost;                                               // sum over ops; padding counted in executed_flops
  double model_flops = 0;  // matrix products of forward and backward phases without padding; 0 in recompute
  std::int64_t bytes_read = 0, bytes_written = 0;  // HBM traffic of the external values
  bool matrix = false;                             // runs on the matrix unit
  Seconds fixed;  // a known duration, on top of what the cost model says (family fixed)
  ir::DType compute_dtype = ir::DType::bf16;
  std::string_view label;
};

// A collective over mesh axes on one or more tensors (a bucket: flattened one after the other).
struct Collective {
  std::int32_t program = 0;
  std::vector<ir::OpId> ops;                                     // the collective ops it carries out, one per tensor
  std::vector<std::pair<ir::ValueId, BufferRef>> reads, writes;  // pairwise operand and result of ops
  ir::MeshAxes mesh_axes;
  std::int32_t plan = 0;                // index into StepProgram::plans
  std::int64_t elements = 0;            // gathered elements (all-reduce: of the tensors)
  std::vector<std::int32_t> resources;  // physical axes that it occupies, ascending
  std::string_view label;
};

// Boundary value handed to the neighbouring pipeline stage: x forward, dx backward. Written for the first boundary that
// it stands for; a stage that lies k further on hands on to one k further on, at the same cost over resources 2k
// further on.
struct Permute {
  BufferRef buffer;  // the sender's, relative to the call that owns the send
  BufferRef target;  // the receiver's, relative to the call that owns the receive
  std::int32_t from_stage = 0, to_stage = 0;
  std::int64_t bytes = 0;
  std::int32_t resource = 0;                  // a resource of its own per direction of the stage boundary
  Seconds alpha;                              // hops x hop latency
  BytesPerSecond beta;                        // one direction, after sharing
  fabric::Level level = fabric::Level::chip;  // of the slowest link on the way

  // For a sender or receiver on `stage`: the sender's stage, the receiver's, the resource.
  std::int32_t from(std::int32_t stage, bool sends) const { return sends ? stage : stage - (to_stage - from_stage); }
  std::int32_t to(std::int32_t stage, bool sends) const { return from(stage, sends) + (to_stage - from_stage); }
  std::int32_t resource_at(std::int32_t stage, bool sends) const {
    return resource + 2 * (from(stage, sends) - from_stage);
  }
};

// A gradient that several stages hold (tied embedding): summed over the stages listed, each sending its own to every
// other (so stages x (stages - 1) x bytes in all), adding in the order of the stages. Rendezvous of all their classes.
struct StageReduce {
  BufferRef buffer;
  std::vector<std::int32_t> stages;
  std::int64_t bytes = 0;
  Seconds alpha;
  BytesPerSecond beta;
  std::int32_t resource = 0;
  fabric::Level level = fabric::Level::chip;
};

enum class InstrKind : std::uint8_t {
  kernel,
  collective,
  // body >= 0: the compute stream waits here for the instruction of that index in this template's own list (overlap
  // off). body -1: a place in plan order for releases only; nothing waits but they (each for the writer and readers of
  // its instance).
  done,
  send,
  receive,      // body: index into permutes
  stage_reduce  // body: index into stage_reduces
};

struct Instr {
  InstrKind kind = InstrKind::kernel;
  std::int32_t body = 0;  // index into kernels, collectives, permutes, stage_reduces; done: see above
  std::int8_t owner =
      0;  // -1: deferred by the preceding call; +1: prefetched for the following call. All its refs are that call's
  std::vector<BufferRef> allocates;  // refs relative to the owner call
  struct Release {
    BufferRef ref;
    std::int8_t owner = 0;
  };
  // In plan order, after this instruction was issued: each waits for the writers and readers of its instance
  // (Backend::release). Owner as above.
  std::vector<Release> releases;
};

// (block, phase, place among the microbatches): what a call does, without its neighbours. Phase update has three kinds,
// in this order within a step: block >= 0 and first: the norm pass (clipping: sum of squares of the site's reduced
// gradients); block -1: the step-wide call that makes gscale; block >= 0 and not first: the update itself. Without
// clipping only the last exists.
struct CallKind {
  std::int32_t block = 0;
  ir::Phase phase = ir::Phase::forward;  // forward, backward, update
  bool first = false, last = false;      // first: the gradients are written, not added; last: they are reduced as well
  std::int8_t stage_edge = 0;  // bit 0: receives its input from another stage; bit 1: sends its output to another stage
  std::int32_t stage = -1;     // where stage_edge is not 0: the first stage whose permutes cost as much; else -1
  bool operator==(const CallKind&) const = default;
};

struct Template {
  CallKind kind;
  std::int32_t kind_index =
      -1;  // of `kind` in StepProgram::call_kinds; templates are sorted by (kind_index, previous, next)
  std::int32_t previous = -1, next = -1;  // call kinds around it, -1 none; index into StepProgram::call_kinds
  std::vector<Instr> instrs;
};

// What a call names. Microbatch is -1 in phase update.
struct Call {
  std::int32_t site = 0;
  std::int32_t kind = 0;  // index into StepProgram::call_kinds
  std::int64_t microbatch = 0;
};

// A part of a schedule: `body` run `repeat` times; in repeat r each call's microbatch is its own plus r.
struct Segment {
  std::vector<Call> body;
  std::int64_t repeat = 1;
};
struct Schedule {
  std::vector<Segment> segments;  // one step
  std::int64_t calls() const;
};

struct Site {
  std::int32_t block = 0;
  std::int32_t stage = 0;
};

struct MemorySummary {  // of one device of a stage, from the plan alone
  std::int64_t peak_bytes = 0;
  std::int64_t at_peak[5] = {0, 0, 0, 0, 0};  // by Category; they sum to peak_bytes
};

struct StepProgram {
  spmd::Mesh mesh;                  // all axes, pipeline included
  std::int32_t pipeline_axis = -1;  // index of the mesh axis, or -1
  std::int32_t stages = 1;
  std::int64_t microbatches = 1;
  std::vector<spmd::Partitioned>
      programs;  // per block: forward and backward; then reduce/update programs of parameters; then step-wide scalars
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Collective> collectives;
  std::vector<CollectivePlan> plans;
  std::vector<Permute> permutes;
  std::vector<StageReduce> stage_reduces;
  std::vector<CallKind> call_kinds;
  std::vector<Template> templates;
  std::vector<Site> sites;
  std::vector<Schedule> schedules;    // by stage
  std::vector<MemorySummary> memory;  // by stage
  std::int32_t resources = 0;         // physical axes, then permute resources
  std::vector<std::string> resource_names;
  BufferId loss;  // scope microbatch, persistent; partial over the axes in its spec; invalid if the model has none
  BufferId
      step_number;  // scope step, persistent scalar: the 1-based number of the step, set by the reader; may be invalid
  BufferId gscale;  // scope step scalar made by the step-wide call; invalid without clipping

  // The template for a call between its neighbours in a schedule (kinds; -1 none).
  std::int32_t find_template(std::int32_t kind, std::int32_t previous, std::int32_t next) const;
};

// Every numbered rule that the plan breaks (step.c1 ...): each read instance written before, each allocated instance
// released once, persistent ones never; collectives in the same order per resource on all members; releases after the
// last read.
std::vector<std::string> verify(const StepProgram& program);
// One line per instruction; what `explain` shows.
std::string print(const StepProgram& program);

}  // namespace tpusim::plan
