#include "fluid_support.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>

namespace tpusim::engine::testing {

namespace {

double latency_of(const NetworkCase& network, const FlowCase& flow) {
  double sum = 0;
  for (int l : flow.route) sum += network.links[static_cast<std::size_t>(l)].latency;
  return sum;
}

// What bounds a flow apart from shared links; infinite when nothing does.
double bound_of(const NetworkCase& network, const FlowCase& flow) {
  double bound = flow.bound > 0 ? flow.bound : std::numeric_limits<double>::infinity();
  for (int l : flow.route)
    if (const LinkCase& link = network.links[static_cast<std::size_t>(l)]; link.non_blocking)
      bound = std::min(bound, link.rate);
  return bound;
}

struct EngineRun {
  const NetworkCase& network;
  std::vector<std::string>* violations;
  Simulator sim;
  FluidNetwork net{sim};
  std::vector<FlowId> ids;
  std::vector<std::int64_t> ends;
  std::vector<std::size_t> missing;
  SimTime last_look = SimTime::from_ps(-1);

  EngineRun(const NetworkCase& n, std::vector<std::string>* v)
      : network(n), violations(v), ids(n.flows.size()), ends(n.flows.size(), -1) {
    for (const LinkCase& l : n.links)
      net.add_link(BytesPerSecond(l.rate), l.non_blocking ? Sharing::non_blocking : Sharing::shared);
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
    ids[i] = net.start(spec, [this, i] { end(i); });
    look_at(sim.now() + spec.latency);
  }
  void end(std::size_t i) {
    ends[i] = sim.now().ps();
    for (std::size_t j = 0; j < network.flows.size(); ++j)
      for (int d : network.flows[j].after)
        if (static_cast<std::size_t>(d) == i && --missing[j] == 0) {
          const SimTime at = max(sim.now(), SimTime::from(Seconds(network.flows[j].start_s)));
          sim.at(at, Priority::start, [this, j] { begin(j); });
        }
    look_at(sim.now());
  }
  void look_at(SimTime at) {
    if (violations != nullptr) sim.at(at, Priority::observe, [this] { look(); });
  }
  // A relative slack of 1e-9: rates are sums and quotients of at most some dozen doubles, 1e-14 relative.
  void look() {
    if (last_look == sim.now()) return;
    last_look = sim.now();
    const auto fail = [this](const std::string& what, std::size_t which) {
      violations->push_back(what + " " + std::to_string(which) + " at " + std::to_string(sim.now().ps()) + " ps");
    };
    std::vector<double> load(network.links.size(), 0), fastest(network.links.size(), 0);
    for (std::size_t f = 0; f < ids.size(); ++f)
      for (int l : network.flows[f].route) {
        const double rate = net.rate(ids[f]).value();
        load[static_cast<std::size_t>(l)] += rate;
        fastest[static_cast<std::size_t>(l)] = std::max(fastest[static_cast<std::size_t>(l)], rate);
      }
    for (std::size_t l = 0; l < load.size(); ++l)
      if (!network.links[l].non_blocking && load[l] > network.links[l].rate * (1 + 1e-9)) fail("overload of link", l);
    for (std::size_t f = 0; f < ids.size(); ++f) {
      const double rate = net.rate(ids[f]).value(), bound = bound_of(network, network.flows[f]);
      if (!(rate > 0)) continue;
      if (rate > bound * (1 + 1e-9)) fail("a rate above the bound of flow", f);
      bool held = rate >= bound * (1 - 1e-9);
      for (int l : network.flows[f].route) {
        const std::size_t i = static_cast<std::size_t>(l);
        if (!network.links[i].non_blocking && load[i] >= network.links[i].rate * (1 - 1e-9) &&
            rate >= fastest[i] * (1 - 1e-9))
          held = true;
      }
      if (!held) fail("nothing holds back flow", f);
    }
  }
};

std::vector<int> numbers(const std::string& text) {
  std::vector<int> out;
  std::istringstream in(text == "-" ? "" : text);
  for (std::string one; std::getline(in, one, ',');) out.push_back(std::stoi(one));
  return out;
}

}  // namespace

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
      if (users[l] > 0 && !network.links[l].non_blocking) raise = std::min(raise, std::max(0.0, slack[l]) / users[l]);
    for (std::size_t f : rising) raise = std::min(raise, bound_of(network, network.flows[f]) - rate[f]);
    for (std::size_t f : rising) rate[f] += raise;
    std::vector<std::size_t> still;
    for (std::size_t f : rising) {
      bool stuck = rate[f] >= bound_of(network, network.flows[f]) * (1 - 1e-11);
      for (int l : network.flows[f].route) {
        const std::size_t i = static_cast<std::size_t>(l);
        if (!network.links[i].non_blocking && slack[i] - raise * users[i] <= network.links[i].rate * 1e-11)
          stuck = true;
      }
      if (!stuck) still.push_back(f);
    }
    rising = std::move(still);
  }
  return rate;
}

std::vector<NetworkCase> read_cases(const std::string& path) {
  std::ifstream file(path);
  std::vector<NetworkCase> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string kind, sharing, route, after;
    in >> kind;
    if (kind == "#") continue;
    if (kind == "case") {
      in >> cases.emplace_back().name;
    } else if (kind == "link") {
      LinkCase& l = cases.back().links.emplace_back();
      in >> l.rate >> l.latency >> sharing;
      l.non_blocking = sharing == "non_blocking";
    } else {
      FlowCase& f = cases.back().flows.emplace_back();
      in >> f.start_s >> f.bytes >> f.finish_s >> route >> after;
      f.route = numbers(route);
      f.after = numbers(after);
    }
    if (in.fail()) throw std::runtime_error(path + ": " + line);
  }
  return cases;
}

std::vector<std::int64_t> run_engine(const NetworkCase& network, std::vector<std::string>* violations) {
  return EngineRun(network, violations).ends;
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
