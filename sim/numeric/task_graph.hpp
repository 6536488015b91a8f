// A graph of tasks, run in any order that its edges allow.
//
// Tasks are added one by one; a task may depend on earlier ones only, so the graph has no cycle. run() takes the ready
// tasks in a seeded shuffled order, on one thread or several; run_in_order() takes exactly the order given. What a task
// computes must depend on its predecessors alone: then every order gives the same values, bit for bit.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/base/inline_vector.hpp"

namespace tpusim::numeric {

// How to choose among the tasks that are ready.
struct Order {
  std::uint64_t seed = 0;
  int threads = 1;  // at least 1; with several, the operating system also has its say
};

class TaskGraph {
 public:
  using Task = std::int32_t;
  using Dependences = InlineVector<Task, 3>;

  TaskGraph();
  Task origin() const { return 0; }  // done from the start
  // `work` may be empty: then the task is a join, done with its last dependence.
  Task add(std::function<void()> work, const Dependences& after);
  Task join(Task a, Task b);
  // A join of any number.
  Task join(const std::vector<Task>& tasks);

  // Runs all that has been added and not yet run. The first failure stops the run and is thrown; the graph is then
  // unusable.
  void run(const Order& order);
  // `order` names every task with work that has not been run, each once; InternalError when one comes before a
  // dependence.
  void run_in_order(std::span<const Task> order);

  // Tasks not yet run are [first_pending(), size()).
  Task size() const { return static_cast<Task>(nodes_.size()); }
  Task first_pending() const { return first_pending_; }
  bool has_work(Task task) const { return static_cast<bool>(node(task).work); }
  const Dependences& dependences(Task task) const { return node(task).after; }

 private:
  struct Node {
    std::function<void()> work;
    Dependences after;
    bool done = false;
  };
  struct Run;
  const Node& node(Task task) const { return nodes_[static_cast<std::size_t>(task)]; }
  Node& node(Task task) { return nodes_[static_cast<std::size_t>(task)]; }

  std::vector<Node> nodes_;
  Task first_pending_ = 1;
};

}  // namespace tpusim::numeric
