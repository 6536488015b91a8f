// Writes StepPrograms by hand, for tests of the readers that must not depend on what lower() decides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/plan/step_program.hpp"

namespace tpusim::testing {

using plan::BufferId;
using plan::BufferRef;
using plan::Instr;
using plan::InstrKind;

inline BufferRef ref(BufferId buffer, std::int32_t site_delta = 0) {
  return {buffer, site_delta};
}

// An instruction with chainable lists.
struct Ins : Instr {
  Ins(InstrKind k, std::int32_t b) {
    kind = k;
    body = b;
  }
  Ins& makes(std::vector<BufferRef> refs) {
    allocates = std::move(refs);
    return *this;
  }
  Ins& frees(const std::vector<BufferRef>& refs) {
    for (const BufferRef& r : refs) releases.push_back({r, owner});
    return *this;
  }
};

class StepBuilder {
 public:
  plan::StepProgram p;

  // Mesh axes major to minor; an axis called "pipeline" gives the stages.
  explicit StepBuilder(const std::vector<std::pair<std::string, std::int64_t>>& axes) {
    for (const auto& [name, size] : axes) {
      if (name == "pipeline") {
        p.pipeline_axis = static_cast<std::int32_t>(p.mesh.axes.size());
        p.stages = static_cast<std::int32_t>(size);
      }
      p.mesh.axes.push_back({name, size, name});
    }
    p.memory.resize(static_cast<std::size_t>(p.stages));
    p.schedules.resize(static_cast<std::size_t>(p.stages));
  }
  BufferId buffer(std::string_view label, plan::Scope scope, bool persistent = false) {
    plan::Buffer b;
    b.label = label;
    b.scope = scope;
    b.persistent = persistent;
    b.bytes = 1;
    p.buffers.push_back(b);
    return BufferId(p.buffers.size() - 1);
  }
  std::int32_t resource(const std::string& name) {
    p.resource_names.push_back(name);
    return p.resources++;
  }
  std::int32_t kernel(std::string_view label, Seconds time, const std::vector<BufferRef>& reads,
                      const std::vector<BufferRef>& writes) {
    plan::Kernel k;
    k.label = label;
    k.fixed = time;
    for (const BufferRef& r : reads) k.reads.emplace_back(ir::ValueId(), r);
    for (const BufferRef& r : writes) k.writes.emplace_back(ir::ValueId(), r);
    p.kernels.push_back(k);
    return static_cast<std::int32_t>(p.kernels.size() - 1);
  }
  // Over one mesh axis, by a ring of `size` members that takes `time` in all: one step of time / steps each.
  std::int32_t collective(plan::CollectiveKind kind, std::string_view label, int mesh_axis, std::int32_t resource,
                          Seconds time, const std::vector<BufferRef>& reads, const std::vector<BufferRef>& writes) {
    plan::GroupAxis axis;
    axis.physical = resource;
    axis.size = p.mesh.axes[static_cast<std::size_t>(mesh_axis)].size;
    axis.physical_size = axis.size;
    axis.link = fabric::Link::switched;
    axis.beta = BytesPerSecond(1);
    const double steps = static_cast<double>(axis.size - 1) * (kind == plan::CollectiveKind::all_reduce ? 2 : 1);
    axis.alpha = time / steps;
    axis.beta = BytesPerSecond(1e30);
    plan::Collective c;
    c.label = label;
    c.mesh_axes = {static_cast<std::uint8_t>(mesh_axis)};
    c.plan = static_cast<std::int32_t>(p.plans.size());
    c.resources = {resource};
    for (const BufferRef& r : reads) c.reads.emplace_back(ir::ValueId(), r);
    for (const BufferRef& r : writes) c.writes.emplace_back(ir::ValueId(), r);
    p.plans.push_back(plan::choose(kind, ir::Reduction::sum, axis.size, 4, {axis}));
    p.collectives.push_back(c);
    return static_cast<std::int32_t>(p.collectives.size() - 1);
  }
  std::int32_t permute(std::int32_t from, std::int32_t to, BufferRef source, BufferRef target, std::int32_t resource,
                       Seconds time) {
    plan::Permute q;
    q.buffer = source;
    q.target = target;
    q.from_stage = from;
    q.to_stage = to;
    q.bytes = 1;
    q.resource = resource;
    q.alpha = time;
    q.beta = BytesPerSecond(1e30);
    p.permutes.push_back(q);
    return static_cast<std::int32_t>(p.permutes.size() - 1);
  }
  std::int32_t stage_reduce(BufferRef buffer, std::vector<std::int32_t> stages, std::int32_t resource, Seconds time) {
    plan::StageReduce r;
    r.buffer = buffer;
    r.alpha = time / (static_cast<double>(stages.size()) - 1);
    r.stages = std::move(stages);
    r.bytes = 1;
    r.beta = BytesPerSecond(1e30);
    r.resource = resource;
    p.stage_reduces.push_back(r);
    return static_cast<std::int32_t>(p.stage_reduces.size() - 1);
  }
  std::int32_t kind(const plan::CallKind& k) {
    for (std::size_t i = 0; i < p.call_kinds.size(); ++i)
      if (p.call_kinds[i] == k) return static_cast<std::int32_t>(i);
    p.call_kinds.push_back(k);
    return static_cast<std::int32_t>(p.call_kinds.size() - 1);
  }
  void tmpl(std::int32_t kind, std::int32_t previous, std::int32_t next, std::vector<Instr> instrs) {
    plan::Template t;
    t.kind = p.call_kinds[static_cast<std::size_t>(kind)];
    t.kind_index = kind;
    t.previous = previous;
    t.next = next;
    t.instrs = std::move(instrs);
    p.templates.push_back(std::move(t));
  }
  // Templates in the order that find_template expects.
  plan::StepProgram done() {
    std::sort(p.templates.begin(), p.templates.end(), [](const plan::Template& a, const plan::Template& b) {
      return std::tie(a.kind_index, a.previous, a.next) < std::tie(b.kind_index, b.previous, b.next);
    });
    return p;
  }
};

// A call's instructions as lower() divides them: issued at the head of the preceding call, its own, left to the
// following call.
struct CallParts {
  std::vector<Instr> prefetch, main, deferred;
};

// One template for every neighbourhood that occurs in the schedules, from the parts of each kind. In an update call
// what was deferred comes first.
inline void make_templates(StepBuilder& b, const std::vector<CallParts>& parts) {
  std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t>> seen;
  const auto need = [&](std::int32_t kind, std::int32_t previous, std::int32_t next) {
    if (std::find(seen.begin(), seen.end(), std::make_tuple(kind, previous, next)) != seen.end()) return;
    seen.emplace_back(kind, previous, next);
    std::vector<Instr> instrs;
    const auto add = [&](const std::vector<Instr>& from, std::int8_t owner) {
      const auto first = static_cast<std::int32_t>(instrs.size());
      for (Instr i : from) {
        i.owner = owner;
        for (Instr::Release& r : i.releases) r.owner = owner;
        if (i.kind == InstrKind::done && i.body >= 0) i.body += first;
        instrs.push_back(std::move(i));
      }
    };
    const bool update = b.p.call_kinds[static_cast<std::size_t>(kind)].phase == ir::Phase::update;
    const auto of = [&](std::int32_t k) -> const CallParts& { return parts[static_cast<std::size_t>(k)]; };
    if (previous < 0) add(of(kind).prefetch, 0);
    if (previous >= 0 && update) add(of(previous).deferred, -1);
    if (next >= 0) add(of(next).prefetch, 1);
    add(of(kind).main, 0);
    if (previous >= 0 && !update) add(of(previous).deferred, -1);
    if (next < 0) add(of(kind).deferred, 0);
    b.tmpl(kind, previous, next, std::move(instrs));
  };
  for (const plan::Schedule& schedule : b.p.schedules) {
    std::int32_t before = -1;
    for (std::size_t s = 0; s < schedule.segments.size(); ++s) {
      const std::vector<plan::Call>& body = schedule.segments[s].body;
      const std::int32_t after = s + 1 < schedule.segments.size() ? schedule.segments[s + 1].body.front().kind : -1;
      for (std::size_t c = 0; c < body.size(); ++c)
        for (bool first : {true, false})
          for (bool last : {true, false}) {
            if (schedule.segments[s].repeat == 1 && !(first && last)) continue;
            if (schedule.segments[s].repeat == 2 && first == last) continue;
            if (schedule.segments[s].repeat == 2 && body.size() == 1 && first && last) continue;
            const std::int32_t previous = c > 0 ? body[c - 1].kind : first ? before : body.back().kind;
            const std::int32_t next = c + 1 < body.size() ? body[c + 1].kind : last ? after : body.front().kind;
            need(body[c].kind, previous, next);
          }
      before = body.back().kind;
    }
  }
}

}  // namespace tpusim::testing
