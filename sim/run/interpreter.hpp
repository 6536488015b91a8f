// The interpreter: plays a StepProgram over device classes and finds every reason why an instruction has to wait.
//
// Each class is walked in plan order, instruction by instruction, which is a legal order of everything that is decided inside a
// class; classes meet in Meetings. Readiness of an instruction is the join of
//   data     completion of the writer of every instance it reads; for an instance that it overwrites, of its readers and writer
//   memory   if it allocates: every release that the plan puts before it
//   batch    if it reads the step's batch: its arrival
//   streams  the previous instruction of the compute stream, or of each resource that a transfer occupies
// Backends with ordered tokens (times) may also repeat: see repetition.hpp. Cost: O(operands) for each instruction played.
#pragma once

#include <optional>
#include <type_traits>

#include "sim/run/class_state.hpp"
#include "sim/run/compiled.hpp"
#include "sim/run/repetition.hpp"
#include "sim/run/stall.hpp"

namespace tpusim::run {

enum class Folding : std::uint8_t { per_stage, per_device };

template <Backend B>
class Interpreter {
 public:
  using Token = typename B::Token;
  Interpreter(const plan::StepProgram& program, Folding folding, B& backend);

  const std::vector<DeviceClass>& classes() const { return classes_; }
  // Plays until every class has finished `steps` steps in all. A stall ends it.
  std::optional<StallReport> run(std::int64_t steps);
  // Completion of the last instruction on the compute stream of a class.
  const Token& compute_token(std::size_t c) const { return state_[c].compute.token; }
  // How often each template has been played by each class, repeats that were added included.
  const std::vector<std::vector<std::int64_t>>& calls() const { return calls_; }
  // Exact shortcuts, for ordered tokens only: on by default.
  void set_repetition(bool on) { repeat_ = on; }

 private:
  using State = ClassState<Token>;
  bool round(std::int64_t steps);
  void advance(std::int32_t c, std::int64_t steps);
  void begin_call(std::int32_t c);
  void end_call(std::int32_t c);
  bool play(std::int32_t c, const CompiledInstr& instr);
  bool play_kernel(std::int32_t c, const CompiledInstr& instr);
  bool play_transfer(std::int32_t c, const CompiledInstr& instr);
  void release(std::int32_t c, const CompiledInstr& instr);
  std::int32_t meet(std::int32_t c, const CompiledInstr& instr, const Token& ready, const Token& stream);
  void arrive(std::int32_t c, std::int32_t meeting, std::int32_t position, const Token& ready, const Token& stream, CollectiveMember member);
  void complete(std::int32_t meeting);
  bool settle(State& s, Ref<Token>& ref);
  bool settle(State& s, Entry<Token>& entry);
  bool settle_operands(State& s, const CompiledInstr& instr);
  Token ready_of(std::int32_t c, const CompiledInstr& instr);
  Token allocate(std::int32_t c, const CompiledInstr& instr, Token ready);
  const ResolvedCall& owner(const State& s, std::int8_t of) const { return of == 0 ? s.cursor.current() : of > 0 ? s.cursor.next() : s.cursor.previous(); }
  Instance instance(const State& s, const Slot& slot) const;
  CollectiveMember member_of(std::int32_t c, const State& s, const CompiledInstr& instr) const;
  std::vector<std::int32_t> meeting_classes(std::int32_t c, const CompiledInstr& instr) const;
  MeetingKey meeting_key(std::int32_t c, const CompiledInstr& instr) const;
  const std::vector<std::int32_t>& resources_of(const CompiledInstr& instr);
  std::int64_t group_base(std::int64_t device, const ir::MeshAxes& axes) const;
  StallReport stall() const;

  const plan::StepProgram& program_;
  Folding folding_;
  B& backend_;
  std::vector<CompiledTemplate> templates_;
  std::vector<std::int32_t> template_of_;  // by (kind, previous + 1, next + 1)
  std::vector<std::int64_t> stride_;       // of each mesh axis in device numbers
  std::vector<DeviceClass> classes_;
  std::vector<State> state_;
  std::vector<std::vector<std::int64_t>> calls_;  // by class and template
  Meetings<Token> meetings_;
  std::vector<std::int32_t> one_resource_;
  std::vector<CollectiveMember> lone_member_;
  std::vector<Instance> reads_, writes_;   // of the instruction being played
  bool repeat_ = true;
  std::conditional_t<B::kOrdered, Repetition<B>, NoRepetition> repetition_;
  friend class Repetition<B>;
};

}  // namespace tpusim::run

#include "sim/run/interpreter.inl"
