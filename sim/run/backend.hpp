// The seam between the interpreter and its readers.
//
// The interpreter walks a StepProgram in plan order, one device class at a time, and knows every reason why an
// instruction must wait: data, streams, arrival of the group's members, memory. It expresses a reason as a *token*, the
// completion of something issued before. A backend never decides order; it turns "issue this after those tokens" into a
// new token:
//   numeric   a token is a node of a task graph that moves and computes real values; any order that the graph allows is
//   legal,
//             and it is run in seeded shuffled orders, on any number of threads, and in exactly the order of the
//             timing's completions
//   timing    a token is a time in integer picoseconds; "after those" is a maximum
//   null      a token is nothing: legality, deadlock and counts only
// Because every dependence passes through here, neither backend can invent or forget one.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "sim/plan/step_program.hpp"

namespace tpusim::run {

// Which devices share a class: those of a pipeline stage, or none.
enum class Folding : std::uint8_t { per_stage, per_device };

// A set of devices that behave alike: `device` represents `count` of them. Numeric gives every device a class of its
// own; timing one class per pipeline stage.
struct DeviceClass {
  std::int64_t device = 0;  // representative, a device number of the mesh
  std::int64_t count = 1;
  std::int32_t stage = 0;
};

// One instance of a buffer on the devices of one class.
struct Instance {
  plan::BufferId buffer;
  std::int32_t site = 0;  // 0 for scope step
  std::int64_t index =
      0;  // scope microbatch: the microbatch; scope call: the number of the owning call in the class's run; else 0
  bool operator==(const Instance&) const = default;
};
struct InstanceHash {
  std::size_t operator()(const Instance& i) const {
    std::uint64_t h = static_cast<std::uint64_t>(i.buffer.index) * 0x9e3779b97f4a7c15ull;
    h = (h ^ static_cast<std::uint64_t>(i.site)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ static_cast<std::uint64_t>(i.index)) * 0x94d049bb133111ebull;
    return static_cast<std::size_t>(h ^ (h >> 31));
  }
};

// What the backend is asked to do, with every buffer resolved.
struct KernelCall {
  std::int32_t kernel = 0;  // index into StepProgram::kernels
  std::int32_t site = 0;
  std::int64_t microbatch = 0;
  std::int64_t step = 0;
  const std::vector<Instance>* reads;   // parallel to Kernel::reads; valid only during the call
  const std::vector<Instance>* writes;  // parallel to Kernel::writes
};
struct CollectiveMember {
  std::int32_t device_class = 0;
  std::vector<Instance> reads, writes;  // parallel to Collective::reads, writes
};
struct CollectiveCall {
  std::int32_t collective = 0;
  std::int32_t site = 0;
  std::int64_t microbatch = 0;
  std::int64_t step = 0;
  // One entry per class that takes part. Numeric: all members of the replica group, in group order. Folded timing: one.
  const std::vector<CollectiveMember>* members;
};
struct PermuteCall {
  std::int32_t permute = 0;  // index into StepProgram::permutes
  std::int32_t from_class = 0, to_class = 0;
  Instance source, target;
  std::int64_t microbatch = 0;
};
struct StageReduceCall {
  std::int32_t stage_reduce = 0;
  std::vector<std::int32_t> classes;  // one per stage listed, members with the same coordinates on the other axes
  std::vector<Instance> instances;    // summed in place, in the order of the stages
};

// clang-format off
template <class B>
concept Backend = requires(B b, const B cb, typename B::Token t, const std::vector<typename B::Token>& ts, std::int32_t c, Instance i,
                           const KernelCall& k, const CollectiveCall& g, const PermuteCall& p, const StageReduceCall& r) {
  { B::kOrdered } -> std::convertible_to<bool>;                              // tokens are times (TimeToken) and may be repeated
  { b.origin() } -> std::same_as<typename B::Token>;                       // before everything
  { b.join(t, t) } -> std::same_as<typename B::Token>;                     // both
  // `stream` is the completion of the stream's previous instruction, `ready` everything else. Returns the completion.
  { b.kernel(c, k, t /*stream*/, t /*ready*/) } -> std::same_as<typename B::Token>;
  { b.collective(g, t /*streams*/, t /*ready of all members*/) } -> std::same_as<typename B::Token>;
  { b.permute(p, t /*stream*/, t /*sender ready*/, t /*receiver ready*/) } -> std::same_as<typename B::Token>;
  { b.stage_reduce(r, t /*streams*/, t /*ready*/) } -> std::same_as<typename B::Token>;
  // Memory of a class, in plan order. `memory` is the token of the class's previous memory action. allocate: returns when the
  // allocation is made; release: after `done` (the instance's writer and readers), returns the new memory token. Of the
  // instance, readers that keep time get the buffer only.
  { b.allocate(c, i, t /*memory*/) } -> std::same_as<typename B::Token>;
  { b.release(c, i, t /*memory*/, t /*done*/) } -> std::same_as<typename B::Token>;
  // When the batch of a step is on the devices of a class.
  { b.batch(c, std::int64_t{} /*step*/) } -> std::same_as<typename B::Token>;
};
// clang-format on

}  // namespace tpusim::run
