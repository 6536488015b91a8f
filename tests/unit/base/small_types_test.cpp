#include <doctest/doctest.h>

#include <algorithm>
#include <type_traits>
#include <unordered_set>

#include "sim/base/inline_vector.hpp"
#include "sim/base/random.hpp"
#include "sim/base/registry.hpp"
#include "sim/base/strong_id.hpp"
#include "sim/base/verdict.hpp"

using namespace tpusim;

namespace {
struct OpTag;
struct ValueTag;
using OpId = StrongId<OpTag>;
using ValueId = StrongId<ValueTag>;
static_assert(!std::is_convertible_v<OpId, ValueId>);
static_assert(!std::is_convertible_v<int, OpId>);
static_assert(!std::is_convertible_v<OpId, int>);
}  // namespace

TEST_CASE("a strong id is invalid until it is given an index") {
  CHECK(!OpId().valid());
  CHECK(OpId(0).valid());
  CHECK(OpId(std::size_t{7}).index == 7);
  CHECK(OpId(1) < OpId(2));
  const std::unordered_set<OpId> ids = {OpId(1), OpId(1), OpId(2)};
  CHECK(ids.size() == 2);
}

TEST_CASE("a registry keeps the order of registration and refuses a second entry of a name") {
  Registry<int> registry;
  registry.add("ring", "one way round", 1);
  registry.add("line", "no way round", 2);
  CHECK(registry.names() == std::vector<std::string>{"ring", "line"});
  REQUIRE(registry.find("line") != nullptr);
  CHECK(registry.find("line")->value == 2);
  CHECK(registry.find("line")->help == "no way round");
  CHECK(registry.find("tree") == nullptr);
  CHECK_THROWS_AS(registry.add("ring", "again", 3), InternalError);
  CHECK(registry.entries().size() == 2);
}

TEST_CASE("an inline vector grows to its capacity, erases, compares and refuses one more") {
  InlineVector<int, 4> v = {5, 6, 7};
  CHECK(v.contains(6));
  v.erase_at(1);
  CHECK(v == InlineVector<int, 4>{5, 7});
  CHECK(!v.contains(6));
  CHECK(v.back() == 7);
  v.push_back(8);
  v.push_back(9);
  CHECK(v.size() == 4);
  CHECK_THROWS_AS(v.push_back(10), InternalError);
  CHECK_THROWS_AS(v.erase_at(4), InternalError);
  v.clear();
  CHECK(v.empty());
  CHECK(v == InlineVector<int, 4>{});
}

TEST_CASE("a verdict is feasible unless it says otherwise") {
  CHECK(static_cast<bool>(Verdict{}));
  CHECK(!Verdict{false, "out of memory", "103.4 GB", "95 GB", "/cluster/chip"});
}

TEST_CASE("random numbers are SplitMix64's known answers") {
  // The first five outputs for seed 1234567 are published with the algorithm's reference code.
  Random r(1234567);
  for (const std::uint64_t expected : {6457827717110365317ull, 3203168211198807973ull, 9817491932198370423ull,
                                       4593380528125082431ull, 16408922859458223821ull})
    CHECK(r.next() == expected);
}

TEST_CASE("uniform, normal and shuffled values are fixed by the seed") {
  // Computed with an independent implementation in another language from the definitions in random.hpp.
  Random u(42);
  CHECK(u.uniform() == 0.7415648787718233);
  CHECK(u.uniform() == 0.1599103928769201);
  Random n(7);
  CHECK(n.normal() == doctest::Approx(-0.04174152338145233).epsilon(1e-15));  // log may differ in its last bit
  Random s(42);
  std::vector<int> items = {0, 1, 2, 3, 4, 5, 6, 7};
  s.shuffle(items);
  CHECK(items == std::vector<int>{3, 1, 6, 2, 4, 0, 7, 5});
}

TEST_CASE("numbers below n are in range and even") {
  Random r(3);
  std::vector<int> seen(6);
  for (int i = 0; i < 60000; ++i) {
    const std::uint64_t x = r.below(6);
    REQUIRE(x < 6);
    ++seen[x];
  }
  // Binomial(60000, 1/6): mean 10000, standard deviation 91; five of them either way.
  for (const int count : seen) CHECK(std::abs(count - 10000) < 456);
  CHECK(r.below(1) == 0);
}

TEST_CASE("normal numbers have mean zero and variance one") {
  Random r(11);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = r.normal();
    sum += x;
    squares += x * x;
  }
  // Standard errors: 1/sqrt(n) = 0.0032 for the mean, sqrt(2/n) = 0.0045 for the variance; five of each.
  CHECK(std::abs(sum / kCount) < 0.016);
  CHECK(std::abs(squares / kCount - 1) < 0.023);
}

TEST_CASE("forked streams differ from their parent and from each other, for purpose zero too") {
  const Random parent(99);
  std::unordered_set<std::uint64_t> seen;
  std::vector<Random> streams = {parent};
  for (std::uint64_t purpose = 0; purpose < 4; ++purpose) streams.push_back(parent.fork(purpose));
  for (Random& stream : streams)
    for (int i = 0; i < 1000; ++i) seen.insert(stream.next());
  // 64-bit values: a single repeat among 5,000 has a chance of 5000^2 / 2^65 < 1e-12.
  CHECK(seen.size() == 5000);
}
