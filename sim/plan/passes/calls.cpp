// Pass 8: call kinds, the schedule of each stage as segments of calls, and a template for every neighbourhood that
// occurs in them.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}
std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

constexpr std::int32_t kVariants = 7;  // forward; backward by (first, last); norm; update
constexpr std::int32_t kForward = 0, kBackward = 1, kNorm = 5, kUpdate = 6;

class Calls {
 public:
  explicit Calls(Lowering& l)
      : l_(l), by_site_(l.out.sites.size() * kVariants, -1), by_block_(l.blocks.size() * kVariants, -1) {}
  void run();

 private:
  std::int32_t kind_of(std::int64_t site, std::int32_t variant);
  std::int32_t add_kind(const CallKind& kind);
  const StageLink& link(std::int32_t boundary) const { return links_[static_cast<std::size_t>(boundary)]; }
  std::int32_t boundary_like(std::int32_t boundary) const;
  bool same_links(const CallKind& kind, std::int32_t stage) const;
  std::int32_t permute(std::int32_t from, std::int32_t to, const BufferRef& buffer, const BufferRef& target);
  void add_transfers(const CallKind& kind, std::vector<Node>& nodes);
  std::int32_t add_edge_kind(const CallKind& kind);
  void expand(std::int32_t stage);
  void expand_unit(std::int32_t stage, const Unit& unit, bool first, bool last, std::vector<Call>& calls);
  void expand_update(std::int32_t stage, std::vector<Call>& calls);
  void make_templates();

  Lowering& l_;
  std::vector<std::int32_t> by_site_, by_block_;  // kinds by (site or block, variant)
  std::vector<Parts> parts_;                      // by kind
  std::vector<StageLink> links_;                  // by stage boundary
  std::vector<std::int32_t> permutes_;            // by stage boundary and direction
  std::int32_t clip_kind_ = -1;
};

// The first stage boundary that costs as much to cross.
std::int32_t Calls::boundary_like(std::int32_t boundary) const {
  std::int32_t b = 0;
  while (link(b).alpha != link(boundary).alpha || link(b).beta != link(boundary).beta) ++b;
  return b;
}

// Whether the transfers of a call at the edge of its stage cost as much on `stage`.
bool Calls::same_links(const CallKind& kind, std::int32_t stage) const {
  const bool forward = kind.phase == ir::Phase::forward;
  const bool before = (kind.stage_edge & (forward ? 1 : 2)) != 0, after = (kind.stage_edge & (forward ? 2 : 1)) != 0;
  return (!before || boundary_like(kind.stage - 1) == boundary_like(stage - 1)) &&
         (!after || boundary_like(kind.stage) == boundary_like(stage));
}

std::int32_t Calls::permute(std::int32_t from, std::int32_t to, const BufferRef& buffer, const BufferRef& target) {
  const std::int32_t boundary = std::min(from, to), first = boundary_like(boundary);
  from += first - boundary;
  to += first - boundary;
  const std::int32_t direction = 2 * first + (from < to ? 0 : 1);
  if (permutes_.size() <= at(direction)) permutes_.resize(2 * at(l_.out.stages), -1);
  std::int32_t& index = permutes_[at(direction)];
  if (index >= 0) return index;
  index = static_cast<std::int32_t>(l_.out.permutes.size());
  Permute p;
  p.buffer = buffer;
  p.target = target;
  p.from_stage = from;
  p.to_stage = to;
  p.bytes = l_.out.buffers[at(buffer.buffer.index)].bytes;
  p.resource = static_cast<std::int32_t>(l_.in.fabric.axes.size()) + direction;
  p.alpha = link(first).alpha;
  p.beta = link(first).beta;
  p.level = link(first).level;
  l_.out.permutes.push_back(p);
  return index;
}

// Receives before, sends after the nodes of a call at the edge of a stage.
void Calls::add_transfers(const CallKind& kind, std::vector<Node>& nodes) {
  const bool forward = kind.phase == ir::Phase::forward;
  const ir::Program& program = l_.program(kind.block);
  const std::int32_t ahead = forward ? 1 : -1;
  const auto transfer = [&](ir::ValueId port, bool sends) {
    TPUSIM_CHECK(port.valid(), "a block at the edge of a stage has boundary values");
    const BufferRef here = l_.home(kind.block, port);
    const BufferRef there{here.buffer, here.site_delta == 0 ? -1 : 0};
    Node node;
    node.kind = sends ? InstrKind::send : InstrKind::receive;
    if (sends) {
      node.body = permute(kind.stage, kind.stage + ahead, here, there);
      node.reads = {here};
      nodes.push_back(node);
    } else {
      node.body = permute(kind.stage - ahead, kind.stage, there, here);
      node.writes = node.births = {here};
      nodes.insert(nodes.begin(), node);
    }
  };
  if ((kind.stage_edge & 1) != 0) transfer(forward ? program.x_in : program.dx_out, false);
  if ((kind.stage_edge & 2) != 0) transfer(forward ? program.x_out : program.dx_in, true);
}

std::int32_t Calls::add_kind(const CallKind& kind) {
  std::vector<Node> nodes;
  if (kind.block < 0) {
    nodes = l_.clip.nodes;
  } else {
    const BlockPlan& block = l_.blocks[at(kind.block)];
    if (kind.phase == ir::Phase::forward) {
      nodes = block.forward;
    } else if (kind.phase == ir::Phase::backward) {
      nodes = block.backward[kind.first ? 1 : 0];
      if (kind.last) nodes.insert(nodes.end(), block.reduce.begin(), block.reduce.end());
    } else {
      nodes = kind.first ? block.norm : block.update;
    }
    if (kind.phase != ir::Phase::update) add_transfers(kind, nodes);
  }
  Parts parts = order(std::move(nodes), l_.in.options, l_.out.buffers.size());
  end_lifetimes(l_, kind, parts);
  parts_.push_back(std::move(parts));
  l_.out.call_kinds.push_back(kind);
  return static_cast<std::int32_t>(l_.out.call_kinds.size()) - 1;
}

// The same call at the edge of another stage differs in what its transfers cost alone, if in anything.
std::int32_t Calls::add_edge_kind(const CallKind& kind) {
  for (std::size_t k = 0; k < l_.out.call_kinds.size(); ++k) {
    CallKind other = l_.out.call_kinds[k];
    if (other.stage < 0) continue;
    other.stage = kind.stage;
    if (!(other == kind)) continue;
    if (same_links(kind, l_.out.call_kinds[k].stage)) return static_cast<std::int32_t>(k);
  }
  for (std::size_t k = 0; k < l_.out.call_kinds.size(); ++k) {
    CallKind other = l_.out.call_kinds[k];
    if (other.stage < 0) continue;
    other.stage = kind.stage;
    if (!(other == kind)) continue;
    const std::int32_t ahead = kind.phase == ir::Phase::forward ? 1 : -1;
    Parts parts = parts_[k];
    for (std::vector<Node>* part : {&parts.prefetch, &parts.main, &parts.deferred})
      for (Node& node : *part) {
        if (node.kind != InstrKind::send && node.kind != InstrKind::receive) continue;
        const Permute p = l_.out.permutes[at(node.body)];
        const std::int32_t from = node.kind == InstrKind::send ? kind.stage : kind.stage - ahead;
        node.body = permute(from, from + ahead, p.buffer, p.target);
      }
    parts_.push_back(std::move(parts));
    l_.out.call_kinds.push_back(kind);
    return static_cast<std::int32_t>(l_.out.call_kinds.size()) - 1;
  }
  return add_kind(kind);
}

std::int32_t Calls::kind_of(std::int64_t site, std::int32_t variant) {
  std::int32_t& known = by_site_[at(site) * kVariants + at(variant)];
  if (known >= 0) return known;
  const Site& s = l_.out.sites[at(site)];
  CallKind kind;
  kind.block = s.block;
  if (variant >= kNorm) {
    kind.phase = ir::Phase::update;
    kind.first = variant == kNorm;
  } else {
    const bool forward = variant == kForward;
    kind.phase = forward ? ir::Phase::forward : ir::Phase::backward;
    kind.first = !forward && ((variant - kBackward) & 2) != 0;
    kind.last = !forward && ((variant - kBackward) & 1) != 0;
    const bool opens = site > 0 && l_.out.sites[at(site) - 1].stage != s.stage;
    const bool closes = at(site) + 1 < l_.out.sites.size() && l_.out.sites[at(site) + 1].stage != s.stage;
    const bool receives = forward ? opens : closes, sends = forward ? closes : opens;
    kind.stage_edge = static_cast<std::int8_t>((receives ? 1 : 0) + (sends ? 2 : 0));
    if (kind.stage_edge != 0) kind.stage = s.stage;
  }
  if (kind.stage_edge != 0) return known = add_edge_kind(kind);
  std::int32_t& shared = by_block_[at(s.block) * kVariants + at(variant)];
  if (shared < 0) shared = add_kind(kind);
  return known = shared;
}

void Calls::expand_update(std::int32_t stage, std::vector<Call>& calls) {
  const std::int64_t first = l_.in.schedule.first_site[at(stage)], end = l_.in.schedule.first_site[at(stage) + 1];
  const auto block = [&](std::int64_t site) -> const BlockPlan& { return l_.blocks[at(l_.out.sites[at(site)].block)]; };
  const auto call = [&](std::int64_t site, std::int32_t kind) {
    calls.push_back({static_cast<std::int32_t>(site), kind, -1});
  };
  if (l_.clipping()) {
    for (std::int64_t site = first; site < end; ++site)
      if (!block(site).norm.empty()) call(site, kind_of(site, kNorm));
    if (clip_kind_ < 0) {
      CallKind kind;
      kind.block = -1;
      kind.phase = ir::Phase::update;
      clip_kind_ = add_kind(kind);
    }
    call(first, clip_kind_);
  }
  for (std::int64_t site = first; site < end; ++site)
    if (!block(site).update.empty()) call(site, kind_of(site, kUpdate));
}

void Calls::expand_unit(std::int32_t stage, const Unit& unit, bool first, bool last, std::vector<Call>& calls) {
  const std::int64_t begin = l_.in.schedule.first_site[at(stage)], end = l_.in.schedule.first_site[at(stage) + 1];
  if (unit.phase == ir::Phase::update) return expand_update(stage, calls);
  if (unit.phase == ir::Phase::forward) {
    for (std::int64_t site = begin; site < end; ++site)
      calls.push_back({static_cast<std::int32_t>(site), kind_of(site, kForward), unit.microbatch});
    return;
  }
  TPUSIM_CHECK(unit.phase == ir::Phase::backward, "a unit is forward, backward or update");
  const std::int32_t variant = kBackward + (first ? 2 : 0) + (last ? 1 : 0);
  for (std::int64_t site = end; site-- > begin;)
    calls.push_back({static_cast<std::int32_t>(site), kind_of(site, variant), unit.microbatch});
}

bool has_backward(const UnitSegment& segment) {
  return std::any_of(segment.body.begin(), segment.body.end(),
                     [](const Unit& u) { return u.phase == ir::Phase::backward; });
}

// One repeat of a segment.
UnitSegment repeats(const UnitSegment& segment, std::int64_t first, std::int64_t count) {
  UnitSegment out = segment;
  out.repeat = count;
  for (Unit& unit : out.body)
    if (unit.phase != ir::Phase::update) unit.microbatch += first;
  return out;
}

// The repeats that hold a stage's first and last backward unit become segments of their own.
std::vector<UnitSegment> peel(const std::vector<UnitSegment>& segments) {
  std::size_t first = segments.size(), last = segments.size();
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (has_backward(segments[i])) {
      if (first == segments.size()) first = i;
      last = i;
    }
  std::vector<UnitSegment> out;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    std::int64_t from = 0, to = segments[i].repeat;
    if (i == first && to > 1) out.push_back(repeats(segments[i], from++, 1));
    const bool tail = i == last && to - from > 1;
    if (tail) --to;
    if (to > from) out.push_back(repeats(segments[i], from, to - from));
    if (tail) out.push_back(repeats(segments[i], to, 1));
  }
  return out;
}

void Calls::expand(std::int32_t stage) {
  const std::vector<UnitSegment> segments = peel(l_.in.schedule.stages[at(stage)]);
  std::size_t first_segment = segments.size(), last_segment = segments.size();
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (has_backward(segments[i])) {
      if (first_segment == segments.size()) first_segment = i;
      last_segment = i;
    }
  Schedule schedule;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    std::vector<bool> first(segments[i].body.size()), last(segments[i].body.size());
    std::size_t opening = first.size(), closing = first.size();
    for (std::size_t u = 0; u < first.size(); ++u)
      if (segments[i].body[u].phase == ir::Phase::backward) {
        if (opening == first.size()) opening = u;
        closing = u;
      }
    Segment segment;
    segment.repeat = segments[i].repeat;
    for (std::size_t u = 0; u < first.size(); ++u)
      expand_unit(stage, segments[i].body[u], i == first_segment && u == opening, i == last_segment && u == closing,
                  segment.body);
    if (!segment.body.empty()) schedule.segments.push_back(std::move(segment));
  }
  l_.out.schedules.push_back(std::move(schedule));
}

void Calls::make_templates() {
  struct Triple {
    std::int32_t kind, previous, next;
    auto operator<=>(const Triple&) const = default;
  };
  std::vector<Triple> triples;
  for (const Schedule& schedule : l_.out.schedules) {
    std::int32_t before = -1;
    for (std::size_t s = 0; s < schedule.segments.size(); ++s) {
      const std::vector<Call>& body = schedule.segments[s].body;
      const std::int32_t after = s + 1 < schedule.segments.size() ? schedule.segments[s + 1].body.front().kind : -1;
      const bool again = schedule.segments[s].repeat > 1;
      for (std::size_t c = 0; c < body.size(); ++c) {
        const bool opens = c == 0, closes = c + 1 == body.size();
        const std::int32_t p = opens ? before : body[c - 1].kind, n = closes ? after : body[c + 1].kind;
        if (!(opens || closes) && c > 1 && body[c - 2].kind == p && body[c - 1].kind == body[c].kind &&
            body[c].kind == n)
          continue;  // the same again
        triples.push_back({body[c].kind, p, n});
        if (!again) continue;
        const std::int32_t wrap_p = opens ? body.back().kind : p, wrap_n = closes ? body.front().kind : n;
        if (opens) triples.push_back({body[c].kind, wrap_p, n});
        if (closes) triples.push_back({body[c].kind, p, wrap_n});
        if (opens && closes) triples.push_back({body[c].kind, wrap_p, wrap_n});
      }
      before = body.back().kind;
    }
  }
  std::sort(triples.begin(), triples.end());
  triples.erase(std::unique(triples.begin(), triples.end()), triples.end());
  l_.out.templates.reserve(triples.size());
  for (const Triple& t : triples) l_.out.templates.push_back(make_template(l_, parts_, t.kind, t.previous, t.next));
}

void Calls::run() {
  for (std::int32_t s = 0; s + 1 < l_.out.stages; ++s) links_.push_back(stage_link(l_, s, s + 1));
  for (std::int32_t s = 0; s < l_.out.stages; ++s) expand(s);
  make_templates();
}

}  // namespace

void make_schedules(Lowering& l) {
  Calls(l).run();
}

}  // namespace tpusim::plan::passes
