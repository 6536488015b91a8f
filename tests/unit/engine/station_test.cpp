#include "sim/engine/station.hpp"

#include <doctest/doctest.h>

#include "sim/engine/bounded_buffer.hpp"

using namespace tpusim;
using namespace tpusim::engine;

namespace {

SimTime ps(std::int64_t n) {
  return SimTime::from_ps(n);
}

struct Log {
  Simulator sim;
  std::vector<std::pair<int, std::int64_t>> ends;  // job, time
  Action note(int job) {
    return [this, job] { ends.push_back({job, sim.now().ps()}); };
  }
};

using Ends = std::vector<std::pair<int, std::int64_t>>;

}  // namespace

TEST_CASE("a stream works one job at a time, in the order of submission") {
  Log log;
  Stream stream(log.sim);
  stream.submit(ps(10), log.note(0));
  stream.submit(ps(1), log.note(1));
  stream.submit(ps(5), log.note(2));
  CHECK(stream.busy() == 1);
  CHECK(stream.waiting() == 2);
  log.sim.run();
  CHECK(log.ends == Ends{{0, 10}, {1, 11}, {2, 16}});
  CHECK(stream.busy_time() == ps(16));
  CHECK(stream.completed() == 3);
}

TEST_CASE("three servers finish seven equal jobs in three rounds") {
  // Throughput of s servers is s/d: ceil(7/3) = 3 rounds of 10 ps.
  Log log;
  Station station(log.sim, 3);
  for (int i = 0; i < 7; ++i) station.submit(ps(10), log.note(i));
  log.sim.run();
  CHECK(log.ends == Ends{{0, 10}, {1, 10}, {2, 10}, {3, 20}, {4, 20}, {5, 20}, {6, 30}});
}

TEST_CASE("a waiting job takes the first server that falls free") {
  Log log;
  Station station(log.sim, 2);
  station.submit(ps(10), log.note(0));
  station.submit(ps(3), log.note(1));
  station.submit(ps(4), log.note(2));  // starts at 3
  station.submit(ps(4), log.note(3));  // starts at 7
  log.sim.run();
  CHECK(log.ends == Ends{{1, 3}, {2, 7}, {0, 10}, {3, 11}});
}

TEST_CASE("a server that falls free at t serves a job that arrives at t at once") {
  Log log;
  Stream stream(log.sim);
  stream.submit(ps(10), log.note(0));
  struct Ctx {
    Stream* stream;
    Log* log;
  } ctx{&stream, &log};
  std::int64_t busy_on_arrival = -1;
  log.sim.at(ps(10), Priority::start, [c = &ctx, b = &busy_on_arrival] {
    *b = c->stream->busy();
    c->stream->submit(ps(2), c->log->note(1));
  });
  log.sim.run();
  CHECK(busy_on_arrival == 0);
  CHECK(log.ends == Ends{{0, 10}, {1, 12}});
}

TEST_CASE("jobs without work end at once, in order") {
  Log log;
  Stream stream(log.sim);
  for (int i = 0; i < 3; ++i) stream.submit(ps(0), log.note(i));
  log.sim.run();
  CHECK(log.ends == Ends{{0, 0}, {1, 0}, {2, 0}});
}

TEST_CASE("a station without servers and a buffer without places are our own faults") {
  Simulator sim;
  CHECK_THROWS_AS(Station(sim, 0), InternalError);
  CHECK_THROWS_AS(BoundedBuffer(0), InternalError);
}

TEST_CASE("a full buffer holds the producer back and an empty one the consumer") {
  Log log;
  BoundedBuffer buffer(2);
  for (int i = 0; i < 3; ++i) buffer.put(log.note(i));
  CHECK(log.ends.size() == 2);
  CHECK(buffer.waiting_puts() == 1);
  buffer.get(log.note(10));
  CHECK(log.ends == Ends{{0, 0}, {1, 0}, {10, 0}, {2, 0}});  // the place that falls free goes to the waiting put
  buffer.get(log.note(11));
  buffer.get(log.note(12));
  buffer.get(log.note(13));
  CHECK(buffer.waiting_gets() == 1);
  buffer.put(log.note(3));
  CHECK(log.ends == Ends{{0, 0}, {1, 0}, {10, 0}, {2, 0}, {11, 0}, {12, 0}, {3, 0}, {13, 0}});
  CHECK(buffer.size() == 0);
}

namespace {

// A producer that makes an item in `make`, a buffer of k places and a consumer that uses one in `use`.
struct Pipeline {
  Simulator sim;
  Stream maker{sim}, user{sim};
  BoundedBuffer buffer;
  SimTime make, use;
  int to_make, to_use;
  std::vector<std::int64_t> use_starts;
  Pipeline(std::int64_t places, std::int64_t make_ps, std::int64_t use_ps, int n)
      : buffer(places), make(SimTime::from_ps(make_ps)), use(SimTime::from_ps(use_ps)), to_make(n), to_use(n) {
    produce();
    consume();
    sim.run();
  }
  void produce() {
    if (to_make-- == 0) return;
    maker.submit(make, [this] { buffer.put([this] { produce(); }); });
  }
  void consume() {
    if (to_use-- == 0) return;
    buffer.get([this] {
      use_starts.push_back(sim.now().ps());
      user.submit(use, [this] { consume(); });
    });
  }
};

}  // namespace

TEST_CASE("a pipeline through a buffer runs at the pace of its slower side") {
  // Slow producer (10 against 4): item i is ready at 10(i+1). Slow consumer (4 against 10): first at 4, then every 10.
  CHECK(Pipeline(2, 10, 4, 4).use_starts == std::vector<std::int64_t>{10, 20, 30, 40});
  CHECK(Pipeline(2, 4, 10, 4).use_starts == std::vector<std::int64_t>{4, 14, 24, 34});
}

TEST_CASE("a million items pass through a buffer without deepening the stack") {
  CHECK(Pipeline(1, 0, 0, 1000000).use_starts.size() == 1000000);
}
