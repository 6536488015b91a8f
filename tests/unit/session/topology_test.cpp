// The graph that `tpusim topology` measures is the machine that the plan is timed on; costs and counts by hand.
#include "sim/session/topology.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "sim/scenario/read.hpp"
#include "sim/session/job.hpp"
#include "topologies/cluster_metrics.hpp"
#include "topologies/routes.hpp"

using namespace tpusim;
using topologies::LinkKind;
using topologies::NodeKind;
using topologies::Topology;

namespace {

std::set<std::string> shipped() {
  std::set<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TPUSIM_SOURCE_DIR) + "/scenarios"))
    if (entry.path().extension() == ".json") out.insert(entry.path().string());
  return out;
}

scenario::Scenario scenario_of(const std::string& file) {
  DiagnosticSink sink;
  scenario::Scenario s = scenario::load(file, sink);
  REQUIRE_FALSE(sink.has_errors());
  return s;
}

scenario::Scenario quickstart() {
  return scenario_of(std::string(TPUSIM_SOURCE_DIR) + "/scenarios/quickstart.json");
}

topologies::Cluster cluster_of(const scenario::Scenario& s) {
  DiagnosticSink sink;
  return session::resolve(s, ".", sink)->cluster;
}

// The links of a route: the least bandwidth and the sum of the latencies.
struct Way {
  std::size_t links = 0;
  BytesPerSecond rate;
  Seconds latency;
};
Way way(const Topology& t, std::int64_t from, std::int64_t to) {
  const topologies::Route route =
      topologies::Routes(t).between(static_cast<std::int32_t>(from), static_cast<std::int32_t>(to));
  REQUIRE(route.verdict.feasible);
  Way w;
  w.links = route.links.size();
  for (std::int32_t i : route.links) {
    const topologies::LinkClass& cls = t.classes[static_cast<std::size_t>(t.links[static_cast<std::size_t>(i)].cls)];
    w.rate = w.latency == Seconds() && w.rate == BytesPerSecond() ? cls.bandwidth : std::min(w.rate, cls.bandwidth);
    w.latency += cls.latency;
  }
  return w;
}

std::int64_t degree(const Topology& t, std::int64_t chip, fabric::Level level) {
  return std::count_if(t.links.begin(), t.links.end(), [&](const topologies::Link& l) {
    return l.from == chip && t.classes[static_cast<std::size_t>(l.cls)].level == level;
  });
}

// Links to neighbours that the fabric gives a chip at this coordinate of an axis: a ring or line of two has one.
std::int64_t neighbours(const fabric::PhysicalAxis& axis, std::int64_t coordinate) {
  if (axis.size == 1) return 0;
  if (axis.link == fabric::Link::switched) return 1;
  if (axis.size == 2) return 1;
  const bool end = coordinate == 0 || coordinate == axis.size - 1;
  return axis.link == fabric::Link::line && end ? 1 : 2;
}

// How many chips share the card of a chip.
std::int64_t sharing(const Topology& t, std::int64_t chip) {
  for (const topologies::Link& l : t.links)
    if (l.from == chip && t.nodes[static_cast<std::size_t>(l.to)].kind == NodeKind::nic)
      return std::count_if(t.links.begin(), t.links.end(),
                           [&](const topologies::Link& other) { return other.to == l.to && other.from < t.chips; });
  return 0;
}

// What the fabric says of an axis, against the graph, for the chip at `coordinate` of every axis.
void compare_axis(const Topology& t, const fabric::Fabric& f, std::size_t axis, std::int64_t chip,
                  std::int64_t coordinate, std::int64_t stride) {
  const fabric::PhysicalAxis& a = f.axes[axis];
  if (a.size == 1) return;
  const std::int64_t up = chip + (coordinate + 1 < a.size ? stride : -coordinate * stride);
  const Way step = way(t, chip, up);
  CHECK(step.latency.value() == doctest::Approx(a.alpha.value()).epsilon(1e-12));
  if (a.level == fabric::Level::chip && a.link != fabric::Link::switched) {
    // The chip after the last is the first on a ring, and all the way back on a line.
    const bool neighbour = coordinate + 1 < a.size || a.link == fabric::Link::ring || a.size == 2;
    CHECK(step.links == (neighbour ? 1 : static_cast<std::size_t>(a.size - 1)));
    CHECK(step.rate == a.beta);
    return;
  }
  CHECK(step.links == (a.level == fabric::Level::chip ? 2 : 4));
  if (a.level == fabric::Level::chip) {
    CHECK(step.rate == a.beta);
    return;
  }
  // A chip's share of its card, and nothing on the way to it that is slower.
  std::int64_t cards = 0;
  for (const topologies::LinkClass& cls : t.classes)
    if (cls.kind == LinkKind::dcn || cls.kind == LinkKind::nic) {
      CHECK(cls.bandwidth.value() / static_cast<double>(sharing(t, chip)) ==
            doctest::Approx(a.beta.value()).epsilon(1e-12));
      ++cards;
    }
  CHECK(cards == 1);
  CHECK(step.rate >= a.beta);
}

void compare(const topologies::Cluster& cluster) {
  const fabric::Fabric& f = cluster.fabric;
  const Topology t = topologies::topology_of(cluster);
  REQUIRE(t.chips == f.chips());
  // Corners, edges and some chips inside; all chips of a small machine.
  std::set<std::int64_t> chips = {0, t.chips - 1};
  for (std::int64_t c = 0; c<t.chips; c += t.chips> 64 ? t.chips / 13 : 1) chips.insert(c);
  for (const std::int64_t chip : chips) {
    CAPTURE(chip);
    std::int64_t stride = t.chips, inside = 0, between = 0;
    for (std::size_t i = 0; i < f.axes.size(); ++i) {
      stride /= f.axes[i].size;
      const std::int64_t coordinate = chip / stride % f.axes[i].size;
      const std::int64_t links = neighbours(f.axes[i], coordinate);
      (f.axes[i].level == fabric::Level::chip ? inside : between) += links;
      // A way back along an open axis has the latency of all its links.
      const bool open_end = f.axes[i].link == fabric::Link::line && coordinate + 1 == f.axes[i].size;
      if (!open_end) compare_axis(t, f, i, chip, coordinate, stride);
    }
    CHECK(degree(t, chip, fabric::Level::chip) == inside);
    CHECK(degree(t, chip, fabric::Level::host) + degree(t, chip, fabric::Level::slice) == between);
  }
}

const session::CollectiveCost& cost(const session::TopologyReport& r, const std::string& collective,
                                    const std::string& over, double size) {
  for (const session::CollectiveCost& c : r.costs)
    if (c.collective == collective && c.over == over && c.size == Bytes(size)) return c;
  FAIL("no such cost");
  return r.costs.front();
}

}  // namespace

TEST_CASE("each shipped scenario's graph has the links, wraps, rates and latencies of its fabric") {
  for (const std::string& file : shipped()) {
    CAPTURE(file);
    compare(cluster_of(scenario_of(file)));
  }
}

TEST_CASE("rings and lines of one machine, shared cards and hosts of one chip agree with the fabric too") {
  scenario::Scenario s = quickstart();
  const auto set = [&](const char* chip, topologies::Shape shape, std::int64_t slices) {
    s.cluster.chip.preset = chip;
    s.cluster.topology = std::move(shape);
    s.cluster.slices = slices;
    s.mesh.clear();
    CAPTURE(chip);
    compare(cluster_of(s));
  };
  set("tpu-v5e", {8, 16}, 1);    // the axis of 16 wraps
  set("tpu-v5e", {2, 16}, 3);    // a line of two
  set("tpu-v5p", {4, 4, 8}, 2);  // all wrap
  set("tpu-v5p", {2, 2, 4}, 2);  // none does
  set("tpu-v5e", {2, 2}, 4);
  s.cluster.topology.clear();
  s.cluster.slices = 1;
  s.cluster.chip.preset = "h100";
  s.cluster.hosts = 3;
  s.cluster.chips_per_host = 1;
  compare(cluster_of(s));
}

TEST_CASE("the quickstart's network: 16 chips, 24 links, diameter 6, mean 8/3, 4 links across") {
  // Derived in tests/unit/topologies/cluster_metrics_test.cpp. v5e's link as fitted: 45 GB/s x 0.83.
  const session::TopologyReport r = session::topology(quickstart(), {});
  REQUIRE(r.whole.has_value());
  CHECK_FALSE(r.one_part.has_value());
  CHECK(r.whole->chips == 16);
  CHECK(r.whole->links == 24);
  CHECK(r.whole->diameter == 6);
  CHECK(r.whole->mean_hops == doctest::Approx(8.0 / 3).epsilon(1e-12));
  CHECK(r.whole->bisection_links == 4);
  const BytesPerSecond link = cluster_of(quickstart()).fabric.axes[0].beta;
  CHECK(r.whole->bisection_upper.value() == doctest::Approx(4 * link.value()).epsilon(1e-12));
  CHECK(r.whole->bisection_lower == r.whole->bisection_upper);
  CHECK(r.links.size() == 1);
}

TEST_CASE("an all-gather over the 4x4 mesh costs 6 hops and 15/32 of its bytes on a link, an all-reduce twice that") {
  // Two parts, each V/2, begin on different axes. A line of 4 gathers its members' V/8 in 3 steps, W one link's rate:
  // 3 (a + V/8 / (4 W)); then the other axis V/2: 3 (a + V/2 / (4 W)). Together 6 a + V/W (3/32 + 12/32).
  const scenario::Scenario s = quickstart();
  const fabric::Fabric f = cluster_of(s).fabric;
  const session::TopologyReport r = session::topology(s, {});
  CHECK(r.costs.size() == 9);  // three collectives of three sizes over one axis
  const double v = 1073741824.0, beta = v * 15 / 32 / f.axes[0].beta.value(), alpha = 6 * f.axes[0].alpha.value();
  for (const char* collective : {"all-gather", "reduce-scatter", "all-reduce"}) {
    CAPTURE(std::string(collective));
    const double times = std::string(collective) == "all-reduce" ? 2 : 1;
    const session::CollectiveCost& c = cost(r, collective, "fsdp", v);
    CHECK(c.members == 16);
    CHECK(c.algorithm == "2 parts in rotated order: line of 4, then line of 4");
    CHECK(c.start == f.collective_overhead);
    CHECK(c.alpha.value() == doctest::Approx(times * alpha).epsilon(1e-9));
    CHECK(c.beta.value() == doctest::Approx(times * beta).epsilon(1e-9));
    CHECK(c.bus().value() == doctest::Approx(times * v * 15 / 16 / c.total().value()).epsilon(1e-12));
  }
}

TEST_CASE("a mesh of several axes has a cost over each, and over all chips") {
  scenario::Scenario s = quickstart();
  s.mesh = {{"fsdp", 4}, {"tensor", 4}};
  const session::TopologyReport r = session::topology(s, {});
  CHECK(r.costs.size() == 27);
  CHECK(cost(r, "all-reduce", "tensor", 1024).members == 4);
  CHECK(cost(r, "all-reduce", "all chips", 1024).members == 16);
  CHECK(r.placement == "fsdp on x; tensor on y");
}

TEST_CASE("an axis that a strategy splits is one row: tensor 16 over 8 key and value heads is 8 x 2") {
  scenario::Scenario s = quickstart();
  s.mesh = {{"tensor", 16}};
  s.model.kv_heads = 8;
  const session::TopologyReport r = session::topology(s, {});
  DiagnosticSink sink;
  const std::optional<session::Job> job = session::resolve(s, ".", sink);
  CHECK(session::place_mesh(job->spec, job->cluster.fabric).mesh.axes.size() == 2);
  CHECK(r.costs.size() == 9);
  CHECK(cost(r, "all-gather", "tensor", 1024).members == 16);
}

TEST_CASE("the mesh lies on the machine as in the plan of a run") {
  for (const std::string& file : shipped()) {
    CAPTURE(file);
    DiagnosticSink sink;
    const std::optional<session::Job> job = session::resolve(scenario_of(file), ".", sink);
    if (job->spec.model.family == models::Family::fixed) continue;  // has no collectives
    const session::Planned planned = session::make_plan(job->spec, job->cluster.fabric);
    const session::Placed placed = session::place_mesh(job->spec, job->cluster.fabric);
    CHECK(placed.mesh == planned.program.mesh);
    CHECK(placed.placement == planned.placement);
    CHECK(placed.description == planned.placement_text);
  }
}

TEST_CASE("one chip has no links and no collectives") {
  const session::TopologyReport r =
      session::topology(scenario_of(std::string(TPUSIM_SOURCE_DIR) + "/scenarios/gpt2-one-chip.json"), {});
  CHECK(r.whole->links == 0);
  CHECK(r.costs.empty());
  const std::string text = session::to_text(r);
  CHECK(text.find("none: one chip\n") != std::string::npos);
  CHECK(text.find("one chip sends nothing\n") != std::string::npos);
}

TEST_CASE("a mesh that cannot be used leaves the network, and says why there are no costs") {
  scenario::Scenario s = quickstart();
  s.mesh = {{"fsdp", 8}, {"tensor", 2}};
  s.model.heads = 7;
  s.model.kv_heads = 7;
  const session::TopologyReport r = session::topology(s, {});
  CHECK_FALSE(r.verdict);
  CHECK(r.whole->links == 24);
  CHECK(r.costs.empty());
  CHECK(session::to_text(r).find("since the mesh cannot be used: " + r.verdict.reason) != std::string::npos);
}

TEST_CASE("where PCIe carries less than a chip's share of its card, as for one v5e chip a host, a note says so") {
  scenario::Scenario s = quickstart();
  s.cluster.topology = {1, 1};
  s.cluster.slices = 16;
  const session::TopologyReport r = session::topology(s, {});
  CHECK(r.notes ==
        std::vector<std::string>{"the plan, and the costs below, give each chip 25 GB/s of its card; PCIe carries no "
                                 "more than 15 GB/s"});
  // The graph knows: 8 chips send 15 GB/s each.
  CHECK(r.whole->bisection_lower == BytesPerSecond(8 * 15e9));
  CHECK(session::topology(quickstart(), {}).notes.empty());
}

TEST_CASE("a host that is too large to be built as a graph is refused by name, its costs are not") {
  scenario::Scenario s = scenario_of(std::string(TPUSIM_SOURCE_DIR) + "/scenarios/input-bound.json");
  const std::int64_t chips = topologies::max_part_chips + 1;
  s.cluster.chips_per_host = chips;
  s.mesh.clear();
  const session::TopologyReport r = session::topology(s, {});
  CHECK_FALSE(r.whole.has_value());
  CHECK(r.refusal.find(std::to_string(chips)) != std::string::npos);
  CHECK(session::to_text(r).find("not measured") != std::string::npos);
  CHECK(r.costs.size() == 9);
}

TEST_CASE("no line of the text is wider than 100 columns") {
  for (const std::string& file : shipped()) {
    CAPTURE(file);
    const std::string text = session::to_text(session::topology(scenario_of(file), {}));
    for (std::size_t at = 0, end = text.find('\n'); end != std::string::npos; at = end + 1, end = text.find('\n', at))
      CHECK(end - at <= 100);
    CHECK(text.back() == '\n');
  }
}
