// Pass 7: a call's instructions between its neighbours: what the preceding call deferred, what the following one wants
// issued early, its own.
#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

enum class Which : std::uint8_t { all, work, ends };  // work: all but plain ends; ends: a `done` that only releases

class Writer {
 public:
  explicit Writer(std::vector<Instr>& instrs) : instrs_(instrs) {}
  void add(const std::vector<Node>& part, std::int8_t owner, Which which = Which::all) {
    place_.assign(part.size(), -1);
    for (std::size_t n = 0; n < part.size(); ++n) {
      const Node& node = part[n];
      const bool end = node.kind == InstrKind::done && node.awaits < 0;
      if ((which == Which::work && end) || (which == Which::ends && !end)) continue;
      place_[n] = static_cast<std::int32_t>(instrs_.size());
      Instr instr;
      instr.kind = node.kind;
      instr.body = node.kind != InstrKind::done ? node.body : node.awaits < 0 ? -1 : place_[at(node.awaits)];
      instr.owner = owner;
      instr.allocates = node.births;
      instr.releases.reserve(node.deaths.size());
      for (const BufferRef& ref : node.deaths) instr.releases.push_back({ref, owner});
      instrs_.push_back(std::move(instr));
    }
  }
  // Releases after the last instruction, in a `done` of its own if that is a transfer.
  void release_at_end(const BufferRef& ref) {
    if (instrs_.empty() || (instrs_.back().kind != InstrKind::kernel && instrs_.back().kind != InstrKind::done)) {
      instrs_.emplace_back();
      instrs_.back().kind = InstrKind::done;
      instrs_.back().body = -1;
    }
    instrs_.back().releases.push_back({ref, 0});
  }

 private:
  std::vector<Instr>& instrs_;
  std::vector<std::int32_t> place_;
};

// Whether this call is the last that uses the boundary value of the previous site: not if its own block reads it again
// in backward, nor if the block that made it does (on the same stage).
bool ends_x_in(const Lowering& l, const CallKind& kind, std::int32_t neighbour) {
  const bool backward = kind.phase == ir::Phase::backward;
  if (l.blocks[at(kind.block)].x_in_in_backward != backward) return false;
  if ((kind.stage_edge & (backward ? 2 : 1)) != 0) return true;
  TPUSIM_CHECK(neighbour >= 0 && l.out.call_kinds[at(neighbour)].phase == kind.phase,
               "a unit of a schedule runs over all sites of its stage");
  return !l.blocks[at(l.out.call_kinds[at(neighbour)].block)].x_out_in_backward;
}

}  // namespace

Template make_template(const Lowering& l, const std::vector<Parts>& parts, std::int32_t kind, std::int32_t previous,
                       std::int32_t next) {
  Template out;
  out.kind = l.out.call_kinds[at(kind)];
  out.kind_index = kind;
  out.previous = previous;
  out.next = next;
  const bool update = out.kind.phase == ir::Phase::update;
  const Parts& own = parts[at(kind)];
  Writer writer(out.instrs);
  out.instrs.reserve(own.prefetch.size() + own.main.size() + own.deferred.size() + 8);

  if (previous < 0) writer.add(own.prefetch, 0);
  if (previous >= 0 && update) writer.add(parts[at(previous)].deferred, -1, Which::work);
  if (next >= 0) writer.add(parts[at(next)].prefetch, 1);
  const bool starts_norm =
      l.clipping() && update && previous >= 0 && l.out.call_kinds[at(previous)].phase != ir::Phase::update;
  if (starts_norm) writer.add(l.clip.start, 0);
  const std::size_t first = out.instrs.size();
  writer.add(own.main, 0);
  if (own.x_in_last >= 0 && ends_x_in(l, out.kind, out.kind.phase == ir::Phase::backward ? next : previous))
    out.instrs[first + at(own.x_in_last)].releases.push_back({own.x_in, 0});
  if (previous >= 0) writer.add(parts[at(previous)].deferred, -1, update ? Which::ends : Which::all);
  if (next < 0) {
    writer.add(own.deferred, 0);
    if (l.out.gscale.valid()) writer.release_at_end({l.out.gscale, 0});
  }
  return out;
}

}  // namespace tpusim::plan::passes
