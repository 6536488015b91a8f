#include "fluid_support.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tpusim::engine::testing {

namespace {

double latency_of(const NetworkCase& network, const FlowCase& flow) {
  double sum = 0;
  for (int l : flow.route) sum += network.links[static_cast<std::size_t>(l)].latency;
  return sum;
}

struct EngineRun {
  const NetworkCase& network;
  Simulator sim;
  FluidNetwork net{sim};
  std::vector<std::int64_t> ends;
  std::vector<std::size_t> missing;

  explicit EngineRun(const NetworkCase& n) : network(n), ends(n.flows.size(), -1) {
    for (const LinkCase& l : n.links) net.add_link(BytesPerSecond(l.rate));
    for (std::size_t i = 0; i < n.flows.size(); ++i) {
      missing.push_back(n.flows[i].after.size());
      if (missing[i] == 0) sim.at(SimTime::from(Seconds(n.flows[i].start_s)), Priority::start, [this, i] { begin(i); });
    }
    sim.run();
  }
  void begin(std::size_t i) {
    const FlowCase& f = network.flows[i];
    FlowSpec spec;
    for (int l : f.route) spec.route.push_back({LinkId(l), 1});
    spec.bytes = Bytes(f.bytes);
    spec.latency = SimTime::from(Seconds(latency_of(network, f)));
    if (f.bound > 0) spec.bound = BytesPerSecond(f.bound);
    net.start(spec, [this, i] { end(i); });
  }
  void end(std::size_t i) {
    ends[i] = sim.now().ps();
    for (std::size_t j = 0; j < network.flows.size(); ++j)
      for (int d : network.flows[j].after)
        if (static_cast<std::size_t>(d) == i && --missing[j] == 0) {
          const SimTime at = max(sim.now(), SimTime::from(Seconds(network.flows[j].start_s)));
          sim.at(at, Priority::start, [this, j] { begin(j); });
        }
  }
};

// Max-min rates of the moving flows: all unfrozen rates are raised by the smallest slack of a link or a bound.
std::vector<double> twin_rates(const NetworkCase& network, const std::vector<std::size_t>& moving) {
  std::vector<double> rate(network.flows.size(), 0);
  std::vector<std::size_t> rising = moving;
  while (!rising.empty()) {
    std::vector<double> slack;
    std::vector<int> users(network.links.size(), 0);
    for (const LinkCase& l : network.links) slack.push_back(l.rate);
    for (std::size_t f : moving)
      for (int l : network.flows[f].route) slack[static_cast<std::size_t>(l)] -= rate[f];
    for (std::size_t f : rising)
      for (int l : network.flows[f].route) ++users[static_cast<std::size_t>(l)];
    double raise = std::numeric_limits<double>::infinity();
    for (std::size_t l = 0; l < users.size(); ++l)
      if (users[l] > 0) raise = std::min(raise, std::max(0.0, slack[l]) / users[l]);
    for (std::size_t f : rising)
      if (network.flows[f].bound > 0) raise = std::min(raise, network.flows[f].bound - rate[f]);
    for (std::size_t f : rising) rate[f] += raise;
    std::vector<std::size_t> still;
    for (std::size_t f : rising) {
      bool stuck = network.flows[f].bound > 0 && rate[f] >= network.flows[f].bound * (1 - 1e-11);
      for (int l : network.flows[f].route) {
        const std::size_t i = static_cast<std::size_t>(l);
        if (slack[i] - raise * users[i] <= network.links[i].rate * 1e-11) stuck = true;
      }
      if (!stuck) still.push_back(f);
    }
    rising = std::move(still);
  }
  return rate;
}

}  // namespace

std::vector<std::int64_t> run_engine(const NetworkCase& network) {
  return EngineRun(network).ends;
}

std::vector<double> run_twin(const NetworkCase& network) {
  const double never = std::numeric_limits<double>::infinity();
  const std::size_t n = network.flows.size();
  std::vector<double> move_at(n, never), ends(n, never), left;
  for (const FlowCase& f : network.flows) left.push_back(f.bytes);
  const auto release = [&](std::size_t i, double now) {
    move_at[i] = std::max(now, network.flows[i].start_s) + latency_of(network, network.flows[i]);
  };
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < n; ++i) {
    missing.push_back(network.flows[i].after.size());
    if (missing[i] == 0) release(i, 0);
  }
  double now = 0;
  for (;;) {
    std::vector<std::size_t> moving;
    double next = never;
    for (std::size_t i = 0; i < n; ++i) {
      if (ends[i] < never) continue;
      if (move_at[i] <= now * (1 + 1e-15))
        moving.push_back(i);
      else
        next = std::min(next, move_at[i]);
    }
    if (moving.empty() && next == never) return ends;
    const std::vector<double> rate = twin_rates(network, moving);
    for (std::size_t f : moving) next = std::min(next, now + left[f] / rate[f]);
    for (std::size_t f : moving) left[f] -= rate[f] * (next - now);
    now = next;
    for (std::size_t f : moving)
      if (left[f] <= network.flows[f].bytes * 1e-12) {
        ends[f] = now;
        for (std::size_t j = 0; j < n; ++j)
          for (int d : network.flows[j].after)
            if (static_cast<std::size_t>(d) == f && --missing[j] == 0) release(j, now);
      }
  }
}

}  // namespace tpusim::engine::testing
