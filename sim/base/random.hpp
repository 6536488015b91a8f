// Seeded random numbers that are the same on every platform (the std distributions are not).
// Source: SplitMix64, G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace tpusim {

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // Uniform in [0, n), n > 0; unbiased.
  constexpr std::uint64_t below(std::uint64_t n) {
    const std::uint64_t limit = ~std::uint64_t{0} - (~std::uint64_t{0} % n + 1) % n;
    std::uint64_t x = next();
    while (x > limit) x = next();
    return x % n;
  }
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)
  // Standard normal by the polar method (Marsaglia and Bray 1964).
  double normal() {
    double u, v, s;
    do {
      u = 2 * uniform() - 1;
      v = 2 * uniform() - 1;
      s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * std::sqrt(-2 * std::log(s) / s);
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }
  // An independent stream for a named purpose; the parent does not advance. Its seed is an output, not a state: states
  // of one generator lie on one orbit, so a seed taken from it would give the parent's own numbers, a step later.
  constexpr Random fork(std::uint64_t purpose) const {
    Random hashed(state_ ^ (purpose * 0xd1342543de82ef95ull));
    return Random(hashed.next() ^ 0x2545f4914f6cdd1dull);
  }

 private:
  std::uint64_t state_;
};

}  // namespace tpusim
