// The closed forms of collectives in whole played steps. A transfer over one hop takes a + b/W (a hop latency, W one
// direction of one link); V is the gathered bytes, n the members. Sources: R. Thakur, R. Rabenseifner, W. Gropp, IJHPCA
// 2005; the limits of the torus forms: Austin et al., "How to Scale Your Model" (jax-ml/scaling-book), sharding
// chapter.
//
// Each collective is planned and then played by the timing backend, beside a kernel, in a step of its own; its busy
// time is compared. Hop latency, bandwidth, volume and the number of members vary. V divides into whole chunks, parts
// and halves, since the forms have no rounding. Tolerance: 1e-9 relative or 1 ps for every step of the algorithm.
#include <doctest/doctest.h>

#include <cmath>

#include "sim/base/random.hpp"
#include "tests/analytic/plan_support.hpp"
#include "tests/support/step_builder.hpp"

using namespace tpusim;
using namespace tpusim::testing;
using plan::CollectiveKind;
using plan::GroupAxis;
using plan::LineAlgorithm;

namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                     CollectiveKind::all_reduce};

struct Links {
  double a = 0, w = 0;
};
// From none to 100 us, from 100 MB/s to 1 TB/s, both log-uniform.
Links random_links(Random& random) {
  return {random.below(5) == 0 ? 0 : std::pow(10, -8 + 4 * random.uniform()), std::pow(10, 8 + 4 * random.uniform())};
}

GroupAxis axis(int physical, std::int64_t size, fabric::Link link, const Links& links) {
  return {physical, size, 1, link, size, Seconds(links.a), BytesPerSecond(links.w)};
}

// The candidate in one part or one part for each axis, whose rings all run `algorithm`.
plan::CollectivePlan planned(CollectiveKind kind, std::int64_t elements, const std::vector<GroupAxis>& axes,
                             LineAlgorithm algorithm) {
  for (plan::Candidate& c : plan::candidates(kind, ir::Reduction::sum, elements, 4, axes)) {
    bool fits = c.plan.part_elements.size() == axes.size();
    for (const plan::Phase& phase : c.plan.phases)
      for (const plan::Phase::Work& work : phase.works) fits = fits && work.algorithm == algorithm;
    if (fits) return std::move(c.plan);
  }
  FAIL("no such candidate");
  return {};
}

// Seconds that the links are busy in one step of a program that runs the collective once, in the steady state.
double played(const plan::CollectivePlan& collective, const std::vector<GroupAxis>& axes) {
  StepBuilder b({{"data", collective.members}});
  const BufferId x = b.buffer("x", plan::Scope::step, true), y = b.buffer("y", plan::Scope::step, true);
  plan::Collective c;
  c.mesh_axes = {0};
  c.reads.emplace_back(ir::ValueId(), ref(x));
  c.writes.emplace_back(ir::ValueId(), ref(y));
  fabric::Fabric f;
  for (const GroupAxis& a : axes) {
    c.resources.push_back(b.resource("axis " + std::to_string(a.physical)));
    f.axes.push_back({"x", a.size, fabric::Level::chip, a.link, a.alpha, a.beta});
  }
  b.p.plans.push_back(collective);
  b.p.collectives.push_back(c);
  const std::int32_t after = b.kernel("after", Seconds(1e-9), {ref(y)}, {ref(x)});
  const std::int32_t only = b.kind({});
  b.p.schedules[0].segments.push_back({{{0, only, 0}}, 1});
  b.p.sites.push_back({});
  make_templates(b, {{{}, {Ins(InstrKind::collective, 0), Ins(InstrKind::kernel, after)}, {}}});
  const timing::StepTiming t = timing::time_step(b.done(), {}, f, {});
  REQUIRE(t.steady);
  CHECK(t.transfers[0].count == 1);
  // Nothing else is waited for.
  CHECK(t.period.ps() == SimTime::from(t.transfers[0].busy).ps() + 1000);
  return t.transfers[0].busy.value();
}

void check_form(CollectiveKind kind, const plan::CollectivePlan& collective, const std::vector<GroupAxis>& axes,
                double gather) {
  const double expected = kind == CollectiveKind::all_reduce ? 2 * gather : gather;
  std::int64_t steps = 0;
  for (const GroupAxis& a : axes) steps += 2 * a.size;
  CAPTURE(static_cast<int>(kind));
  CAPTURE(expected);
  CHECK(std::abs(played(collective, axes) - expected) <= std::max(1e-9 * expected, static_cast<double>(steps) * 1e-12));
}

// Elements of 4 bytes that divide into n shards of k parts with halves.
std::int64_t random_elements(Random& random, std::int64_t n, std::int64_t k) {
  return n * k * 2 * static_cast<std::int64_t>(1 + random.below(random.below(2) == 0 ? 10 : 1'000'000));
}

constexpr int kTries = 8;

// One axis of 2 to 64 members against `form(n, V, links)`, in seconds.
template <class Form>
void check_axis(std::uint64_t seed, fabric::Link link, LineAlgorithm algorithm, Form form) {
  Random random(seed);
  for (std::int64_t n : {2, 3, 4, 5, 7, 8, 16, 31, 64})
    for (CollectiveKind kind : kKinds)
      for (int i = 0; i < kTries; ++i) {
        const Links l = random_links(random);
        const std::vector<GroupAxis> axes = {axis(0, n, link, l)};
        const std::int64_t elements = random_elements(random, n, 1);
        check_form(kind, planned(kind, elements, axes, algorithm), axes, form(n, 4 * static_cast<double>(elements), l));
      }
}

}  // namespace

TEST_CASE("a one-way ring is busy for (n-1)(a + V/(nW)), an all-reduce for twice that") {
  check_axis(11, fabric::Link::ring, LineAlgorithm::ring, [](std::int64_t n, double v, const Links& l) {
    const auto m = static_cast<double>(n);
    return (m - 1) * (l.a + v / (m * l.w));
  });
}

TEST_CASE("both ways round a ring, the opposite chunk of an even one halved: floor(n/2) a + V(n-1)/(2nW)") {
  check_axis(12, fabric::Link::ring, LineAlgorithm::bidirectional_ring, [](std::int64_t n, double v, const Links& l) {
    const auto m = static_cast<double>(n);
    return static_cast<double>(n / 2) * l.a + v * (m - 1) / (2 * m * l.w);
  });
}

TEST_CASE("a line is busy for (n-1)(a + V/(nW))") {
  check_axis(13, fabric::Link::line, LineAlgorithm::line, [](std::int64_t n, double v, const Links& l) {
    const auto m = static_cast<double>(n);
    return (m - 1) * (l.a + v / (m * l.w));
  });
}

TEST_CASE("k wrapped axes of equal size X, V in k parts in rotated order: k floor(X/2) a + V(1-1/n)/(2kW)") {
  Random random(14);
  for (std::int64_t x : {2, 3, 4, 5, 8, 16})
    for (int k : {2, 3})
      for (CollectiveKind kind : kKinds)
        for (int i = 0; i < kTries; ++i) {
          const Links l = random_links(random);
          std::vector<GroupAxis> axes;
          std::int64_t n = 1;
          for (int j = 0; j < k; ++j) axes.push_back(axis(j, x, fabric::Link::ring, l)), n *= x;
          const std::int64_t elements = random_elements(random, n, k);
          const double v = 4 * static_cast<double>(elements), m = static_cast<double>(n);
          check_form(kind, planned(kind, elements, axes, LineAlgorithm::bidirectional_ring), axes,
                     k * static_cast<double>(x / 2) * l.a + v * (1 - 1 / m) / (2 * k * l.w));
        }
}

TEST_CASE("wrapped axes of unequal sizes and speeds: the phases in lockstep, each as long as its slowest part") {
  // Part j of k gathers along axis j - 1 first, then j - 2 ... and j last (axes counted round). What it carries along
  // an axis of size x is a chunk for each of the x members: its share of one shard, V / (n k), times the sizes of the
  // axes that it has gathered. Such a phase takes floor(x/2) a + chunk (x-1) / (2W).
  Random random(15);
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{2, 4}, {3, 8}, {16, 5}, {4, 4, 8}, {2, 3, 5}, {16, 4, 8}})
    for (CollectiveKind kind : kKinds)
      for (int i = 0; i < kTries; ++i) {
        const std::size_t k = sizes.size();
        std::vector<GroupAxis> axes;
        std::vector<Links> links;
        std::int64_t n = 1;
        for (std::size_t j = 0; j < k; ++j) {
          links.push_back(random_links(random));
          axes.push_back(axis(static_cast<int>(j), sizes[j], fabric::Link::ring, links[j]));
          n *= sizes[j];
        }
        const std::int64_t elements = random_elements(random, n, static_cast<std::int64_t>(k));
        double sum = 0;
        for (std::size_t phase = 0; phase < k; ++phase) {
          double slowest = 0;
          for (std::size_t part = 0; part < k; ++part) {
            double chunk = 4 * static_cast<double>(elements) / static_cast<double>(n) / static_cast<double>(k);
            for (std::size_t done = 1; done <= phase; ++done)
              chunk *= static_cast<double>(sizes[(part + k - done) % k]);
            const std::size_t at = (part + k - phase - 1) % k;
            slowest = std::max(slowest, static_cast<double>(sizes[at] / 2) * links[at].a +
                                            chunk * static_cast<double>(sizes[at] - 1) / (2 * links[at].w));
          }
          sum += slowest;
        }
        check_form(kind, planned(kind, elements, axes, LineAlgorithm::bidirectional_ring), axes, sum);
      }
}

TEST_CASE(
    "the planner takes the form that is cheapest, and the step has it: fsdp over k axes of a torus with latency") {
  // A whole planned step on 4 x 4 and 4 x 4 x 4 with a = 1 us: every gather of a block's parameters (one bucket for
  // each matrix, D x F x 2 bytes) takes k floor(4/2) a + V (1 - 1/n) / (2 k W).
  topologies::ClusterRequest request;
  request.chip = *topologies::find_chip("ideal-v5p");
  request.chip.link_latency.value = Seconds(1e-6);
  for (int k : {1, 2, 3}) {
    request.slice_shape = {4, k > 1 ? 4 : 1, k > 2 ? 4 : 1};
    DiagnosticSink sink;
    const topologies::Cluster cluster = *topologies::build(request, sink);
    session::JobSpec spec;
    spec.model.family = models::Family::mlp;
    spec.model.layers = 2;
    spec.model.embed = 4096;
    spec.model.mlp = 16384;
    spec.model.gated_mlp = false;
    spec.global_batch = cluster.chips();
    spec.microbatch = 1;
    spec.sequence_length = 64;
    spec.mesh = {{"fsdp", cluster.chips()}};
    const Played p = play(spec, cluster);
    const double n = static_cast<double>(cluster.chips());
    std::size_t gathers = 0;
    for (std::size_t i = 0; i < p.plan.program.collectives.size(); ++i) {
      const plan::Collective& c = p.plan.program.collectives[i];
      const timing::TransferTotals& t = p.timing.transfers[i];
      if (p.plan.program.plans[static_cast<std::size_t>(c.plan)].kind != CollectiveKind::all_gather || t.count == 0)
        continue;
      CHECK(c.elements % (4096 * 16384) == 0);
      const double v = 2 * static_cast<double>(c.elements);
      CHECK(t.busy.value() / t.count == doctest::Approx(k * 2e-6 + v * (1 - 1 / n) / (2 * k * 9e10)).epsilon(1e-9));
      ++gathers;
    }
    CHECK(gathers > 0);
  }
}
