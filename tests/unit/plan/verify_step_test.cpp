// Each numbered rule of the plan's verifier, broken once.
#include <doctest/doctest.h>

#include <functional>

#include "tests/unit/plan/plan_support.hpp"

namespace tpusim::plan {
namespace {

using testing::Asked;
using testing::Tiny;

StepProgram sound() {
  Asked asked;
  asked.mesh = {{"pipeline", 2}, {"fsdp", 2}};
  asked.microbatches = 2;
  return Tiny(asked).lower();
}

// The first fault begins with the rule's number.
bool breaks(const std::string& rule, const std::function<void(StepProgram&)>& fault) {
  StepProgram p = sound();
  REQUIRE(verify(p).empty());
  fault(p);
  const std::vector<std::string> found = verify(p);
  return !found.empty() && found.front().rfind(rule + ":", 0) == 0;
}

Instr& first_with(StepProgram& p, const std::function<bool(const Instr&)>& wanted) {
  for (Template& t : p.templates)
    for (Instr& i : t.instrs)
      if (wanted(i)) return i;
  throw std::runtime_error("no such instruction");
}

TEST_CASE("step.c1: an instruction names a kernel that is not there") {
  CHECK(breaks("step.c1", [](StepProgram& p) {
    first_with(p, [](const Instr& i) { return i.kind == InstrKind::kernel; }).body = 10000;
  }));
}

TEST_CASE("step.c2: a neighbourhood has no template") {
  CHECK(breaks("step.c2", [](StepProgram& p) { p.templates.erase(p.templates.begin() + 2); }));
}

TEST_CASE("step.c3: a kernel reads what was never written") {
  CHECK(breaks("step.c3", [](StepProgram& p) {
    // The gather's result is allocated, but the gather is gone.
    Instr& gather = first_with(p, [](const Instr& i) { return i.kind == InstrKind::collective && i.owner == 0; });
    gather.kind = InstrKind::done;
    gather.body = -1;
  }));
}

TEST_CASE("step.c4: a kernel writes what was not allocated") {
  CHECK(breaks("step.c4", [](StepProgram& p) {
    first_with(p, [](const Instr& i) { return i.kind == InstrKind::kernel && !i.allocates.empty(); }).allocates.clear();
  }));
}

TEST_CASE("step.c5: an instance is allocated twice") {
  CHECK(breaks("step.c5", [](StepProgram& p) {
    Instr& i = first_with(p, [](const Instr& j) { return j.kind == InstrKind::kernel && !j.allocates.empty(); });
    i.allocates.push_back(i.allocates[0]);
  }));
}

TEST_CASE("step.c6: an instance is released twice") {
  CHECK(breaks("step.c6", [](StepProgram& p) {
    Instr& i = first_with(p, [](const Instr& j) { return !j.releases.empty(); });
    i.releases.push_back(i.releases[0]);
  }));
}

TEST_CASE("step.c7: an instance is never released") {
  CHECK(breaks("step.c7", [](StepProgram& p) {
    // Of a template that is played once: the update of the input block.
    for (Template& t : p.templates)
      if (t.kind.phase == ir::Phase::update && t.kind.block == 0) t.instrs.back().releases.clear();
  }));
}

TEST_CASE("step.c8: a kernel uses a value that it neither makes nor reads") {
  CHECK(breaks("step.c8", [](StepProgram& p) { p.kernels[0].reads.pop_back(); }));
}

TEST_CASE("step.c9: a collective runs over other axes than its op says") {
  CHECK(breaks("step.c9", [](StepProgram& p) { p.collectives[0].mesh_axes = {0}; }));
}

TEST_CASE("step.c9: a collective occupies other links than its plan") {
  CHECK(breaks("step.c9", [](StepProgram& p) { p.collectives[0].resources = {0}; }));
}

TEST_CASE("step.c10: a boundary value is sent but not received") {
  CHECK(breaks("step.c10", [](StepProgram& p) {
    Instr& receive = first_with(p, [](const Instr& i) { return i.kind == InstrKind::receive; });
    receive.kind = InstrKind::send;
    receive.body = 1 - receive.body;
    receive.allocates.clear();
  }));
}

TEST_CASE("step.c11: a microbatch is left out") {
  CHECK(breaks("step.c11", [](StepProgram& p) { p.microbatches = 3; }));
}

TEST_CASE("step.c12: the memory summary is not the peak") {
  CHECK(breaks("step.c12", [](StepProgram& p) { p.memory[1].peak_bytes += 1; }));
}

TEST_CASE("step.c13: a transfer releases a buffer") {
  CHECK(breaks("step.c13", [](StepProgram& p) {
    Instr& i = first_with(p, [](const Instr& j) { return j.kind == InstrKind::collective; });
    i.releases.push_back({p.collectives[static_cast<std::size_t>(i.body)].reads[0].second, i.owner});
  }));
}

TEST_CASE("the verifier of lower() can be switched off") {
  Asked asked;
  Tiny tiny(asked);
  tiny.options.verify = false;
  CHECK(tiny.lower().templates.size() == Tiny(asked).lower().templates.size());
}

}  // namespace
}  // namespace tpusim::plan
