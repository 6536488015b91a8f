#include "sim/run/compiled.hpp"

#include <doctest/doctest.h>

#include "sim/base/check.hpp"
#include "tests/support/step_builder.hpp"

using namespace tpusim;
using namespace tpusim::run;
using namespace tpusim::testing;

namespace {

// One kernel k: a, p -> b, then c: b -> b in place over the data axis, then a `done` that waits for it and frees a and
// b.
struct Example {
  StepBuilder b{{{"data", 2}}};
  BufferId a = b.buffer("a", plan::Scope::call), p = b.buffer("p", plan::Scope::site, true),
           g = b.buffer("g", plan::Scope::site), batch = b.buffer("batch", plan::Scope::microbatch, true);
  std::int32_t link = b.resource("link");
  std::int32_t k = b.kernel("k", Seconds(1e-9), {ref(a), ref(p), ref(batch)}, {ref(g)});
  std::int32_t c = b.collective(plan::CollectiveKind::all_reduce, "g", 0, link, Seconds(1e-9), {ref(g)}, {ref(g)});
  std::int32_t kind = b.kind({});
};

std::vector<std::int32_t> buffers(const CompiledTemplate& t, std::int32_t from, std::int32_t to) {
  std::vector<std::int32_t> out;
  for (std::int32_t i = from; i < to; ++i)
    out.push_back(t.slots[static_cast<std::size_t>(t.pool[static_cast<std::size_t>(i)])].ref.buffer.index);
  return out;
}

}  // namespace

TEST_CASE("a compiled template lists what each instruction reads, writes, allocates and releases") {
  Example e;
  e.b.tmpl(e.kind, -1, -1,
           {Ins(InstrKind::kernel, e.k).makes({ref(e.a)}), Ins(InstrKind::collective, e.c),
            Ins(InstrKind::done, 1).frees({ref(e.a)}), Ins(InstrKind::done, -1).frees({ref(e.g)})});
  const plan::StepProgram program = e.b.done();
  const CompiledTemplate t = compile(program, facts_of(program), 0, {});
  REQUIRE(t.instrs.size() == 4);
  using List = std::vector<std::int32_t>;
  const auto reads = [&](std::size_t i) { return buffers(t, t.instrs[i].reads, t.instrs[i].writes); };
  const auto writes = [&](std::size_t i) { return buffers(t, t.instrs[i].writes, t.instrs[i].allocates); };
  const auto makes = [&](std::size_t i) { return buffers(t, t.instrs[i].allocates, t.instrs[i].releases); };
  const auto frees = [&](std::size_t i) { return buffers(t, t.instrs[i].releases, t.instrs[i].end); };
  const List a = {e.a.index}, g = {e.g.index}, none;
  CHECK(reads(0) == List{e.a.index, e.p.index, e.batch.index});
  CHECK(writes(0) == g);
  CHECK(makes(0) == a);
  CHECK(frees(0) == none);
  CHECK(reads(1) == g);
  CHECK(writes(1) == g);
  CHECK(reads(2) == g);  // what the awaited collective writes
  CHECK(writes(2) == none);
  CHECK(frees(2) == a);
  CHECK(reads(3) == none);
  CHECK(frees(3) == g);
  CHECK(t.resources == List{e.link});
  CHECK(t.collectives);
  CHECK_FALSE(t.crosses);
  CHECK(t.reads_data);
}

TEST_CASE("a slot comes in unless it is allocated here and goes out unless it is released here") {
  Example e;
  e.b.tmpl(e.kind, -1, -1, {Ins(InstrKind::kernel, e.k).makes({ref(e.a)}).frees({ref(e.a)})});
  const plan::StepProgram program = e.b.done();
  const CompiledTemplate t = compile(program, facts_of(program), 0, {});
  std::vector<std::vector<int>> rows;
  for (const Slot& s : t.slots) rows.push_back({s.ref.buffer.index, s.incoming, s.outgoing, s.data, s.written});
  CHECK(rows ==
        std::vector<std::vector<int>>{
            {e.a.index, 0, 0, 0, 0}, {e.p.index, 1, 1, 0, 0}, {e.batch.index, 1, 1, 1, 0}, {e.g.index, 1, 1, 0, 1}});
}

TEST_CASE("two references are one slot exactly when the calls around make them one instance") {
  Example e;
  // The preceding call's gradient, this call's, and the same again as the previous site's.
  Instr deferred = Ins(InstrKind::collective, e.c);
  deferred.owner = -1;
  e.b.tmpl(e.kind, e.kind, -1, {deferred, Ins(InstrKind::kernel, e.k)});
  const plan::StepProgram program = e.b.done();
  const ProgramFacts facts = facts_of(program);
  const auto slots_of_g = [&](const Relation& relation) {
    int n = 0;
    for (const Slot& s : compile(program, facts, 0, relation).slots) n += s.ref.buffer == e.g ? 1 : 0;
    return n;
  };
  CHECK(slots_of_g({0, 0, 0, 0}) == 1);   // the preceding call was at this site
  CHECK(slots_of_g({-1, 0, 0, 0}) == 2);  // it was at another
  CHECK(slots_of_g({0, 0, 5, 0}) == 1);   // scope site: the microbatch does not matter
}

TEST_CASE("data of a transfer that allocates nothing is exact as long as it can be used so") {
  Example e;
  Instr deferred = Ins(InstrKind::collective, e.c);
  deferred.owner = -1;
  SUBCASE("written by its own call or the one before: recent") {
    e.b.tmpl(e.kind, -1, e.kind, {Ins(InstrKind::kernel, e.k)});
    e.b.tmpl(e.kind, e.kind, -1, {deferred, Ins(InstrKind::kernel, e.k), Ins(InstrKind::collective, e.c)});
    const ProgramFacts facts = facts_of(e.b.done());
    CHECK(facts.exactness[static_cast<std::size_t>(e.g.index)] == Exactness::recent);
    CHECK(facts.exactness[static_cast<std::size_t>(e.a.index)] == Exactness::settled);
    CHECK_FALSE(facts.transfers_allocate);
  }
  SUBCASE("written some time before: always") {
    e.b.tmpl(e.kind, -1, -1, {Ins(InstrKind::collective, e.c), Ins(InstrKind::kernel, e.k)});
    CHECK(facts_of(e.b.done()).exactness[static_cast<std::size_t>(e.g.index)] == Exactness::always);
  }
  SUBCASE("the transfer allocates: memory bounds it from below") {
    e.b.tmpl(e.kind, -1, -1, {Ins(InstrKind::collective, e.c).makes({ref(e.g)}), Ins(InstrKind::kernel, e.k)});
    const ProgramFacts facts = facts_of(e.b.done());
    CHECK(facts.exactness[static_cast<std::size_t>(e.g.index)] == Exactness::settled);
    CHECK(facts.transfers_allocate);
  }
}

TEST_CASE("a transfer that releases, and a `done` that waits for a later instruction, are refused") {
  Example e;
  e.b.tmpl(e.kind, -1, -1, {Ins(InstrKind::collective, e.c).frees({ref(e.g)})});
  e.b.tmpl(e.kind, -1, e.kind, {Ins(InstrKind::done, 1), Ins(InstrKind::collective, e.c)});
  const plan::StepProgram program = e.b.done();
  const ProgramFacts facts = facts_of(program);
  CHECK_THROWS_AS(compile(program, facts, 0, {}), InternalError);
  CHECK_THROWS_AS(compile(program, facts, 1, {}), InternalError);
}
