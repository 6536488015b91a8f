#include "sim/session/topology.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/quantity_text.hpp"
#include "sim/session/job.hpp"
#include "topologies/cluster_metrics.hpp"

namespace tpusim::session {

namespace {

// Chips times links that a measurement may visit: about a second.
constexpr std::int64_t kBudget = 100'000'000;

Network network_of(const topologies::Metrics& m) {
  Network n;
  n.chips = m.chips;
  n.links = m.links;
  n.switches = m.switches;
  n.cards = m.cards;
  n.min_degree = m.min_degree;
  n.max_degree = m.max_degree;
  n.diameter = m.distances.diameter;
  n.mean_hops = m.distances.mean_hops;
  n.distances_exact = m.distances.exact;
  n.distances_how = m.distances.how;
  n.bisection_lower = m.bisection.lower;
  n.bisection_upper = m.bisection.upper;
  n.bisection_lower_how = m.bisection.lower_how;
  n.bisection_upper_how = m.bisection.upper_how;
  n.bisection_links = m.bisection.links;
  n.rings = static_cast<std::int64_t>(m.rings.rings.size());
  n.rings_at_most = m.rings.at_most;
  n.rings_how = m.rings.how;
  return n;
}

const char* ends_of(topologies::LinkKind kind, const topologies::Cluster& cluster) {
  const bool shared = cluster.chip.host_nic_rate.has_value();
  switch (kind) {
    case topologies::LinkKind::nvlink:
      return "a chip and its host's switch";
    case topologies::LinkKind::pcie:
      return shared ? "a chip and its host's network card" : "a chip and its network card";
    case topologies::LinkKind::nic:
      return "a network card and the network between hosts";
    case topologies::LinkKind::dcn:
      return "a network card and the network between slices";
    case topologies::LinkKind::ici:
    case topologies::LinkKind::infinity_fabric:
    case topologies::LinkKind::socket:
    case topologies::LinkKind::network:
    case topologies::LinkKind::custom:
      break;
  }
  return "a chip and its neighbour";
}

std::string form_of(const fabric::PhysicalAxis& axis) {
  const std::string size = format_count(axis.size);
  if (axis.size == 1) return "1 chip";
  if (axis.link == fabric::Link::ring) return fmt::format("ring of {} chips", size);
  if (axis.link == fabric::Link::line) return fmt::format("line of {} chips", size);
  return fmt::format("{} {}s on a {} that does not block", size, axis.name,
                     axis.level == fabric::Level::chip ? "switch" : "network");
}

void fill_network(const topologies::Cluster& cluster, TopologyReport& report) {
  try {
    const topologies::ClusterMetrics found = topologies::measure(cluster, kBudget);
    report.whole = network_of(found.whole);
    if (found.parts > 1) report.one_part = network_of(found.part);
    for (const topologies::LinkCount& count : found.links)
      report.links.push_back({std::string(topologies::kind_name(count.cls.kind)), ends_of(count.cls.kind, cluster),
                              count.cables, count.cls.bandwidth, count.cls.latency});
  } catch (const CapacityError& e) {
    report.refusal = e.what();
  }
}

// The Fabric gives a chip its share of the card whatever PCIe carries.
void note_pcie(const topologies::Cluster& cluster, TopologyReport& report) {
  const fabric::PhysicalAxis& outer = cluster.fabric.axes.front();
  const BytesPerSecond pcie = cluster.chip.pcie_rate.value;
  if (report.parts == 1 || !(pcie < outer.beta)) return;
  report.notes.push_back(
      fmt::format("the plan, and the costs below, give each chip {} of its card; PCIe carries no more than {}",
                  format_rate(outer.beta), format_rate(pcie)));
}

// The mesh axes that go by one name in the scenario, and all of them where there are several.
std::vector<std::pair<std::string, ir::MeshAxes>> groups_of(const spmd::Mesh& mesh) {
  std::vector<std::pair<std::string, ir::MeshAxes>> groups;
  ir::MeshAxes all;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    const spmd::MeshAxis& axis = mesh.axes[i];
    const auto index = static_cast<std::uint8_t>(i);
    if (axis.size == 1) continue;
    all.push_back(index);
    const std::string& name = axis.parent.empty() ? axis.name : axis.parent;
    if (groups.empty() || groups.back().first != name) groups.push_back({name, {}});
    groups.back().second.push_back(index);
  }
  if (groups.size() > 1) groups.push_back({"all chips", all});
  return groups;
}

void add_costs(const std::string& over, const std::vector<plan::GroupAxis>& axes, Seconds start,
               TopologyReport& report) {
  constexpr std::int64_t kSizes[] = {std::int64_t{1} << 10, std::int64_t{1} << 20, std::int64_t{1} << 30};
  for (const plan::CollectiveKind kind :
       {plan::CollectiveKind::all_gather, plan::CollectiveKind::reduce_scatter, plan::CollectiveKind::all_reduce})
    for (const std::int64_t bytes : kSizes) {
      const plan::Candidate best =
          plan::candidates(kind, ir::Reduction::sum, bytes / report.element_bytes, report.element_bytes, axes).front();
      CollectiveCost cost;
      cost.collective = plan::name_of(kind);
      cost.over = over;
      cost.members = best.plan.members;
      cost.size = Bytes(static_cast<double>(bytes));
      cost.algorithm = best.plan.algorithm;
      cost.start = start;
      cost.alpha = best.alpha_term;
      cost.beta = best.beta_term;
      report.costs.push_back(std::move(cost));
    }
}

void fill_costs(const Job& job, TopologyReport& report) {
  const fabric::Fabric& fabric = job.cluster.fabric;
  const Placed placed = place_mesh(job.spec, fabric);
  report.verdict = placed.verdict;
  report.element_bytes = ir::bytes_of(job.spec.compute_dtype);
  if (!report.verdict) return;
  report.placement = placed.description;
  for (const auto& [name, axes] : groups_of(placed.mesh))
    add_costs(name, plan::group_axes(axes, placed.placement, fabric), fabric.collective_overhead, report);
}

}  // namespace

BytesPerSecond CollectiveCost::bus() const {
  const auto n = static_cast<double>(members);
  return size * ((collective == "all-reduce" ? 2 : 1) * (n - 1) / n) / total();
}

TopologyReport topology(const scenario::Scenario& scenario, const Options& options) {
  DiagnosticSink sink;
  const std::optional<Job> job = resolve(scenario, options.folder, sink);
  scenario::locate(sink.all(), scenario.source);
  sink.throw_if_errors();
  TopologyReport report;
  report.warnings = sink.all();
  const topologies::Cluster& cluster = job->cluster;
  const bool slices = cluster.kind == topologies::ClusterKind::slices;
  report.part = slices ? "slice" : "host";
  report.parts = slices ? cluster.slices : cluster.hosts;
  report.cluster = slices ? fmt::format("{} slice{} of {} {}", cluster.slices, cluster.slices == 1 ? "" : "s",
                                        cluster.chip.name, topologies::shape_text(cluster.slice_shape))
                          : fmt::format("{} host{} of {} {}", cluster.hosts, cluster.hosts == 1 ? "" : "s",
                                        cluster.chips_per_host, cluster.chip.name);
  for (const fabric::PhysicalAxis& axis : cluster.fabric.axes) report.axes.push_back({axis.name, form_of(axis)});
  fill_network(cluster, report);
  note_pcie(cluster, report);
  fill_costs(*job, report);
  return report;
}

}  // namespace tpusim::session
