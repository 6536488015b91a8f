// The reader that executes a StepProgram with real numbers, every device with a memory of its own.
//
// Driven by run::Interpreter with one class per device. A token is a task of a graph: issuing builds the graph,
// execute() runs it in a seeded shuffled order, on any number of threads, or in exactly the order in which the timing
// backend finished. Kernels evaluate their ops on the device's buffers; collectives move real chunks by the steps of
// their plan; memory is allocated and released for real. What it does is counted from what is really handed to
// products, wires and memories, never taken from the plan: the Tally.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/numeric/device_memory.hpp"
#include "sim/numeric/kernels.hpp"
#include "sim/numeric/task_graph.hpp"
#include "sim/numeric/transport.hpp"
#include "sim/run/backend.hpp"
#include "sim/run/tally.hpp"

namespace tpusim::numeric {

// A value as it was made on a device: kernel results, those inside fused kernels included, and collective results.
struct Observation {
  std::int64_t device = 0;
  std::int32_t program = 0;  // index into StepProgram::programs
  ir::OpId op;
  ir::ValueId value;
  std::int32_t site = 0;
  std::int64_t microbatch = 0, step = 0;
  const Tensor& tensor;
};

class NumericBackend {
 public:
  using Token = TaskGraph::Task;
  static constexpr bool kOrdered = false;

  explicit NumericBackend(const plan::StepProgram& program);

  // --- before the first step
  // ------------------------------------------------------------------------------------------------- The first value
  // of each persistent buffer instance of each device (parameters, slots, data). Its type must be the buffer's.
  using Initial = std::function<Tensor(std::int64_t device, const run::Instance&, const plan::Buffer&)>;
  void initialize(const Initial& initial);
  // The batch of a step (0-based): called for each data buffer of a device before its first use in the step. Without it
  // the first values stay.
  using Batches =
      std::function<Tensor(std::int64_t device, const run::Instance&, const plan::Buffer&, std::int64_t step)>;
  void set_batches(Batches batches) { batches_ = std::move(batches); }
  // Called for every value made while work is carried out, one call at a time.
  using Observer = std::function<void(const Observation&)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  // Shuffles the moves within the steps of collectives.
  void set_transport_seed(std::uint64_t seed) { transport_seed_ = seed; }

  // --- run::Backend
  // -----------------------------------------------------------------------------------------------------------
  Token origin() const { return graph_.origin(); }
  Token join(Token a, Token b) { return graph_.join(a, b); }
  Token kernel(std::int32_t device, const run::KernelCall& call, Token stream, Token ready);
  Token collective(const run::CollectiveCall& call, Token streams, Token ready);
  Token permute(const run::PermuteCall& call, Token stream, Token sender, Token receiver);
  Token stage_reduce(const run::StageReduceCall& call, Token streams, Token ready);
  Token allocate(std::int32_t device, const run::Instance& instance, Token memory);
  Token release(std::int32_t device, const run::Instance& instance, Token memory, Token done);
  Token batch(std::int32_t device, std::int64_t step);

  // --- execution
  // ---------------------------------------------------------------------------------------------------------------
  void execute(const Order& order);
  // Every issue not yet executed, each once, numbered as below; InternalError when the order is not legal.
  void execute_in_order(const std::vector<std::int64_t>& issues);
  // Calls of kernel, collective, permute, stage_reduce, allocate and release are *issues*, numbered from 0 in call
  // order. The same interpreter issues the same sequence to a timing backend with a class per device, whose completion
  // times give the order to replay: ascending by (finish, issue). `finish` covers the issues not yet executed, first to
  // last.
  std::vector<std::int64_t> order_by_finish(const std::vector<std::int64_t>& finish) const;
  std::int64_t issues() const { return static_cast<std::int64_t>(issues_.size()); }
  std::int64_t executed_issues() const { return executed_issues_; }

  // --- afterwards
  // -------------------------------------------------------------------------------------------------------------
  // Counted since the last reset. The peak is of the fullest device and begins with what is live at the reset.
  run::Tally tally() const;
  void reset_tally();
  std::int64_t peak_bytes(std::int64_t device) const { return memory(device).peak_bytes(); }
  std::int64_t live_bytes(std::int64_t device) const { return memory(device).live_bytes(); }
  // What a device holds; nullptr when the instance is not there or was never written.
  const Tensor* find(std::int64_t device, const run::Instance& instance) const;
  // Overwrites a live instance between two runs.
  void set(std::int64_t device, const run::Instance& instance, Tensor value);

 private:
  struct Bound {  // a value of a kernel and the cell it lives in
    ir::ValueId value;
    Cell* cell = nullptr;
    plan::BufferId buffer;
  };
  struct KernelTask;
  struct CollectiveTask;
  DeviceMemory& memory(std::int64_t device) { return memories_[static_cast<std::size_t>(device)]; }
  const DeviceMemory& memory(std::int64_t device) const { return memories_[static_cast<std::size_t>(device)]; }
  const plan::Buffer& buffer(plan::BufferId id) const { return program_.buffers[static_cast<std::size_t>(id.index)]; }
  Token issue(std::function<void()> work, const TaskGraph::Dependences& after);
  void run_kernel(const KernelTask& task);
  void run_collective(const CollectiveTask& task);
  void observe(const Observation& observation);
  void write(Cell& cell, plan::BufferId id, Tensor value) const;
  void count(run::Traffic kind, std::int64_t bytes) { bytes_sent_[static_cast<std::size_t>(kind)] += bytes; }
  std::vector<run::Instance> persistent_instances(std::int64_t device, plan::BufferId id) const;
  const Transport& transport(std::int32_t plan);
  void after_run();

  const plan::StepProgram& program_;
  TaskGraph graph_;
  std::vector<DeviceMemory> memories_;
  std::vector<std::vector<plan::BufferId>> data_;            // data buffers by block
  std::vector<std::map<std::int64_t, Token>> batch_tokens_;  // by device and step
  std::vector<std::vector<Token>> data_readers_;             // by device: tasks that read data since the last batch
  std::vector<std::unique_ptr<Transport>> transports_;       // by plan, made when first used
  std::vector<Token> issues_;
  std::vector<Token> batch_issues_;  // tasks that have work and are no issue
  std::int64_t executed_issues_ = 0;
  Batches batches_;
  Observer observer_;
  std::mutex observer_mutex_, batches_mutex_;
  std::uint64_t transport_seed_ = 0;
  std::array<std::atomic<std::int64_t>, run::kTrafficKinds> bytes_sent_{};
  std::atomic<std::int64_t> executed_flops_{0};
};

}  // namespace tpusim::numeric
