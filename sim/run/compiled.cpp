#include "sim/run/compiled.hpp"

#include "sim/base/check.hpp"

namespace tpusim::run {

namespace {

class Compiler {
 public:
  Compiler(const plan::StepProgram& program, CompiledTemplate& out) : program_(program), out_(out) {}

  void add(const plan::Instr& instr) {
    CompiledInstr c;
    c.kind = instr.kind;
    c.body = instr.body;
    c.owner = instr.owner;
    for (const plan::BufferRef& ref : instr.allocates) slot(ref, instr.owner, true);
    c.reads = position();
    reads(instr);
    c.writes = position();
    writes(instr);
    c.allocates = position();
    for (const plan::BufferRef& ref : instr.allocates) push(slot(ref, instr.owner, true));
    c.releases = position();
    for (const plan::Instr::Release& release : instr.releases) {
      const std::int16_t s = slot(release.ref, release.owner, false);
      out_.slots[static_cast<std::size_t>(s)].outgoing = false;
      push(s);
    }
    c.end = position();
    out_.instrs.push_back(c);
  }

 private:
  std::int32_t position() const { return static_cast<std::int32_t>(out_.pool.size()); }
  void push(std::int16_t s) { out_.pool.push_back(s); }

  std::int16_t slot(const plan::BufferRef& ref, std::int8_t owner, bool born_here) {
    for (std::size_t i = 0; i < out_.slots.size(); ++i)
      if (out_.slots[i].ref == ref && out_.slots[i].owner == owner) return static_cast<std::int16_t>(i);
    const plan::Buffer& buffer = program_.buffers[static_cast<std::size_t>(ref.buffer.index)];
    Slot s;
    s.ref = ref;
    s.owner = owner;
    s.incoming = !born_here;
    s.outgoing = true;
    s.data = buffer.persistent && buffer.scope == plan::Scope::microbatch;
    out_.reads_data = out_.reads_data || s.data;
    TPUSIM_CHECK(out_.slots.size() < 32000, "a template with too many buffers");
    out_.slots.push_back(s);
    return static_cast<std::int16_t>(out_.slots.size() - 1);
  }

  void push_values(const std::vector<std::pair<ir::ValueId, plan::BufferRef>>& values, std::int8_t owner) {
    for (const auto& value : values) push(slot(value.second, owner, false));
  }
  void reads(const plan::Instr& instr) {
    const auto body = static_cast<std::size_t>(instr.body);
    switch (instr.kind) {
      case plan::InstrKind::kernel: push_values(program_.kernels[body].reads, instr.owner); break;
      case plan::InstrKind::collective: push_values(program_.collectives[body].reads, instr.owner); break;
      case plan::InstrKind::send: push(slot(program_.permutes[body].buffer, instr.owner, false)); break;
      case plan::InstrKind::stage_reduce: push(slot(program_.stage_reduces[body].buffer, instr.owner, false)); break;
      case plan::InstrKind::receive:
      case plan::InstrKind::done: break;
    }
    if (instr.kind == plan::InstrKind::send || instr.kind == plan::InstrKind::receive || instr.kind == plan::InstrKind::stage_reduce)
      out_.crosses = true;
  }
  void writes(const plan::Instr& instr) {
    const auto body = static_cast<std::size_t>(instr.body);
    switch (instr.kind) {
      case plan::InstrKind::kernel: push_values(program_.kernels[body].writes, instr.owner); break;
      case plan::InstrKind::collective: push_values(program_.collectives[body].writes, instr.owner); break;
      case plan::InstrKind::receive: push(slot(program_.permutes[body].target, instr.owner, false)); break;
      case plan::InstrKind::stage_reduce: push(slot(program_.stage_reduces[body].buffer, instr.owner, false)); break;
      case plan::InstrKind::send:
      case plan::InstrKind::done: break;
    }
  }

  const plan::StepProgram& program_;
  CompiledTemplate& out_;
};

}  // namespace

std::vector<CompiledTemplate> compile(const plan::StepProgram& program) {
  std::vector<CompiledTemplate> out(program.templates.size());
  for (std::size_t t = 0; t < out.size(); ++t) {
    Compiler compiler(program, out[t]);
    for (const plan::Instr& instr : program.templates[t].instrs) compiler.add(instr);
    for (std::size_t s = 0; s < out[t].slots.size(); ++s) {
      if (out[t].slots[s].incoming) out[t].incoming.push_back(static_cast<std::int16_t>(s));
      if (out[t].slots[s].outgoing) out[t].outgoing.push_back(static_cast<std::int16_t>(s));
    }
  }
  return out;
}

}  // namespace tpusim::run
