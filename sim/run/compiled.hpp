// Templates made ready for interpretation: every buffer instance that a call names gets one slot number, so that a call
// is played on a small array instead of a table of instances.
//
// Two references can name one instance: a gradient that the preceding call still reduces (owner -1) is the one that
// this call's update reads (owner 0). Whether they do depends on how the three calls lie to each other, their
// *relation*; a template is compiled once for each relation that occurs (nearly always one).
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/step_program.hpp"
#include "sim/run/cursor.hpp"

namespace tpusim::run {

// Sites and microbatches of the calls around a call, relative to its own; 0 where there is none.
struct Relation {
  std::int32_t previous_site = 0, next_site = 0;
  std::int64_t previous_microbatch = 0, next_microbatch = 0;
  bool operator==(const Relation&) const = default;
};
Relation relation_of(const Cursor& cursor);

// How exactly the times of a buffer's instances must be kept (readers that keep time only). A *bare* transfer, which
// allocates nothing and uses nothing that was written in its own call by anything but bare transfers, starts as soon as
// its links and its data allow, which may lie far behind the compute stream; so its data's times are never rounded up.
enum class Exactness : std::uint8_t {
  settled,  // only kernels, and transfers that are not bare, use it: times before the compute stream and memory do not
            // matter
  recent,   // a bare transfer uses it, but at the latest in the call after the one that wrote it
  always    // a bare transfer may use it at any time
};

struct Slot {
  plan::BufferRef ref;
  std::int8_t owner = 0;  // as Instr::owner
  bool incoming = false;  // its instance exists before the call (another call's, persistent, or received)
  bool outgoing = false;  // its instance lives on after the call
  bool data = false;      // part of the batch: reads wait for the batch of the step
  bool written = false;   // by an instruction of this template
  bool bare = false;      // a bare transfer uses it before this template writes it
  Exactness exactness = Exactness::settled;
  std::int16_t same_buffer = -1;  // next slot of the same buffer
};

// Slots of an instruction are four consecutive ranges of CompiledTemplate::pool. A `done` with a body reads what the
// instruction that it waits for writes.
struct CompiledInstr {
  plan::InstrKind kind = plan::InstrKind::kernel;
  std::int8_t owner = 0;
  std::int32_t body = 0;
  std::int32_t reads = 0, writes = 0, allocates = 0, releases = 0,
               end = 0;  // first index of each range; `end` after the last
};

struct CompiledTemplate {
  std::int32_t index = -1;  // into StepProgram::templates
  std::vector<Slot> slots;
  std::vector<std::int16_t> incoming, outgoing;  // slot numbers
  std::vector<std::int16_t> pool;
  std::vector<CompiledInstr> instrs;
  std::vector<std::int16_t> first_of_buffer;  // by buffer: its first slot, -1 none
  std::vector<std::int32_t> resources;        // that its transfers occupy, ascending; without those of permutes
  bool crosses = false;                       // sends, receives or reduces over stages
  // Of one that crosses: its longest stretch of instructions that do not, the first index and the one after the last,
  // and the slots that these write, read but do not write, and only release.
  std::size_t inner_begin = 0, inner_end = 0;
  std::vector<std::int16_t> inner_written, inner_read, inner_released;
  bool collectives = false;
  bool reads_data = false;
  bool always_exact = false;      // has a slot of that exactness
  std::size_t bare_incoming = 0;  // slots that are both
};

// What compile() needs to know of the whole program.
struct ProgramFacts {
  std::vector<Exactness> exactness;  // by buffer
  bool transfers_allocate = false;   // some transfer allocates what it writes
  bool bare_unwritten = false;  // a bare transfer uses what nothing ever writes: no time of a resource may be rounded
};
ProgramFacts facts_of(const plan::StepProgram& program);

CompiledTemplate compile(const plan::StepProgram& program, const ProgramFacts& facts, std::int32_t index,
                         const Relation& relation);

}  // namespace tpusim::run
