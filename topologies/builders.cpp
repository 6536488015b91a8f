#include "topologies/builders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/base/checked.hpp"
#include "topologies/libraries/library.hpp"

namespace tpusim::topologies {

namespace {

using fabric::Level;
using fabric::Link;
using fabric::PhysicalAxis;

Shape sorted(Shape shape) {
  std::sort(shape.begin(), shape.end());
  return shape;
}

// Chips of a shape, or max_cluster_chips + 1 when there are more.
std::int64_t count_chips(const Shape& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) {
    if (d > max_cluster_chips / n) return max_cluster_chips + 1;
    n *= d;
  }
  return n;
}

bool fits_pod(const SliceRules& rules, const Shape& shape) {
  const Shape small = sorted(shape), large = sorted(rules.pod);
  for (std::size_t i = 0; i < small.size(); ++i)
    if (small[i] > large[i]) return false;
  return count_chips(shape) <= rules.max_chips;
}

// Up to twelve listed shapes, nearest in number of chips first; of equal distance the smaller first.
std::vector<std::string> nearest_shapes(const SliceRules& rules, const Shape& wanted) {
  const std::int64_t chips = count_chips(wanted);
  std::vector<Shape> shapes = rules.listed;
  std::stable_sort(shapes.begin(), shapes.end(), [&](const Shape& a, const Shape& b) {
    return std::abs(count_chips(a) - chips) < std::abs(count_chips(b) - chips);
  });
  std::vector<std::string> names;
  for (const Shape& shape : shapes) {
    if (names.size() == 12) break;
    names.push_back(shape_text(shape));
  }
  return names;
}

PhysicalAxis axis(std::string name, std::int64_t size, Level level, Link link, Seconds alpha, BytesPerSecond beta) {
  return {std::move(name), size, level, link, alpha, beta};
}

// Drops axes of size 1 but keeps one for a single chip.
void drop_trivial_axes(std::vector<PhysicalAxis>& axes) {
  std::vector<PhysicalAxis> kept;
  for (const PhysicalAxis& a : axes)
    if (a.size > 1) kept.push_back(a);
  if (kept.empty() && !axes.empty()) kept.push_back(axes.back());
  axes = std::move(kept);
}

bool in_bounds(std::int64_t value, const std::string& pointer, const char* what, DiagnosticSink& sink) {
  if (value < 1) {
    sink.error(Code::bad_value, pointer,
               std::string("expected a number of ") + what + " of at least 1, found " + std::to_string(value));
    return false;
  }
  if (value > max_cluster_chips) {
    sink.error(Code::too_large, pointer,
               std::string("at most ") + std::to_string(max_cluster_chips) + " " + what + " can be simulated, found " +
                   std::to_string(value));
    return false;
  }
  return true;
}

// Faults of the slice's shape; false when no slice can be built.
bool check_shape(const ClusterRequest& request, bool& listed, DiagnosticSink& sink) {
  const SliceRules& rules = request.chip.slices;
  const Shape& shape = request.slice_shape;
  const std::string at = request.pointer + "/topology";
  const std::vector<std::string> choices = nearest_shapes(rules, shape);
  const std::string suggestion = choices.empty() ? "" : choices.front();
  if (shape.empty()) {
    sink.error(Code::missing_key, at, "a cluster of " + request.chip.name + " needs a topology", suggestion, choices);
    return false;
  }
  for (std::int64_t d : shape)
    if (d < 1) {
      sink.error(Code::bad_value, at, "expected positive sizes, found " + shape_text(shape), suggestion, choices);
      return false;
    }
  if (static_cast<int>(shape.size()) != rules.dimensions) {
    sink.error(Code::bad_value, at,
               "a slice of " + request.chip.name + " has " + std::to_string(rules.dimensions) + " dimensions, found " +
                   std::to_string(shape.size()) + " in " + shape_text(shape),
               suggestion, choices);
    return false;
  }
  if (!fits_pod(rules, shape)) {
    sink.error(Code::too_large, at,
               shape_text(shape) + " does not fit in a pod of " + request.chip.name + " (" + shape_text(rules.pod) +
                   ", one slice at most " + std::to_string(rules.max_chips) + " chips)",
               suggestion, choices);
    return false;
  }
  listed = rules.listed.empty() || std::any_of(rules.listed.begin(), rules.listed.end(),
                                               [&](const Shape& s) { return sorted(s) == sorted(shape); });
  if (!listed) {
    Diagnostic d;
    d.code = Code::unlisted;
    d.severity = Severity::warning;
    d.pointer = at;
    d.message = shape_text(shape) + " is not among the listed slice shapes of " + request.chip.name +
                "; it is simulated as asked";
    d.suggestion = suggestion;
    d.choices = choices;
    sink.add(std::move(d));
  }
  return true;
}

// A chip has a link to each neighbour, two on an axis of more than two chips, and something goes over them.
bool check_links(const ClusterRequest& request, DiagnosticSink& sink) {
  const Chip& chip = request.chip;
  std::int64_t needed = 0;
  for (std::int64_t d : request.slice_shape) needed += std::min<std::int64_t>(d - 1, 2);
  if (needed == 0) return true;
  if (!(chip.link_rate.value.value() > 0)) {
    sink.error(Code::bad_value, request.pointer + "/chip/link_rate",
               "links that carry nothing cannot join the chips of a slice of " + shape_text(request.slice_shape) +
                   "; expected more than 0 B/s, found 0");
    return false;
  }
  if (chip.link_count.value >= static_cast<double>(needed)) return true;
  sink.error(Code::bad_value, request.pointer + "/chip/link_count",
             fmt::format("a chip in a slice of {} has links to {} neighbours; expected at least {}, found {}",
                         shape_text(request.slice_shape), needed, needed, chip.link_count.value),
             std::to_string(needed));
  return false;
}

std::optional<Cluster> build_slices(const ClusterRequest& request, DiagnosticSink& sink) {
  const Chip& chip = request.chip;
  if (request.hosts != 0)
    sink.error(Code::conflict, request.pointer + "/hosts",
               "a cluster of " + chip.name + " is described by \"topology\" and \"slices\", not by hosts");
  Cluster cluster;
  const bool slices_fine = in_bounds(request.slices, request.pointer + "/slices", "slices", sink);
  if (!check_shape(request, cluster.listed, sink) || !slices_fine || request.hosts != 0) return std::nullopt;
  if (!check_links(request, sink)) return std::nullopt;
  const std::int64_t slice_chips = count_chips(request.slice_shape);
  const std::int64_t per_host_wanted =
      request.chips_per_host.value_or(static_cast<std::int64_t>(chip.chips_per_host.value));
  if (!in_bounds(per_host_wanted, request.pointer + "/chips_per_host", "chips per host", sink)) return std::nullopt;
  if (slice_chips > max_cluster_chips / request.slices) {
    in_bounds(max_cluster_chips + 1, request.pointer + "/slices", "chips", sink);
    return std::nullopt;
  }
  cluster.chip = chip;
  cluster.kind = ClusterKind::slices;
  cluster.slice_shape = request.slice_shape;
  cluster.slices = request.slices;
  cluster.chips_per_host = std::min(per_host_wanted, slice_chips);
  cluster.hosts = checked_mul(request.slices, ceil_div(slice_chips, cluster.chips_per_host), "the number of hosts");

  fabric::Fabric& f = cluster.fabric;
  const BytesPerSecond nic = chip.chip_nic_rate
                                 ? chip.chip_nic_rate->value
                                 : chip.host_nic_rate->value / static_cast<double>(cluster.chips_per_host);
  f.axes.push_back(axis("slice", request.slices, Level::slice, Link::switched, chip.nic_latency.value,
                        nic * chip.nic_efficiency.value));
  const std::vector<bool> wrapped = wrapped_axes(chip.slices, request.slice_shape);
  for (std::size_t i = 0; i < request.slice_shape.size(); ++i)
    f.axes.push_back(axis(std::string(1, static_cast<char>('x' + i)), request.slice_shape[i], Level::chip,
                          wrapped[i] ? Link::ring : Link::line, chip.link_latency.value,
                          chip.link_rate.value * chip.link_efficiency.value));
  drop_trivial_axes(f.axes);
  f.chips_per_host = cluster.chips_per_host;
  f.collective_overhead = chip.collective_overhead.value;
  return cluster;
}

std::optional<Cluster> build_hosts(const ClusterRequest& request, DiagnosticSink& sink) {
  const Chip& chip = request.chip;
  const std::int64_t per_host = request.chips_per_host.value_or(static_cast<std::int64_t>(chip.chips_per_host.value));
  bool fine = true;
  if (!request.slice_shape.empty()) {
    sink.error(Code::conflict, request.pointer + "/topology",
               chip.name + " has no torus: a cluster of it is described by \"hosts\" and \"chips_per_host\"");
    fine = false;
  }
  if (request.slices != 1) {
    sink.error(Code::conflict, request.pointer + "/slices", "only TPU clusters have slices; use \"hosts\"");
    fine = false;
  }
  fine = in_bounds(request.hosts, request.pointer + "/hosts", "hosts", sink) && fine;
  fine = in_bounds(per_host, request.pointer + "/chips_per_host", "chips per host", sink) && fine;
  if (!fine) return std::nullopt;
  if (per_host > max_cluster_chips / request.hosts) {
    in_bounds(max_cluster_chips + 1, request.pointer + "/hosts", "chips", sink);
    return std::nullopt;
  }
  if (per_host > 1 && !(chip.link_rate.value.value() > 0)) {
    sink.error(Code::conflict, request.pointer + "/chips_per_host",
               chip.name + " has no link inside a host; expected chips_per_host 1, found " + std::to_string(per_host));
    return std::nullopt;
  }
  Cluster cluster;
  cluster.chip = chip;
  cluster.kind = ClusterKind::hosts;
  cluster.slice_shape = {per_host};
  cluster.hosts = request.hosts;
  cluster.chips_per_host = per_host;
  cluster.listed = per_host <= static_cast<std::int64_t>(chip.chips_per_host.value);
  if (!cluster.listed)
    sink.warning(Code::unlisted, request.pointer + "/chips_per_host",
                 std::to_string(per_host) + " chips on one switch is more than the " +
                     std::to_string(static_cast<std::int64_t>(chip.chips_per_host.value)) + " of a " + chip.name +
                     " host; it is simulated as asked");
  const BytesPerSecond nic =
      chip.chip_nic_rate ? chip.chip_nic_rate->value : chip.host_nic_rate->value / static_cast<double>(per_host);
  fabric::Fabric& f = cluster.fabric;
  f.axes.push_back(axis("host", request.hosts, Level::host, Link::switched, chip.nic_latency.value,
                        nic * chip.nic_efficiency.value));
  f.axes.push_back(axis("chip", per_host, Level::chip, Link::switched, chip.link_latency.value,
                        chip.link_rate.value * chip.link_efficiency.value));
  for (fabric::PhysicalAxis& a : f.axes) a.offers = offers_of(chip, a.level, a.beta);
  drop_trivial_axes(f.axes);
  f.chips_per_host = per_host;
  f.collective_overhead = chip.collective_overhead.value;
  return cluster;
}

}  // namespace

std::vector<bool> wrapped_axes(const SliceRules& rules, const Shape& shape) {
  const bool cubes = std::all_of(shape.begin(), shape.end(), [](std::int64_t d) { return d % 4 == 0; });
  std::vector<bool> wrapped;
  for (std::int64_t d : shape) {
    bool ring = false;
    switch (rules.wrap) {
      case WrapRule::none:
        break;
      case WrapRule::multiples_of_four:
        ring = cubes;
        break;
      case WrapRule::axis_of_wrap_length:
        ring = d == rules.wrap_length;
        break;
      case WrapRule::every_axis:
        ring = true;
        break;
    }
    wrapped.push_back(ring && d > 1);
  }
  return wrapped;
}

std::optional<Cluster> build(const ClusterRequest& request, DiagnosticSink& sink) {
  if (request.chip.slices.dimensions > 0) return build_slices(request, sink);
  return build_hosts(request, sink);
}

void register_builtin(Registry<TopologyKind>& registry) {
  registry.add("slice-2d", "a TPU v2, v3, v5e or v6e slice: a grid whose axis is a ring when it is as long as the pod",
               {R"({"chip": "tpu-v5e", "topology": "8x16"})", "x, y: rings or lines of neighbour links"});
  registry.add("slice-3d", "a TPU v4, v5p or TPU7x slice: rings on all axes when every size is a multiple of 4",
               {R"({"chip": "tpu-v5p", "topology": "4x4x8"})", "x, y, z: rings or lines of neighbour links"});
  registry.add("slices", "several equal TPU slices joined by the data-centre network",
               {R"({"chip": "tpu-v5p", "topology": "8x8x8", "slices": 2})",
                "slice: switched, each chip's share of its host's card; then the axes of the slice"});
  registry.add("hosts", "GPU or CPU hosts: a switch inside (NVSwitch), network cards between",
               {R"({"chip": "h100", "hosts": 16, "chips_per_host": 8})",
                "host: switched, the chip's card; chip: switched, the chip's port"});
}

}  // namespace tpusim::topologies
