#include "topologies/builders.hpp"

#include <doctest/doctest.h>

#include "topologies/catalogue.hpp"
#include "topologies/libraries/library.hpp"

using namespace tpusim;
using namespace tpusim::topologies;
using fabric::Level;
using fabric::Link;
using fabric::PhysicalAxis;

namespace {

ClusterRequest slice(const char* chip, const char* shape, std::int64_t slices = 1) {
  ClusterRequest r;
  r.chip = *find_chip(chip);
  r.slice_shape = *parse_shape(shape);
  r.slices = slices;
  return r;
}

ClusterRequest hosts(const char* chip, std::int64_t n, std::optional<std::int64_t> per_host = {}) {
  ClusterRequest r;
  r.chip = *find_chip(chip);
  r.hosts = n;
  r.chips_per_host = per_host;
  return r;
}

Cluster built(const ClusterRequest& request) {
  DiagnosticSink sink;
  const std::optional<Cluster> cluster = build(request, sink);
  for (const Diagnostic& d : sink.all()) MESSAGE(format(d));
  REQUIRE(sink.all().empty());
  REQUIRE(cluster.has_value());
  return *cluster;
}

std::vector<Diagnostic> refused(const ClusterRequest& request) {
  DiagnosticSink sink;
  CHECK(build(request, sink) == std::nullopt);
  CHECK(sink.has_errors());
  return sink.all();
}

std::string links(const char* chip, const char* shape) {
  std::string text;
  for (bool ring : wrapped_axes(find_chip(chip)->slices, *parse_shape(shape))) text += ring ? 'r' : '-';
  return text;
}

}  // namespace

TEST_CASE("v4, v5p and TPU7x wrap every axis when all sizes are multiples of four, else none") {
  for (const char* chip : {"tpu-v4", "tpu-v5p", "tpu7x"}) {
    CHECK(links(chip, "4x4x4") == "rrr");
    CHECK(links(chip, "4x8x16") == "rrr");
    CHECK(links(chip, "2x4x4") == "---");
    CHECK(links(chip, "2x2x1") == "---");
    CHECK(links(chip, "4x4x6") == "---");
  }
}

TEST_CASE("v5e and v6e wrap only an axis of 16") {
  for (const char* chip : {"tpu-v5e", "tpu-v6e"}) {
    CHECK(links(chip, "16x16") == "rr");
    CHECK(links(chip, "8x16") == "-r");
    CHECK(links(chip, "8x8") == "--");
  }
}

TEST_CASE("v2 wraps an axis of 16 and v3 one of 32") {
  CHECK(links("tpu-v2", "16x16") == "rr");
  CHECK(links("tpu-v2", "8x16") == "-r");
  CHECK(links("tpu-v3", "16x32") == "-r");
  CHECK(links("tpu-v3", "16x16") == "--");
}

TEST_CASE("a v5p slice has three axes of ICI, minor last, with the chip's rate and hop latency") {
  const Cluster c = built(slice("tpu-v5p", "4x4x8"));
  const Seconds hop(1e-6);
  const BytesPerSecond rate(90e9);
  fabric::Fabric expected;
  expected.axes = {PhysicalAxis{"x", 4, Level::chip, Link::ring, hop, rate},
                   PhysicalAxis{"y", 4, Level::chip, Link::ring, hop, rate},
                   PhysicalAxis{"z", 8, Level::chip, Link::ring, hop, rate}};
  expected.chips_per_host = 4;
  expected.collective_overhead = Seconds(5e-6);
  CHECK(c.fabric == expected);
  CHECK(c.chips() == 128);
  CHECK(c.hosts == 32);
  CHECK(c.kind == ClusterKind::slices);
}

TEST_CASE("several slices add an outer axis through the hosts' cards: 25 GB/s over 4 chips") {
  const Cluster c = built(slice("tpu-v4", "4x4x4", 2));
  REQUIRE(c.fabric.axes.size() == 4);
  CHECK(c.fabric.axes[0] ==
        PhysicalAxis{"slice", 2, Level::slice, Link::switched, Seconds(15e-6), BytesPerSecond(6.25e9)});
  CHECK(c.chips() == 128);
  CHECK(c.hosts == 32);
}

TEST_CASE("PaLM's machine, two slices of 3072 v4 chips, is built with a warning for its unlisted shape") {
  DiagnosticSink sink;
  const std::optional<Cluster> c = build(slice("tpu-v4", "12x16x16", 2), sink);
  REQUIRE(c.has_value());
  CHECK(c->chips() == 6144);
  CHECK_FALSE(c->listed);
  REQUIRE(sink.all().size() == 1);
  CHECK(sink.all()[0].code == Code::unlisted);
  CHECK(sink.all()[0].severity == Severity::warning);
  CHECK(sink.all()[0].pointer == "/cluster/topology");
}

TEST_CASE("a listed shape in another order of its axes is listed") {
  CHECK(built(slice("tpu-v5e", "16x8")).listed);
  CHECK(built(slice("tpu-v5p", "8x4x4")).listed);
}

TEST_CASE("axes of size one are left out, and a single chip keeps one") {
  CHECK(built(slice("tpu-v4", "2x2x1")).fabric.axes.size() == 2);
  const Cluster one = built(slice("tpu-v5e", "1x1"));
  REQUIRE(one.fabric.axes.size() == 1);
  CHECK(one.fabric.axes[0].size == 1);
  CHECK(one.chips() == 1);
  CHECK(one.hosts == 1);
  CHECK(one.chips_per_host == 1);
  CHECK(built(hosts("h100", 1, 1)).fabric.axes.size() == 1);
}

TEST_CASE("a GPU cluster is hosts over cards outside and chips on a switch inside") {
  const Cluster c = built(hosts("h200", 16));
  fabric::Fabric expected;
  // 50 GB/s x 0.74 measured on the card; 450 GB/s x 0.8 on NVLink.
  expected.axes = {PhysicalAxis{"host", 16, Level::host, Link::switched, Seconds(10e-6), BytesPerSecond(50e9 * 0.74)},
                   PhysicalAxis{"chip", 8, Level::chip, Link::switched, Seconds(1.2e-6), BytesPerSecond(450e9 * 0.8)}};
  for (PhysicalAxis& axis : expected.axes) axis.offers = offers_of(*find_chip("h200"), axis.level, axis.beta);
  expected.chips_per_host = 8;
  expected.collective_overhead = Seconds(22e-6);
  CHECK(c.fabric == expected);
  CHECK(c.fabric.axes[1].offers.size() == 4);  // rings in three protocols, and the switch
  CHECK(c.chips() == 128);
  CHECK(c.kind == ClusterKind::hosts);
}

TEST_CASE("one GPU host has only its switch, and CPU servers only the network") {
  CHECK(built(hosts("h100", 1)).fabric.axes[0].name == "chip");
  const Cluster cpu = built(hosts("cpu-epyc-9654", 4));
  REQUIRE(cpu.fabric.axes.size() == 1);
  CHECK(cpu.fabric.axes[0].name == "host");
}

TEST_CASE("a slice that does not fit in the pod is refused with the nearest listed shapes") {
  const std::vector<Diagnostic> faults = refused(slice("tpu-v5e", "16x32"));
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].code == Code::too_large);
  CHECK(faults[0].suggestion == "16x16");
  CHECK(faults[0].choices.front() == "16x16");
  CHECK(refused(slice("tpu-v5p", "16x20x28"))[0].code == Code::too_large);  // 8960 > 6144 chips of one job
  CHECK(refused(slice("tpu-v4", "32x4x4"))[0].code == Code::too_large);
}

TEST_CASE("a wrong number of dimensions is refused and names shapes of the right number") {
  const std::vector<Diagnostic> faults = refused(slice("tpu-v5e", "4x4x4"));
  REQUIRE(faults.size() == 1);
  CHECK(faults[0].code == Code::bad_value);
  CHECK(faults[0].choices.front() == "8x8");  // 64 chips, as asked for
  CHECK(refused(slice("tpu-v4", "8x8"))[0].suggestion == "4x4x4");
}

TEST_CASE("requests of the wrong kind are refused at their keys") {
  ClusterRequest gpu_with_topology = hosts("h100", 2);
  gpu_with_topology.slice_shape = {4, 4};
  CHECK(refused(gpu_with_topology)[0].pointer == "/cluster/topology");
  ClusterRequest tpu_with_hosts = slice("tpu-v5e", "4x4");
  tpu_with_hosts.hosts = 2;
  CHECK(refused(tpu_with_hosts)[0].pointer == "/cluster/hosts");
  ClusterRequest no_topology = slice("tpu-v5e", "4x4");
  no_topology.slice_shape.clear();
  CHECK(refused(no_topology)[0].code == Code::missing_key);
  CHECK(refused(hosts("h100", 0))[0].pointer == "/cluster/hosts");
  CHECK(refused(hosts("cpu-epyc-9654", 2, 2))[0].pointer == "/cluster/chips_per_host");
  CHECK(refused(slice("tpu-v5e", "4x4", 0))[0].pointer == "/cluster/slices");
}

TEST_CASE("a slice needs links that carry something, and one to each neighbour") {
  ClusterRequest no_rate = slice("tpu-v5e", "4x4");
  no_rate.chip.link_rate.value = BytesPerSecond(0);
  CHECK(refused(no_rate)[0].pointer == "/cluster/chip/link_rate");
  ClusterRequest few = slice("tpu-v4", "2x4x4");
  few.chip.link_count.value = 4;  // an axis of 2 needs one link, an axis of 4 two: 5
  CHECK(refused(few)[0].pointer == "/cluster/chip/link_count");
  CHECK(refused(few)[0].suggestion == "5");
  few.chip.link_count.value = 5;
  CHECK(built(few).chips() == 32);
  ClusterRequest alone = slice("tpu-v5e", "1x1");  // one chip sends nothing
  alone.chip.link_rate.value = BytesPerSecond(0);
  alone.chip.link_count.value = 0;
  CHECK(built(alone).chips() == 1);
}

TEST_CASE("a million chips is the limit, however the factors are split") {
  CHECK(refused(hosts("h100", 1000000000000))[0].code == Code::too_large);
  CHECK(refused(hosts("h100", 1 << 18))[0].code == Code::too_large);              // x 8 chips
  CHECK(refused(slice("tpu-v5e", "16x16", 1 << 13))[0].code == Code::too_large);  // 256 x 8192 = 2^21
  CHECK(built(hosts("h100", 1 << 17)).chips() == max_cluster_chips);
}

TEST_CASE("more chips on a switch than the host has is a warning") {
  DiagnosticSink sink;
  CHECK(build(hosts("h100", 2, 16), sink).has_value());
  REQUIRE(sink.all().size() == 1);
  CHECK(sink.all()[0].code == Code::unlisted);
}

TEST_CASE("a changed number of the chip changes the fabric") {
  ClusterRequest r = slice("tpu-v5p", "4x4x4");
  DiagnosticSink sink;
  r.chip = apply_overrides(r.chip, {{"link_rate", 180e9}, {"link_latency", 2e-6}}, "", sink);
  const Cluster c = built(r);
  CHECK(c.fabric.axes[0].beta == BytesPerSecond(180e9));
  CHECK(c.fabric.axes[0].alpha == Seconds(2e-6));
}

TEST_CASE("list topologies has one entry per kind of machine") {
  Registry<TopologyKind> kinds;
  register_builtin(kinds);
  CHECK(kinds.names() == std::vector<std::string>{"slice-2d", "slice-3d", "slices", "hosts"});
}
