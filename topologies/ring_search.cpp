#include "topologies/ring_search.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "sim/base/random.hpp"

namespace tpusim::topologies {

namespace {

constexpr std::int16_t kUnused = -1;

class Search {
 public:
  Search(const Topology& t, std::int64_t budget)
      : t_(t), degree_(t.steps.size()), chips_(static_cast<std::size_t>(t.chips)), budget_(budget), random_(1) {
    colour_steps();
    colour_.resize(chips_ * degree_);
    for (std::size_t i = 0; i < colour_.size(); ++i) colour_[i] = of_step_[i % degree_];
    cycle_.assign(colours_, std::vector<std::int32_t>(chips_, -1));
    place_ = cycle_;
    cycles_.assign(colours_, 0);
    for (std::size_t c = 0; c < colours_; ++c) trace_all(c);
  }

  void run() {
    std::vector<std::int64_t> squares;
    const auto pairs = static_cast<std::int64_t>(degree_ * degree_);
    for (std::int64_t i = 0; i < pairs * t_.chips; ++i)
      if (i / t_.chips % static_cast<std::int64_t>(degree_) < i / t_.chips / static_cast<std::int64_t>(degree_))
        squares.push_back(i);
    // Sweeps over all squares in a random order; where nothing joins, exchanges that cost nothing move on.
    for (bool level = false; budget_ > 0 && !done();) {
      random_.shuffle(squares);
      bool joined = false;
      for (std::int64_t s : squares) {
        if (budget_ <= 0 || done()) return;
        --budget_;
        const auto v = static_cast<std::size_t>(s % t_.chips);
        const auto pair = static_cast<std::size_t>(s / t_.chips);
        joined = exchange(v, pair / degree_, pair % degree_, level) || joined;
      }
      if (!joined && level && squares.empty()) return;
      level = !joined;
    }
  }

  std::vector<std::vector<std::int32_t>> single_cycles() const {
    std::vector<std::vector<std::int32_t>> rings;
    for (std::size_t c = 0; c < colours_; ++c) {
      if (cycles_[c] != 1) continue;
      std::vector<std::int32_t> ring(chips_);
      for (std::size_t v = 0; v < chips_; ++v)
        ring[static_cast<std::size_t>(place_[c][v])] = static_cast<std::int32_t>(v);
      rings.push_back(std::move(ring));
    }
    return rings;
  }

 private:
  // A step and its reverse share a colour; steps of half the chips are paired; one that is left over is unused.
  void colour_steps() {
    of_step_.assign(degree_, kUnused);
    std::size_t single = degree_;
    for (std::size_t g = 0; g < degree_; ++g) {
      const auto back = static_cast<std::size_t>(t_.links[g].twin) % degree_;
      if (back == g) {
        if (single == degree_) {
          single = g;
          continue;
        }
        of_step_[single] = of_step_[g] = static_cast<std::int16_t>(colours_++);
        single = degree_;
      } else if (back > g) {
        of_step_[g] = of_step_[back] = static_cast<std::int16_t>(colours_++);
      }
    }
  }

  std::size_t to(std::size_t v, std::size_t g) const { return static_cast<std::size_t>(t_.links[v * degree_ + g].to); }
  std::size_t link(std::size_t v, std::size_t g) const { return v * degree_ + g; }

  void trace_all(std::size_t c) {
    std::fill(cycle_[c].begin(), cycle_[c].end(), -1);
    cycles_[c] = 0;
    for (std::size_t v = 0; v < chips_; ++v)
      if (cycle_[c][v] < 0) trace(c, v, cycles_[c]++);
    budget_ -= t_.chips;
  }

  void trace(std::size_t c, std::size_t start, std::int32_t name) {
    std::size_t v = start, came = degree_;
    for (std::int32_t place = 0;; ++place) {
      cycle_[c][v] = name;
      place_[c][v] = place;
      std::size_t next = degree_;
      for (std::size_t g = 0; g < degree_ && next == degree_; ++g)
        if (colour_[link(v, g)] == static_cast<std::int16_t>(c) && g != came) next = g;
      came = static_cast<std::size_t>(t_.links[link(v, next)].twin) % degree_;
      v = to(v, next);
      if (v == start) return;
    }
  }

  // Whether the cycle runs from a to b, which are linked in this colour.
  bool forward(std::size_t c, std::size_t a, std::size_t b) const {
    const std::int32_t pa = place_[c][a], pb = place_[c][b];
    return pb == pa + 1 || (pb == 0 && pa > 1);
  }

  // By how much the cycles of a colour grow in number when its sides a-b and d-e become a-d and b-e.
  int growth(std::int16_t colour, std::size_t a, std::size_t b, std::size_t d, std::size_t e) const {
    if (colour == kUnused) return 0;
    const auto c = static_cast<std::size_t>(colour);
    if (cycle_[c][a] != cycle_[c][d]) return -1;
    return forward(c, a, b) == forward(c, d, e) ? 0 : 1;
  }

  void paint(std::size_t v, std::size_t g, std::int16_t colour) {
    colour_[link(v, g)] = colour;
    colour_[static_cast<std::size_t>(t_.links[link(v, g)].twin)] = colour;
  }

  // Returns whether cycles were joined.
  bool exchange(std::size_t v, std::size_t g, std::size_t h, bool level) {
    const std::size_t a = to(v, g), b = to(v, h), ab = to(a, h);
    if (ab != to(b, g) || a == b || ab == v) return false;
    const std::int16_t p = colour_[link(v, g)], q = colour_[link(v, h)];
    if (p == q || colour_[link(b, g)] != p || colour_[link(a, h)] != q) return false;
    const int grown = growth(p, v, a, b, ab) + growth(q, v, b, a, ab);
    if (grown > 0 || (grown == 0 && (!level || random_.below(4) != 0))) return false;
    paint(v, g, q);
    paint(b, g, q);
    paint(v, h, p);
    paint(a, h, p);
    if (p != kUnused) trace_all(static_cast<std::size_t>(p));
    if (q != kUnused) trace_all(static_cast<std::size_t>(q));
    return grown < 0;
  }

  bool done() const {
    return std::all_of(cycles_.begin(), cycles_.end(), [](std::int32_t n) { return n == 1; });
  }

  const Topology& t_;
  std::size_t degree_, chips_, colours_ = 0;
  std::int64_t budget_;
  Random random_;
  std::vector<std::int16_t> of_step_, colour_;            // by step; by link
  std::vector<std::vector<std::int32_t>> cycle_, place_;  // by colour and chip: which cycle, and where on it
  std::vector<std::int32_t> cycles_;                      // by colour
};

}  // namespace

std::vector<std::vector<std::int32_t>> join_cycles(const Topology& topology, std::int64_t budget) {
  Search search(topology, budget);
  search.run();
  return search.single_cycles();
}

}  // namespace tpusim::topologies
