#include "sim/numeric/task_graph.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>

#include "sim/base/check.hpp"

using tpusim::InternalError;
using tpusim::numeric::Order;
using tpusim::numeric::TaskGraph;

namespace {

// A diamond of chains: a -> (b0 .. b7 in parallel) -> c; records the order in which tasks ran.
struct Diamond {
  TaskGraph graph;
  std::vector<int> ran;
  std::mutex mutex;
  std::vector<TaskGraph::Task> tasks;
  Diamond() {
    const auto record = [this](int name) {
      return [this, name] {
        const std::scoped_lock lock(mutex);
        ran.push_back(name);
      };
    };
    tasks.push_back(graph.add(record(0), {}));
    std::vector<TaskGraph::Task> middle;
    for (int i = 1; i <= 8; ++i) tasks.push_back(graph.add(record(i), {tasks[0]}));
    const TaskGraph::Task all = graph.join(std::vector<TaskGraph::Task>(tasks.begin() + 1, tasks.end()));
    tasks.push_back(graph.add(record(9), {all}));
  }
};

}  // namespace

TEST_CASE("tasks run once each, after what they depend on, whatever seed and threads") {
  for (int threads : {1, 2, 4})
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      Diamond d;
      d.graph.run(Order{seed, threads});
      REQUIRE(d.ran.size() == 10);
      CHECK(d.ran.front() == 0);
      CHECK(d.ran.back() == 9);
      CHECK(std::set<int>(d.ran.begin(), d.ran.end()).size() == 10);
    }
}

TEST_CASE("one seed gives one order on one thread, and other seeds give others") {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Diamond a, b;
    a.graph.run(Order{seed, 1});
    b.graph.run(Order{seed, 1});
    CHECK(a.ran == b.ran);
    orders.insert(a.ran);
  }
  CHECK(orders.size() > 5);  // of 8! orders, ten draws
}

TEST_CASE("a given order is followed exactly, and one that breaks a dependence is an error") {
  Diamond d;
  d.graph.run_in_order(std::vector<TaskGraph::Task>{d.tasks[0], d.tasks[8], d.tasks[7], d.tasks[6], d.tasks[5],
                                                    d.tasks[4], d.tasks[3], d.tasks[2], d.tasks[1], d.tasks[9]});
  CHECK(d.ran == std::vector<int>{0, 8, 7, 6, 5, 4, 3, 2, 1, 9});
  Diamond e;
  CHECK_THROWS_AS(e.graph.run_in_order(std::vector<TaskGraph::Task>{e.tasks[1]}), InternalError);
  Diamond f;  // one task is left out
  CHECK_THROWS_AS(f.graph.run_in_order(std::vector<TaskGraph::Task>{f.tasks[0]}), InternalError);
}

TEST_CASE("a graph grows after a run, on tokens of tasks that are done") {
  Diamond d;
  d.graph.run(Order{});
  int more = 0;
  d.graph.add([&] { ++more; }, {d.tasks[9]});
  d.graph.run(Order{});
  CHECK(more == 1);
  CHECK(d.ran.size() == 10);
}

TEST_CASE("joins of the origin and of equal tasks are no new tasks") {
  TaskGraph graph;
  const TaskGraph::Task a = graph.add([] {}, {});
  CHECK(graph.join(graph.origin(), a) == a);
  CHECK(graph.join(a, graph.origin()) == a);
  CHECK(graph.join(a, a) == a);
  CHECK(graph.size() == 2);
}

TEST_CASE("a failing task stops the run and its error comes out, on any number of threads") {
  for (int threads : {1, 3}) {
    TaskGraph graph;
    std::atomic<int> after{0};
    const TaskGraph::Task bad = graph.add([] { throw InternalError("broken"); }, {});
    graph.add([&] { ++after; }, {bad});
    CHECK_THROWS_AS(graph.run(Order{1, threads}), InternalError);
    CHECK(after == 0);
  }
}

TEST_CASE("a task cannot depend on one that does not exist yet") {
  TaskGraph graph;
  CHECK_THROWS_AS(graph.add([] {}, {TaskGraph::Task{5}}), InternalError);
}

TEST_CASE("many threads on a chain of increments lose none") {
  TaskGraph graph;
  int counter = 0;  // not atomic: the edges order its uses
  TaskGraph::Task last = graph.origin();
  for (int i = 0; i < 2000; ++i) last = graph.add([&] { ++counter; }, {last});
  graph.run(Order{3, 4});
  CHECK(counter == 2000);
}
