// The plan as text: one line per instruction.
#include <fmt/format.h>

#include <iterator>

#include "sim/plan/step_program.hpp"

namespace tpusim::plan {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

std::string ref(const StepProgram& p, const BufferRef& r) {
  const Buffer& buffer = p.buffers[at(r.buffer.index)];
  return r.site_delta == 0 ? fmt::format("{}#{}", buffer.label, r.buffer.index)
                           : fmt::format("{}#{}[site{:+d}]", buffer.label, r.buffer.index, r.site_delta);
}

std::string kind_text(const StepProgram& p, const CallKind& kind) {
  std::string text = kind.block < 0 ? "step-wide" : p.programs[at(kind.block)].local.name;
  text += fmt::format(" {}", kind.phase == ir::Phase::update && kind.first ? "norm" : ir::phase_name(kind.phase));
  if (kind.phase == ir::Phase::backward && kind.first) text += ", first microbatch";
  if (kind.phase == ir::Phase::backward && kind.last) text += ", last microbatch";
  if (kind.stage >= 0) text += fmt::format(", edge of a stage like stage {}", kind.stage);
  return text;
}

std::string kind_text(const StepProgram& p, std::int32_t kind) {
  return kind < 0 ? "nothing" : kind_text(p, p.call_kinds[at(kind)]);
}

void values(std::string& out, const StepProgram& p, std::string_view word,
            const std::vector<std::pair<ir::ValueId, BufferRef>>& list) {
  if (list.empty()) return;
  fmt::format_to(std::back_inserter(out), " {}", word);
  for (const auto& v : list) fmt::format_to(std::back_inserter(out), " {}", ref(p, v.second));
}

void instruction(std::string& out, const StepProgram& p, const Instr& i) {
  const auto to = std::back_inserter(out);
  out += i.owner < 0 ? "    < " : i.owner > 0 ? "    > " : "      ";
  switch (i.kind) {
    case InstrKind::kernel: {
      const Kernel& k = p.kernels[at(i.body)];
      const ir::Program& program = p.programs[at(k.program)].local;
      fmt::format_to(to, "kernel {}:", i.body);
      for (ir::OpId op : k.ops) fmt::format_to(to, " {}", ir::op_name(program.op(op).kind));
      values(out, p, "<-", k.reads);
      values(out, p, "->", k.writes);
      fmt::format_to(to, "; {:.6g} matrix and {:.6g} vector operations, {} bytes read, {} written",
                     k.cost.executed_flops, k.cost.vector_flops, k.bytes_read, k.bytes_written);
      break;
    }
    case InstrKind::collective: {
      const Collective& c = p.collectives[at(i.body)];
      fmt::format_to(to, "{} {} over {}:", name_of(p.plans[at(c.plan)].kind), i.body, p.mesh.to_string(c.mesh_axes));
      values(out, p, "<-", c.reads);
      values(out, p, "->", c.writes);
      fmt::format_to(to, "; {} elements, {}", c.elements, p.plans[at(c.plan)].algorithm);
      break;
    }
    case InstrKind::send:
    case InstrKind::receive: {
      const Permute& permute = p.permutes[at(i.body)];
      const bool sends = i.kind == InstrKind::send;
      const bool ahead = permute.from_stage < permute.to_stage;
      fmt::format_to(to, "{} {}, {} bytes, {} the {} stage", sends ? "send" : "receive",
                     ref(p, sends ? permute.buffer : permute.target), permute.bytes, sends ? "to" : "from",
                     ahead == sends ? "next" : "previous");
      break;
    }
    case InstrKind::stage_reduce:
      fmt::format_to(to, "sum {} over {} stages", ref(p, p.stage_reduces[at(i.body)].buffer),
                     p.stage_reduces[at(i.body)].stages.size());
      break;
    case InstrKind::done:
      out += i.body < 0 ? "done" : fmt::format("wait for instruction {}", i.body);
      break;
  }
  if (!i.allocates.empty()) out += "; allocates";
  for (const BufferRef& r : i.allocates) fmt::format_to(to, " {}", ref(p, r));
  if (!i.releases.empty()) out += "; releases";
  for (const Instr::Release& r : i.releases)
    fmt::format_to(to, " {}{}", r.owner < 0 ? "<" : r.owner > 0 ? ">" : "", ref(p, r.ref));
  out += '\n';
}

}  // namespace

std::string print(const StepProgram& p) {
  std::string out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "{} stages, {} microbatches, {} sites; instructions marked > are issued for the following call, < for "
                 "the preceding one\n",
                 p.stages, p.microbatches, p.sites.size());
  for (std::size_t s = 0; s < p.schedules.size(); ++s) {
    fmt::format_to(to, "stage {}: peak {} bytes (", s, p.memory[s].peak_bytes);
    for (std::size_t k = 0; k < 5; ++k)
      fmt::format_to(to, "{}{} {}", k > 0 ? ", " : "", name_of(static_cast<Category>(k)), p.memory[s].at_peak[k]);
    out += ")\n";
    for (const Segment& segment : p.schedules[s].segments) {
      fmt::format_to(to, "  {} x", segment.repeat);
      for (std::size_t c = 0; c < segment.body.size();) {  // runs of one kind are one entry
        std::size_t e = c + 1;
        while (e < segment.body.size() && segment.body[e].kind == segment.body[c].kind &&
               segment.body[e].microbatch == segment.body[c].microbatch)
          ++e;
        fmt::format_to(to, " [{}", kind_text(p, segment.body[c].kind));
        fmt::format_to(to, ", site {}", segment.body[c].site);
        if (e - c > 1) fmt::format_to(to, " to {}", segment.body[e - 1].site);
        if (segment.body[c].microbatch >= 0) fmt::format_to(to, ", microbatch {}", segment.body[c].microbatch);
        out += ']';
        c = e;
      }
      out += '\n';
    }
  }
  for (const Template& t : p.templates) {
    fmt::format_to(to, "  {} (after {}, before {})\n", kind_text(p, t.kind), kind_text(p, t.previous),
                   kind_text(p, t.next));
    for (const Instr& i : t.instrs) instruction(out, p, i);
  }
  return out;
}

}  // namespace tpusim::plan
