#include "sim/engine/event_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "sim/base/random.hpp"
#include "sim/engine/simulator.hpp"

using namespace tpusim;
using namespace tpusim::engine;

namespace {

SimTime ps(std::int64_t n) {
  return SimTime::from_ps(n);
}

std::string drain(EventQueue<char>& queue) {
  std::string order;
  while (auto event = queue.pop()) order += event->payload;
  return order;
}

}  // namespace

TEST_CASE("events come by time, then priority, then in the order of scheduling") {
  EventQueue<char> queue;
  queue.schedule(ps(5), Priority::start, 'd');
  queue.schedule(ps(5), Priority::stop, 'g');
  queue.schedule(ps(5), Priority::start, 'e');
  queue.schedule(ps(1), Priority::stop, 'b');
  queue.schedule(ps(5), Priority::completion, 'c');
  queue.schedule(ps(0), Priority::observe, 'a');
  queue.schedule(ps(5), Priority::solve, 'f');
  CHECK(drain(queue) == "abcdefg");
}

TEST_CASE("equals are first in, first out, however many there are") {
  EventQueue<int> queue;
  for (int i = 0; i < 1000; ++i) queue.schedule(ps(7), Priority::start, i);
  std::vector<int> order, expected;
  while (auto event = queue.pop()) order.push_back(event->payload);
  for (int i = 0; i < 1000; ++i) expected.push_back(i);
  CHECK(order == expected);
}

TEST_CASE("now is the time of the last event and never goes back") {
  EventQueue<char> queue;
  CHECK(queue.now() == ps(0));
  queue.schedule(ps(10), Priority::start, 'a');
  CHECK(queue.now() == ps(0));
  CHECK(queue.next_time() == ps(10));
  queue.pop();
  CHECK(queue.now() == ps(10));
  CHECK_THROWS_AS(queue.schedule(ps(9), Priority::stop, 'b'), InternalError);
  queue.schedule(ps(10), Priority::completion, 'c');  // now itself is not the past
  CHECK(queue.pop()->payload == 'c');
  CHECK(queue.pop() == std::nullopt);
  CHECK(queue.now() == ps(10));
}

TEST_CASE("a cancelled event does not happen, and an old handle does not name a new event") {
  EventQueue<char> queue;
  const Handle a = queue.schedule(ps(1), Priority::start, 'a');
  const Handle b = queue.schedule(ps(2), Priority::start, 'b');
  CHECK(queue.pending(a));
  CHECK(queue.cancel(a));
  CHECK_FALSE(queue.pending(a));
  CHECK_FALSE(queue.cancel(a));
  CHECK(queue.size() == 1);
  CHECK(queue.next_time() == ps(2));
  const Handle c = queue.schedule(ps(3), Priority::start, 'c');  // may take a's slot
  CHECK_FALSE(queue.cancel(a));
  CHECK(drain(queue) == "bc");
  CHECK_FALSE(queue.cancel(b));
  CHECK_FALSE(queue.cancel(c));
  CHECK_FALSE(queue.cancel(Handle{}));
}

TEST_CASE("cancelling nearly everything keeps the order of the rest") {
  EventQueue<int> queue;
  std::vector<Handle> handles;
  for (int i = 0; i < 5000; ++i) handles.push_back(queue.schedule(ps(10000 - i), Priority::start, i));
  for (int i = 0; i < 5000; ++i)
    if (i % 100 != 0) CHECK(queue.cancel(handles[static_cast<std::size_t>(i)]));
  CHECK(queue.size() == 50);
  std::vector<int> order, expected;
  while (auto event = queue.pop()) order.push_back(event->payload);
  for (int i = 4900; i >= 0; i -= 100) expected.push_back(i);
  CHECK(order == expected);
}

namespace {

// Runs the same random schedules, cancels and pops on a queue and on a sorted list.
template <class Queue>
void compare_with_sorted_list() {
  struct Item {
    std::int64_t time;
    int priority;
    int sequence;
    Handle handle;
    bool operator<(const Item& o) const {
      return std::tie(time, priority, sequence) < std::tie(o.time, o.priority, o.sequence);
    }
  };
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    Queue queue;
    std::vector<Item> list;
    std::vector<Handle> gone;
    // Few distinct times make ties common; seeds differ in how often they pop and cancel.
    const std::uint64_t spread = 1 + random.below(50), pops = 1 + random.below(6), cancels = random.below(4);
    for (int step = 0; step < 3000; ++step) {
      const std::uint64_t what = random.below(4 + pops + cancels);
      if (what < 4) {
        Item item{queue.now().ps() + static_cast<std::int64_t>(random.below(spread)),
                  static_cast<int>(random.below(5)),
                  step,
                  {}};
        item.handle = queue.schedule(ps(item.time), static_cast<Priority>(item.priority), step);
        list.insert(std::lower_bound(list.begin(), list.end(), item), item);
      } else if (what < 4 + pops) {
        const auto event = queue.pop();
        REQUIRE(event.has_value() == !list.empty());
        if (!event) continue;
        REQUIRE(event->payload == list.front().sequence);
        REQUIRE(event->time.ps() == list.front().time);
        REQUIRE(static_cast<int>(event->priority) == list.front().priority);
        gone.push_back(list.front().handle);
        list.erase(list.begin());
      } else if (!list.empty()) {
        const std::size_t i = random.below(list.size());
        REQUIRE(queue.cancel(list[i].handle));
        gone.push_back(list[i].handle);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      }
      REQUIRE(queue.size() == list.size());
      if (!gone.empty()) REQUIRE_FALSE(queue.pending(gone[random.below(gone.size())]));
      if (step % 7 == 0)
        REQUIRE(queue.next_time() == (list.empty() ? std::nullopt : std::optional(ps(list.front().time))));
    }
  }
}

}  // namespace

TEST_CASE("any sequence of schedules, cancels and pops agrees with a sorted list") {
  compare_with_sorted_list<EventQueue<int>>();
}

TEST_CASE("the order survives running out of sequence numbers") {
  compare_with_sorted_list<EventQueue<int, 11>>();  // 2048 numbers for up to 2000 schedules and their pending events
  compare_with_sorted_list<EventQueue<int, 12>>();
  EventQueue<int, 4> queue;  // 16 numbers, 8 pending, 1000 events at one time: still first in, first out
  std::vector<int> order, expected;
  for (int i = 0; i < 8; ++i) queue.schedule(ps(3), Priority::start, i);
  for (int i = 8; i < 1000; ++i) {
    order.push_back(queue.pop()->payload);
    queue.schedule(ps(3), Priority::start, i);
  }
  for (int i = 0; i < 992; ++i) expected.push_back(i);
  CHECK(order == expected);
}

TEST_CASE("the simulator runs actions in order and they can schedule more") {
  Simulator sim;
  std::vector<std::int64_t> times;
  struct State {
    Simulator* sim;
    std::vector<std::int64_t>* times;
  } state{&sim, &times};
  sim.at(ps(5), Priority::start, [s = &state] {
    s->times->push_back(s->sim->now().ps());
    s->sim->after(ps(3), Priority::start, [s] { s->times->push_back(s->sim->now().ps()); });
  });
  const Handle never = sim.at(ps(6), Priority::start, [s = &state] { s->times->push_back(-1); });
  CHECK(sim.cancel(never));
  sim.run();
  CHECK(times == std::vector<std::int64_t>{5, 8});
  CHECK(sim.events_run() == 2);
}

TEST_CASE("run_until stops after the last event at the limit") {
  Simulator sim;
  int ran = 0;
  for (int t = 1; t <= 5; ++t) sim.at(ps(t), Priority::start, [r = &ran] { ++*r; });
  sim.run_until(ps(3));
  CHECK(ran == 3);
  CHECK(sim.now() == ps(3));
  CHECK(sim.run_while_not([&] { return ran == 4; }));
  CHECK(sim.pending_events() == 1);
  CHECK_FALSE(sim.run_while_not([&] { return ran == 9; }));
}

TEST_CASE("a run beyond 106 days is refused by name") {
  Simulator sim;
  sim.at(ps(9000000000000000000), Priority::start, Action{});
  sim.run();
  CHECK_THROWS_AS(sim.after(ps(9000000000000000000), Priority::start, Action{}), CapacityError);
}
