#include "sim/run/compiled.hpp"

#include <algorithm>
#include <cstdlib>

#include "sim/base/check.hpp"

namespace tpusim::run {

namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}
std::size_t at(std::int16_t i) {
  return static_cast<std::size_t>(i);
}

bool crosses(plan::InstrKind kind) {
  return kind == plan::InstrKind::send || kind == plan::InstrKind::receive || kind == plan::InstrKind::stage_reduce;
}

bool is_transfer(plan::InstrKind kind) {
  return kind != plan::InstrKind::kernel && kind != plan::InstrKind::done;
}

// Calls `use(ref, writes)` for every operand of an instruction, reads first.
template <class Use>
void for_operands(const plan::StepProgram& program, const plan::Instr& instr, Use use) {
  switch (instr.kind) {
    case plan::InstrKind::kernel:
      for (const auto& value : program.kernels[at(instr.body)].reads) use(value.second, false);
      for (const auto& value : program.kernels[at(instr.body)].writes) use(value.second, true);
      break;
    case plan::InstrKind::collective:
      for (const auto& value : program.collectives[at(instr.body)].reads) use(value.second, false);
      for (const auto& value : program.collectives[at(instr.body)].writes) use(value.second, true);
      break;
    case plan::InstrKind::send:
      use(program.permutes[at(instr.body)].buffer, false);
      break;
    case plan::InstrKind::receive:
      use(program.permutes[at(instr.body)].target, true);
      break;
    case plan::InstrKind::stage_reduce:
      use(program.stage_reduces[at(instr.body)].buffer, false);
      use(program.stage_reduces[at(instr.body)].buffer, true);
      break;
    case plan::InstrKind::done:
      break;
  }
}

void add_resources(const plan::StepProgram& program, const plan::Instr& instr, std::vector<std::int32_t>& out) {
  const auto add = [&out](std::int32_t r) {
    if (std::find(out.begin(), out.end(), r) == out.end()) out.push_back(r);
  };
  if (instr.kind == plan::InstrKind::collective)
    for (std::int32_t r : program.collectives[at(instr.body)].resources) add(r);
  else if (instr.kind == plan::InstrKind::stage_reduce)
    add(program.stage_reduces[at(instr.body)].resource);
  // A permute's depends on the stage; nobody asks, as a template that crosses stages is never replayed.
}

class Compiler {
 public:
  Compiler(const plan::StepProgram& program, const ProgramFacts& facts, const Relation& relation, CompiledTemplate& out)
      : program_(program), facts_(facts), relation_(relation), out_(out) {
    out_.first_of_buffer.assign(program.buffers.size(), -1);
  }
  void add(const plan::Instr& instr);
  void finish();

 private:
  void find_inner();
  std::int32_t position() const { return static_cast<std::int32_t>(out_.pool.size()); }
  // What an instance is relative to the call: equal for two references exactly when they name one instance.
  struct Identity {
    std::int64_t site = 0, microbatch = 0;
    std::int8_t owner = 0;
    bool operator==(const Identity&) const = default;
  };
  Identity identity(const plan::BufferRef& ref, std::int8_t owner) const;
  std::int16_t slot(const plan::BufferRef& ref, std::int8_t owner, bool born_here);
  bool bare(const plan::Instr& instr);

  const plan::StepProgram& program_;
  const ProgramFacts& facts_;
  const Relation& relation_;
  CompiledTemplate& out_;
  std::vector<Identity> identities_;  // by slot
  std::vector<bool> anchored_;        // by slot: last written here, by an instruction that is not bare
};

Compiler::Identity Compiler::identity(const plan::BufferRef& ref, std::int8_t owner) const {
  const std::int64_t site = owner == 0 ? 0 : owner < 0 ? relation_.previous_site : relation_.next_site;
  const std::int64_t microbatch = owner == 0  ? 0
                                  : owner < 0 ? relation_.previous_microbatch
                                              : relation_.next_microbatch;
  switch (program_.buffers[at(ref.buffer.index)].scope) {
    case plan::Scope::step:
      return {};
    case plan::Scope::site:
      return {site + ref.site_delta, 0, 0};
    case plan::Scope::microbatch:
      return {site + ref.site_delta, microbatch, 0};
    case plan::Scope::call:
      return {0, 0, owner};
  }
  return {};
}

std::int16_t Compiler::slot(const plan::BufferRef& ref, std::int8_t owner, bool born_here) {
  const Identity wanted = identity(ref, owner);
  std::int16_t& first = out_.first_of_buffer[at(ref.buffer.index)];
  for (std::int16_t s = first; s >= 0; s = out_.slots[at(s)].same_buffer)
    if (identities_[at(s)] == wanted) return s;
  const plan::Buffer& buffer = program_.buffers[at(ref.buffer.index)];
  Slot s;
  s.ref = ref;
  s.owner = owner;
  s.incoming = !born_here;
  s.outgoing = true;
  s.data = buffer.persistent && buffer.scope == plan::Scope::microbatch;
  s.exactness = facts_.exactness[at(ref.buffer.index)];
  s.same_buffer = first;
  TPUSIM_CHECK(out_.slots.size() < 32000, "a template with too many buffers");
  first = static_cast<std::int16_t>(out_.slots.size());
  out_.slots.push_back(s);
  identities_.push_back(wanted);
  anchored_.push_back(false);
  return first;
}

bool Compiler::bare(const plan::Instr& instr) {
  if (!is_transfer(instr.kind) || !instr.allocates.empty()) return false;
  bool anchored = false;
  for_operands(program_, instr, [&](const plan::BufferRef& ref, bool) {
    anchored = anchored || anchored_[at(slot(ref, instr.owner, false))];
  });
  return !anchored;
}

void Compiler::add(const plan::Instr& instr) {
  CompiledInstr c;
  c.kind = instr.kind;
  c.body = instr.body;
  c.owner = instr.owner;
  for (const plan::BufferRef& ref : instr.allocates) slot(ref, instr.owner, true);
  c.reads = c.writes = position();
  if (instr.kind == plan::InstrKind::done && instr.body >= 0) {
    TPUSIM_CHECK(at(instr.body) < out_.instrs.size(), "a `done` waits for an instruction before it");
    const CompiledInstr awaited = out_.instrs[at(instr.body)];
    TPUSIM_CHECK(awaited.writes < awaited.allocates, "a `done` waits for an instruction that writes something");
    for (std::int32_t i = awaited.writes; i < awaited.allocates; ++i) out_.pool.push_back(out_.pool[at(i)]);
    c.writes = position();
  }
  const bool is_bare = bare(instr);
  bool writing = false;
  for_operands(program_, instr, [&](const plan::BufferRef& ref, bool writes) {
    if (writes && !writing) c.writes = position();
    writing = writes;
    const std::int16_t s = slot(ref, instr.owner, false);
    Slot& used = out_.slots[at(s)];
    used.bare = used.bare || (is_bare && !used.written);
    used.written = used.written || writes;
    if (writes) anchored_[at(s)] = !is_bare;
    out_.reads_data = out_.reads_data || (used.data && !writes);
    out_.pool.push_back(s);
  });
  if (!writing && is_transfer(instr.kind)) c.writes = position();
  if (instr.kind == plan::InstrKind::kernel && !writing) c.writes = position();
  c.allocates = position();
  for (const plan::BufferRef& ref : instr.allocates) out_.pool.push_back(slot(ref, instr.owner, true));
  c.releases = position();
  for (const plan::Instr::Release& release : instr.releases) {
    const std::int16_t s = slot(release.ref, release.owner, false);
    out_.slots[at(s)].outgoing = false;
    out_.pool.push_back(s);
  }
  c.end = position();
  out_.instrs.push_back(c);
  if (!is_transfer(instr.kind)) return;
  TPUSIM_CHECK(instr.releases.empty(), "a transfer is asynchronous: its releases belong to a kernel or a `done`");
  out_.collectives = out_.collectives || instr.kind == plan::InstrKind::collective;
  out_.crosses = out_.crosses || crosses(instr.kind);
  add_resources(program_, instr, out_.resources);
}

void Compiler::finish() {
  std::sort(out_.resources.begin(), out_.resources.end());
  for (std::size_t s = 0; s < out_.slots.size(); ++s) {
    if (out_.slots[s].incoming) out_.incoming.push_back(static_cast<std::int16_t>(s));
    if (out_.slots[s].outgoing) out_.outgoing.push_back(static_cast<std::int16_t>(s));
    if (out_.slots[s].bare && out_.slots[s].incoming) ++out_.bare_incoming;
    out_.always_exact = out_.always_exact || out_.slots[s].exactness == Exactness::always;
  }
  if (out_.crosses) find_inner();
}

void Compiler::find_inner() {
  for (std::size_t begin = 0, end = 0; begin < out_.instrs.size(); begin = end + 1) {
    end = begin;
    while (end < out_.instrs.size() && !crosses(out_.instrs[end].kind)) ++end;
    if (end - begin > out_.inner_end - out_.inner_begin) out_.inner_begin = begin, out_.inner_end = end;
  }
  enum Use : std::uint8_t { none, released, read, written };
  std::vector<Use> uses(out_.slots.size(), none);
  for (std::size_t k = out_.inner_begin; k < out_.inner_end; ++k) {
    const CompiledInstr& instr = out_.instrs[k];
    for (std::int32_t i = instr.reads; i < instr.end; ++i) {
      const Use use = i < instr.writes ? read : i < instr.releases ? written : released;
      Use& known = uses[at(out_.pool[at(i)])];
      known = std::max(known, use);
    }
  }
  for (std::size_t s = 0; s < uses.size(); ++s)
    if (uses[s] != none)
      (uses[s] == written ? out_.inner_written
       : uses[s] == read  ? out_.inner_read
                          : out_.inner_released)
          .push_back(static_cast<std::int16_t>(s));
}

// Finds for each bare transfer whether what it uses was written in its own call or, if it was deferred, in the call
// before.
class ExactnessPass {
 public:
  explicit ExactnessPass(const plan::StepProgram& program)
      : program_(program), latest_(program.buffers.size()), of_kind_(program.call_kinds.size()) {
    for (std::size_t t = program.templates.size(); t-- > 0;)
      if (program.templates[t].kind_index >= 0)
        of_kind_[at(program.templates[t].kind_index)] = static_cast<std::int32_t>(t);
    facts_.exactness.assign(program.buffers.size(), Exactness::settled);
  }
  ProgramFacts run() {
    for (std::size_t t = 0; t < program_.templates.size(); ++t) visit(t);
    for (std::size_t b = 0; b < latest_.size(); ++b)
      facts_.bare_unwritten =
          facts_.bare_unwritten || (facts_.exactness[b] == Exactness::always && latest_[b].tmpl == SIZE_MAX);
    return std::move(facts_);
  }

 private:
  struct Latest {  // the last write of a buffer in the template being visited
    std::size_t tmpl = SIZE_MAX;
    plan::BufferRef ref;
    std::int8_t owner = 0;
    bool bare = false;  // by a bare transfer
  };
  void visit(std::size_t t) {
    for (const plan::Instr& instr : program_.templates[t].instrs) {
      facts_.transfers_allocate = facts_.transfers_allocate || (is_transfer(instr.kind) && !instr.allocates.empty());
      const auto own = [&](const plan::BufferRef& ref) {
        const Latest& latest = latest_[at(ref.buffer.index)];
        return latest.tmpl == t && latest.ref == ref && latest.owner == instr.owner;
      };
      bool bare = is_transfer(instr.kind) && instr.allocates.empty();
      if (bare)
        for_operands(program_, instr, [&](const plan::BufferRef& ref, bool) {
          bare = bare && !(own(ref) && !latest_[at(ref.buffer.index)].bare);
        });
      for_operands(program_, instr, [&](const plan::BufferRef& ref, bool writes) {
        if (bare) {
          Exactness& e = facts_.exactness[at(ref.buffer.index)];
          e = std::max(e,
                       own(ref) || (instr.owner < 0 && written_before(t, ref)) ? Exactness::recent : Exactness::always);
        }
        if (writes) latest_[at(ref.buffer.index)] = {t, ref, instr.owner, bare};
      });
    }
  }
  // Whether the call before, whose kind the template knows, writes `ref` itself.
  bool written_before(std::size_t t, const plan::BufferRef& ref) const {
    const std::int32_t kind = program_.templates[t].previous;
    if (kind < 0 || of_kind_[at(kind)] < 0) return false;
    bool found = false;
    for (const plan::Instr& instr : program_.templates[at(of_kind_[at(kind)])].instrs) {
      if (instr.owner != 0) continue;
      for_operands(program_, instr,
                   [&](const plan::BufferRef& other, bool writes) { found = found || (writes && other == ref); });
    }
    return found;
  }

  const plan::StepProgram& program_;
  std::vector<Latest> latest_;
  std::vector<std::int32_t> of_kind_ /* a template of each call kind */;
  ProgramFacts facts_;
};

}  // namespace

Relation relation_of(const Cursor& cursor) {
  Relation r;
  const ResolvedCall &before = cursor.previous(), &here = cursor.current(), &after = cursor.next();
  if (before.kind >= 0)
    r.previous_site = before.site - here.site, r.previous_microbatch = before.microbatch - here.microbatch;
  if (after.kind >= 0) r.next_site = after.site - here.site, r.next_microbatch = after.microbatch - here.microbatch;
  // What matters is which instances are the same; so calls far away, and other microbatches, are alike.
  constexpr std::int32_t kNear = 4, kFar = 100;  // references reach no further than a site or two
  const bool apart = std::abs(r.previous_site - r.next_site) > kNear;
  if (std::abs(r.previous_site) > kNear && apart) r.previous_site = kFar;
  if (std::abs(r.next_site) > kNear && apart) r.next_site = 2 * kFar;
  if (r.next_microbatch != 0) r.next_microbatch = r.next_microbatch == r.previous_microbatch ? 1 : 2;
  if (r.previous_microbatch != 0) r.previous_microbatch = 1;
  return r;
}

ProgramFacts facts_of(const plan::StepProgram& program) {
  return ExactnessPass(program).run();
}

CompiledTemplate compile(const plan::StepProgram& program, const ProgramFacts& facts, std::int32_t index,
                         const Relation& relation) {
  CompiledTemplate out;
  out.index = index;
  Compiler compiler(program, facts, relation, out);
  const std::vector<plan::Instr>& instrs = program.templates[at(index)].instrs;
  out.instrs.reserve(instrs.size());
  out.pool.reserve(instrs.size() * 5);
  for (const plan::Instr& instr : instrs) compiler.add(instr);
  compiler.finish();
  return out;
}

}  // namespace tpusim::run
