// Templates made ready for interpretation: every buffer reference of a template gets a slot number, so that one call is
// played on a small array instead of a table of instances.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/step_program.hpp"

namespace tpusim::run {

struct Slot {
  plan::BufferRef ref;
  std::int8_t owner = 0;    // as Instr::owner
  bool incoming = false;    // its instance exists before the call (another call's, persistent, or received)
  bool outgoing = false;    // its instance lives on after the call
  bool data = false;        // part of the batch: reads wait for the batch of the step
};

// Slots of an instruction are four consecutive ranges of CompiledTemplate::pool.
struct CompiledInstr {
  plan::InstrKind kind = plan::InstrKind::kernel;
  std::int32_t body = 0;
  std::int8_t owner = 0;
  std::int32_t reads = 0, writes = 0, allocates = 0, releases = 0, end = 0;  // first index of each range; `end` after the last
};

struct CompiledTemplate {
  std::vector<Slot> slots;
  std::vector<std::int16_t> incoming, outgoing;  // slot numbers
  std::vector<std::int16_t> pool;
  std::vector<CompiledInstr> instrs;
  bool crosses = false;     // sends, receives or reduces over stages
  bool reads_data = false;
};

std::vector<CompiledTemplate> compile(const plan::StepProgram& program);

}  // namespace tpusim::run
