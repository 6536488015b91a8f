#include "sim/numeric/task_graph.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "sim/base/random.hpp"

namespace tpusim::numeric {

TaskGraph::TaskGraph() {
  nodes_.emplace_back();
  nodes_[0].done = true;
}

TaskGraph::Task TaskGraph::add(std::function<void()> work, const Dependences& after) {
  Node added;
  added.work = std::move(work);
  for (Task task : after) {
    TPUSIM_CHECK(task >= 0 && task < size(), "a task depends on one that does not exist");
    if (task != origin() && !added.after.contains(task)) added.after.push_back(task);
  }
  TPUSIM_CHECK(nodes_.size() < (std::size_t{1} << 30), "a task graph beyond all bounds");
  nodes_.push_back(std::move(added));
  return size() - 1;
}

TaskGraph::Task TaskGraph::join(Task a, Task b) {
  if (a == origin() || a == b) return b;
  if (b == origin()) return a;
  return add({}, {a, b});
}

TaskGraph::Task TaskGraph::join(const std::vector<Task>& tasks) {
  Task all = origin();
  for (Task task : tasks) all = join(all, task);
  return all;
}

// The state of one run: who waits for how many, and who is ready. Tasks are counted from the first pending one.
struct TaskGraph::Run {
  explicit Run(TaskGraph& of) : graph(of), first(of.first_pending_) {
    const std::size_t count = static_cast<std::size_t>(graph.size() - first);
    waits.assign(count, 0);
    std::vector<std::int32_t> degree(count, 0);
    for (Task task = first; task < graph.size(); ++task)
      for (Task before : graph.node(task).after)
        if (before >= first) {
          ++degree[at(before)];
          ++waits[at(task)];
        }
    begin.assign(count + 1, 0);
    for (std::size_t i = 0; i < count; ++i) begin[i + 1] = begin[i] + degree[i];
    successors.resize(static_cast<std::size_t>(begin[count]));
    std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
    for (Task task = first; task < graph.size(); ++task)
      for (Task before : graph.node(task).after)
        if (before >= first) successors[static_cast<std::size_t>(next[at(before)]++)] = task;
    open = count;
    std::vector<Task> free;
    for (Task task = first; task < graph.size(); ++task)
      if (waits[at(task)] == 0) free.push_back(task);
    for (Task task : free) make_ready(task);
  }

  std::size_t at(Task task) const { return static_cast<std::size_t>(task - first); }

  // Joins are done as soon as they are ready; they are not worth a turn.
  void make_ready(Task task) {
    if (graph.node(task).work)
      ready.push_back(task);
    else
      complete(task);
  }

  void complete(Task task) {
    std::vector<Task> done = {task};
    while (!done.empty()) {
      const Task now = done.back();
      done.pop_back();
      graph.node(now).done = true;
      --open;
      for (std::int32_t i = begin[at(now)]; i < begin[at(now) + 1]; ++i) {
        const Task after = successors[static_cast<std::size_t>(i)];
        if (--waits[at(after)] > 0) continue;
        if (graph.node(after).work)
          ready.push_back(after);
        else
          done.push_back(after);
      }
    }
  }

  Task take(Random& random) {
    const std::size_t chosen = static_cast<std::size_t>(random.below(ready.size()));
    std::swap(ready[chosen], ready.back());
    const Task task = ready.back();
    ready.pop_back();
    return task;
  }

  void finish() {
    TPUSIM_CHECK(open == 0, "tasks are left that nothing makes ready");
    for (Task task = first; task < graph.size(); ++task) graph.node(task).work = nullptr;
    graph.first_pending_ = graph.size();
  }

  TaskGraph& graph;
  Task first;
  std::vector<std::int32_t> waits, begin;
  std::vector<Task> successors, ready;
  std::size_t open = 0;
};

namespace {

// What the threads of one run share.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::exception_ptr failure;
};

}  // namespace

void TaskGraph::run(const Order& order) {
  TPUSIM_CHECK(order.threads >= 1, "a run needs a thread");
  Run state(*this);
  Random random(order.seed);
  if (order.threads == 1) {
    while (!state.ready.empty()) {
      const Task task = state.take(random);
      node(task).work();
      state.complete(task);
    }
    return state.finish();
  }
  Shared shared;
  const auto worker = [&] {
    std::unique_lock lock(shared.mutex);
    for (;;) {
      shared.changed.wait(lock, [&] { return !state.ready.empty() || state.open == 0 || shared.failure; });
      if (state.open == 0 || shared.failure) return;
      const Task task = state.take(random);
      lock.unlock();
      std::exception_ptr failure;
      try {
        node(task).work();
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      if (failure)
        shared.failure = failure;
      else
        state.complete(task);
      shared.changed.notify_all();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < order.threads; ++i) threads.emplace_back(worker);
  }
  if (shared.failure) std::rethrow_exception(shared.failure);
  state.finish();
}

void TaskGraph::run_in_order(std::span<const Task> order) {
  Run state(*this);
  for (Task task : order) {
    const auto found = std::find(state.ready.begin(), state.ready.end(), task);
    TPUSIM_CHECK(found != state.ready.end(),
                 "the order is not legal: task " + std::to_string(task) + " comes before a task that it waits for");
    state.ready.erase(found);
    node(task).work();
    state.complete(task);
  }
  state.finish();
}

}  // namespace tpusim::numeric
