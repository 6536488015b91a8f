// The interpreter: plays a StepProgram over device classes and finds every reason why an instruction has to wait.
//
// Each class is walked in plan order, instruction by instruction, which is a legal order of everything that is decided
// inside a class; classes meet in Meetings. Readiness of an instruction is the join of
//   data     completion of the writer of every instance it reads; for an instance that it overwrites, of its readers
//   and writer memory   if it allocates: every release that the plan puts before it batch    if it reads the step's
//   batch: its arrival streams  the previous instruction of the compute stream, or of each resource that a transfer
//   occupies
// A class goes on past a transfer that is only promised, and stops where it needs one: so a plan stalls exactly when it
// cannot be played in plan order with asynchronous transfers. Backends with ordered tokens (times) may also repeat: see
// repetition.hpp. Cost: O(operands) for each instruction played.
#pragma once

#include <optional>
#include <string>
#include <type_traits>

#include "sim/run/class_state.hpp"
#include "sim/run/compiled.hpp"
#include "sim/run/repetition.hpp"
#include "sim/run/stall.hpp"

namespace tpusim::run {

// How the calls of a run were dealt with, summed over the classes.
struct CallCounts {
  std::int64_t played = 0;    // instruction by instruction
  std::int64_t replayed = 0;  // by a known outcome
  std::int64_t added = 0;     // with a whole repeat, by arithmetic
};

template <Backend B>
class Interpreter {
 public:
  using Token = typename B::Token;
  // The program must outlive the interpreter.
  Interpreter(const plan::StepProgram& program, Folding folding, B& backend);

  const std::vector<DeviceClass>& classes() const { return classes_; }
  // Plays until every class has finished `steps` steps in all. A stall ends it.
  std::optional<StallReport> run(std::int64_t steps);
  // Completion of the last instruction on the compute stream of a class.
  const Token& compute_token(std::size_t c) const { return state_[c].compute.token; }
  // How often each template has been played by each class, repeats that were added included.
  const std::vector<std::vector<std::int64_t>>& calls() const { return calls_; }
  const CallCounts& counts() const { return counts_; }
  // More calls than this, played or replayed one by one, are a CapacityError.
  void set_call_limit(std::int64_t calls) { call_limit_ = calls; }
  // Exact shortcuts, for ordered tokens only: on by default.
  void set_repetition(bool on) {
    repeat_ = on;
    repetition_.forget();
  }
  // For ordered tokens, between two runs: everything that later times depend on (the batch excepted), relative to the
  // first class. Equal states go on equally.
  std::vector<std::int64_t> relative_state() {
    if constexpr (B::kOrdered) return repetition_.relative_state(*this);
    return {};
  }

 private:
  using State = ClassState<Token>;
  bool round(std::int64_t steps);
  void advance(std::int32_t c, std::int64_t steps);
  void begin_call(std::int32_t c);
  void load_slots(State& s);
  void end_call(std::int32_t c);
  void store_slots(State& s);
  std::int32_t select_template(State& s);
  bool play(std::int32_t c, const CompiledInstr& instr);
  bool play_kernel(std::int32_t c, const CompiledInstr& instr);
  bool play_done(std::int32_t c, const CompiledInstr& instr);
  bool play_transfer(std::int32_t c, const CompiledInstr& instr);
  void release(std::int32_t c, const CompiledInstr& instr);
  std::int32_t meet(std::int32_t c, const CompiledInstr& instr, const Token& ready, const Token& stream);
  void complete(std::size_t instruction, std::int32_t meeting);
  bool settle(State& s, Ref<Token>& ref);
  bool settle(State& s, Entry<Token>& entry);
  bool settle_operands(State& s, const CompiledInstr& instr);
  bool settle_releases(State& s, const CompiledInstr& instr);
  Token ready_of(std::int32_t c, const CompiledInstr& instr);
  Token allocate(std::int32_t c, const CompiledInstr& instr, Token ready);
  const ResolvedCall& owner(const State& s, std::int8_t of) const {
    return of == 0 ? s.cursor.current() : of > 0 ? s.cursor.next() : s.cursor.previous();
  }
  Instance instance(const State& s, const Slot& slot) const;
  std::int16_t slot_of(const State& s, const Instance& key) const;
  std::size_t slot_at(const CompiledTemplate& tmpl, std::int32_t i) const {
    return static_cast<std::size_t>(tmpl.pool[static_cast<std::size_t>(i)]);
  }
  void instances(const State& s, std::int32_t from, std::int32_t to, std::vector<Instance>& out) const;
  void fill_member(std::int32_t c, const State& s, const CompiledInstr& instr, CollectiveMember& member) const;
  void meeting_classes(std::int32_t c, const CompiledInstr& instr, std::vector<std::int32_t>& out) const;
  MeetingKey meeting_key(std::int32_t c, const CompiledInstr& instr) const;
  std::size_t instruction_number(const CompiledInstr& instr) const;
  const std::vector<std::int32_t>& resources_of(std::int32_t c, const CompiledInstr& instr);
  std::int64_t group_base(std::int64_t device, const ir::MeshAxes& axes) const;
  const CompiledTemplate& compiled(std::int32_t variant) const { return templates_[static_cast<std::size_t>(variant)]; }
  // The time that every kernel to come, and every transfer that allocates, starts after.
  std::int64_t base(const State& s) const {
    if constexpr (B::kOrdered)
      return facts_.transfers_allocate ? std::min(s.memory.ps, s.compute.token.ps) : s.compute.token.ps;
    return 0;
  }
  StallReport stall() const;
  std::string awaited(const Meeting<Token>& meeting) const;

  // A template between two call kinds and in one relation, once compiled.
  struct Variant {
    std::int32_t previous = -1, next = -1;
    Relation relation;
    std::int32_t compiled = -1;
  };

  const plan::StepProgram& program_;
  Folding folding_;
  B& backend_;
  ProgramFacts facts_;
  std::vector<std::vector<Variant>> variants_;  // by call kind
  std::vector<CompiledTemplate> templates_;     // compiled
  std::vector<std::int64_t> stride_;            // of each mesh axis in device numbers
  std::vector<DeviceClass> classes_;
  std::vector<State> state_;
  std::vector<std::vector<std::int64_t>> calls_;  // by class and template
  CallCounts counts_;
  std::int64_t call_limit_ = INT64_MAX;
  Meetings<Token> meetings_;
  std::vector<std::int32_t> one_resource_;
  std::vector<CollectiveMember> lone_member_ = std::vector<CollectiveMember>(1);
  std::vector<Instance> reads_, writes_;  // of the instruction being played
  bool repeat_ = true;
  std::conditional_t<B::kOrdered, Repetition<B>, NoRepetition> repetition_;
  friend class Repetition<B>;
};

}  // namespace tpusim::run

#include "sim/run/interpreter.inl"
#include "sim/run/meet.inl"
