// Numbers of whole clusters by arithmetic, against the measured graph of the whole and against numbers by hand.
#include "topologies/cluster_metrics.hpp"

#include <doctest/doctest.h>

#include "topologies/catalogue.hpp"
#include "topologies/routes.hpp"
#include "topologies/shapes/cards.hpp"
#include "topologies/shapes/hosts.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

namespace {

Cluster slices_of(const char* chip, const char* shape, std::int64_t slices) {
  ClusterRequest request;
  request.chip = *find_chip(chip);
  request.slice_shape = *parse_shape(shape);
  request.slices = slices;
  DiagnosticSink sink;
  return *build(request, sink);
}

Cluster hosts_of(const char* chip, std::int64_t count, std::optional<std::int64_t> per_host = {}) {
  ClusterRequest request;
  request.chip = *find_chip(chip);
  request.hosts = count;
  request.chips_per_host = per_host;
  DiagnosticSink sink;
  return *build(request, sink);
}

std::vector<Cluster> small_clusters() {
  return {slices_of("tpu-v5e", "4x4", 1),
          slices_of("tpu-v5e", "4x4", 2),
          slices_of("tpu-v5e", "2x4", 3),
          slices_of("tpu-v5p", "2x2x2", 4),
          slices_of("tpu-v4", "4x4x4", 2),
          slices_of("tpu-v5e", "1x1", 4),
          slices_of("tpu-v5e", "3x3", 2),
          hosts_of("h100", 1),
          hosts_of("h100", 4),
          hosts_of("a100-80gb", 3),
          hosts_of("h100", 5, 1),
          hosts_of("v100", 2, 3),
          hosts_of("h100", 2, 2)};
}

}  // namespace

TEST_CASE("the arithmetic of equal parts gives the numbers of the measured graph of the whole") {
  for (const Cluster& cluster : small_clusters()) {
    const ClusterMetrics found = measure(cluster);
    const Metrics graph = measure(topology_of(cluster));
    CAPTURE(topology_of(cluster).name);
    CHECK(found.whole.chips == graph.chips);
    CHECK(found.whole.hosts == graph.hosts);
    CHECK(found.whole.switches == graph.switches);
    CHECK(found.whole.cards == graph.cards);
    CHECK(found.whole.links == graph.links);
    CHECK(found.whole.min_degree == graph.min_degree);
    CHECK(found.whole.max_degree == graph.max_degree);
    CHECK(found.whole.injection == graph.injection);
    CHECK(found.whole.distances.diameter == graph.distances.diameter);
    // Both sum whole numbers up to 1e5 and divide: a few roundings.
    CHECK(found.whole.distances.mean_hops == doctest::Approx(graph.distances.mean_hops).epsilon(1e-12));
    std::int64_t cables = 0;
    for (const LinkCount& count : found.links) cables += count.cables;
    CHECK(cables == graph.links);
  }
}

TEST_CASE("no halves of the measured graph are joined by less than the lower bound, nor all by more than the upper") {
  for (const Cluster& cluster : small_clusters()) {
    const ClusterMetrics found = measure(cluster);
    Topology graph = topology_of(cluster);
    graph.bisection.reset();  // searched for, not known
    const Bisection searched = bisection(graph, default_budget);
    CAPTURE(graph.name);
    CHECK(found.whole.bisection.lower.value() <= searched.upper.value() * (1 + 1e-9));
    CHECK(found.whole.bisection.upper.value() >= searched.lower.value() * (1 - 1e-9));
    // The search meets what is called exact.
    if (found.whole.bisection.exact())
      CHECK(found.whole.bisection.upper.value() == doctest::Approx(searched.upper.value()).epsilon(1e-9));
  }
}

TEST_CASE("sixteen v5e chips in a 4x4 mesh have 24 links, diameter 6, mean 8/3 and 4 links across") {
  // A v5e axis wraps only at 16, so 4x4 is open: 3 links in each of 4 rows and 4 columns, 24 in all. Corner to corner
  // 3 + 3 = 6. A line of 4 has the ordered distances 2 (3 x 1 + 2 x 2 + 1 x 3) = 20 over 16 pairs, 1.25; two axes 2.5
  // over all 256 pairs of chips, 2.5 x 256 / 240 = 8/3 over those of different chips. Halves 2x4 meet in 4 links.
  const ClusterMetrics m = measure(slices_of("tpu-v5e", "4x4", 1));
  const double rate = find_chip("tpu-v5e")->link_rate.value.value() * find_chip("tpu-v5e")->link_efficiency.value;
  CHECK(m.whole.chips == 16);
  CHECK(m.whole.links == 24);
  CHECK(m.whole.min_degree == 2);
  CHECK(m.whole.max_degree == 4);
  CHECK(m.whole.distances.diameter == 6);
  CHECK(m.whole.distances.mean_hops == doctest::Approx(8.0 / 3).epsilon(1e-12));
  CHECK(m.whole.bisection.exact());
  CHECK(m.whole.bisection.links == 4);
  CHECK(m.whole.bisection.upper.value() == doctest::Approx(4 * rate).epsilon(1e-12));
  REQUIRE(m.links.size() == 1);
  CHECK(m.links[0].cables == 24);
  // A corner has two links, each in one ring at most: one ring, and an even mesh has it.
  CHECK(m.whole.rings.at_most == 1);
  CHECK(m.whole.rings.rings.size() == 1);
}

TEST_CASE("two PaLM pods: 6,144 chips, 18,432 ICI links, diameter 22, and the cards of one pod across") {
  const Cluster cluster = slices_of("tpu-v4", "12x16x16", 2);
  const ClusterMetrics m = measure(cluster, 100'000'000);
  CHECK(m.whole.chips == 6144);
  // Three rings through every chip: 3 links a chip. 3072 / 4 = 768 cards a pod.
  CHECK(m.links[0].cables == 3 * 6144);
  CHECK(m.whole.links == 3 * 6144 + 6144 + 2 * 768);
  CHECK(m.whole.distances.diameter == 6 + 8 + 8);
  // From one chip: rings of 12 and 16 sum to 36 and 64, over the other axes 36 x 256 + 2 x 64 x 192 = 33,792 in its
  // pod; and 3072 x 4 to the other. Over 6143 chips.
  CHECK(m.whole.distances.mean_hops == doctest::Approx((33792.0 + 3072 * 4) / 6143).epsilon(1e-12));
  CHECK(m.whole.bisection.exact());
  const Chip& chip = cluster.chip;
  CHECK(m.whole.bisection.upper.value() ==
        doctest::Approx(768 * chip.host_nic_rate->value.value() * chip.nic_efficiency.value).epsilon(1e-12));
}

TEST_CASE("a ring over all slices holds every chip once and stays in a slice until it is through") {
  const ClusterMetrics m = measure(slices_of("tpu-v5e", "4x4", 3));
  REQUIRE(m.whole.rings.rings.size() == 1);
  const std::vector<std::int32_t>& ring = m.whole.rings.rings[0];
  REQUIRE(ring.size() == 48);
  std::vector<bool> met(48, false);
  for (std::size_t i = 0; i < 48; ++i) {
    CHECK(ring[i] / 16 == static_cast<std::int32_t>(i / 16));
    CHECK_FALSE(met[static_cast<std::size_t>(ring[i])]);
    met[static_cast<std::size_t>(ring[i])] = true;
  }
  const Topology slice = part_of(slices_of("tpu-v5e", "4x4", 3));
  CHECK(are_edge_disjoint_rings(slice, {std::vector<std::int32_t>(ring.begin(), ring.begin() + 16)}));
}

TEST_CASE("chips of a host meet on its switch, chips of two hosts over both their cards") {
  const Topology t = hosts(hosts_of("h100", 2));
  const Routes routes(t);
  CHECK(routes.between(0, 7).links.size() == 2);
  CHECK(routes.between(0, 8).links.size() == 4);
  CHECK(routes.between(3, 3).links.empty());
  // A host of one chip has no switch, a single host no cards.
  CHECK(hosts(hosts_of("h100", 1, 1)).links.empty());
  CHECK(hosts(hosts_of("h100", 3, 1)).links.size() == 2 * (3 + 3));
  CHECK(hosts(hosts_of("h100", 1)).links.size() == 2 * 8);
}

TEST_CASE("the closed form of the bisection is not given where it does not hold") {
  const Chip v5e = *find_chip("tpu-v5e");
  const CardLinks links = card_links(v5e, fabric::Level::slice, 9);
  CHECK(bisection_over_cards(v5e, links, 2, 16, 4).has_value());
  CHECK_FALSE(bisection_over_cards(v5e, links, 3, 16, 4).has_value());  // one slice has to be cut
  CHECK_FALSE(bisection_over_cards(v5e, links, 2, 9, 4).has_value());   // a host with one chip has the card alone
  CardLinks slow = links;
  slow.pcie.bandwidth = BytesPerSecond(1);
  CHECK_FALSE(bisection_over_cards(v5e, slow, 2, 16, 4).has_value());  // PCIe limits, not the card
}

TEST_CASE(
    "three slices of v5e 2x4 are parted with at most one card, one slice's two middle links and four chips' PCIe") {
  // A slice is one host, its card 25 GB/s, a chip's share 1/8. Halves of 12 chips: one slice each and 2x2 of the third.
  // The whole slice sends over its card; 2 links join the 2x2 halves; 4 chips can use their card too, 15 GB/s of PCIe
  // each. In any case 12 chips can send their shares.
  const Cluster cluster = slices_of("tpu-v5e", "2x4", 3);
  const Chip& chip = cluster.chip;
  const double link = chip.link_rate.value.value() * chip.link_efficiency.value;
  const double card = chip.host_nic_rate->value.value() * chip.nic_efficiency.value;
  REQUIRE(cluster.chips_per_host == 8);
  REQUIRE(chip.pcie_rate.value.value() < card);
  const Bisection b = measure(cluster).whole.bisection;
  CHECK(b.upper.value() == doctest::Approx(card + 2 * link + 4 * chip.pcie_rate.value.value()).epsilon(1e-12));
  CHECK(b.lower.value() == doctest::Approx(12 * card / 8).epsilon(1e-12));
}

TEST_CASE("two slices whose last host is not full are parted with at most one slice's cards") {
  // 3x3 chips on hosts of 8: two cards a slice. 9 chips can send an eighth of a card each in any case.
  const Cluster cluster = slices_of("tpu-v5e", "3x3", 2);
  const Bisection b = measure(cluster).whole.bisection;
  const double card = cluster.chip.host_nic_rate->value.value() * cluster.chip.nic_efficiency.value;
  CHECK(b.upper.value() == doctest::Approx(2 * card).epsilon(1e-12));
  CHECK(b.lower.value() == doctest::Approx(9 * card / 8).epsilon(1e-12));
}

TEST_CASE("a part that is too large to build is refused by name") {
  Cluster huge = hosts_of("h100", 2);
  huge.chips_per_host = max_part_chips + 1;
  huge.fabric.axes[1].size = max_part_chips + 1;
  CHECK_THROWS_AS(measure(huge), CapacityError);
}
