#include "topologies/kernighan_lin.hpp"

namespace tpusim::topologies {

namespace {

// One pass: every chip is exchanged once, greedily by what the cut loses; the best prefix of exchanges is kept. Rates
// of both directions are added, so that the cut is symmetric.
class Pass {
 public:
  Pass(const Topology& t, const Adjacency& out, std::vector<bool>& half) : t_(t), out_(out), half_(half) {
    const std::size_t n = half.size();
    gain_.assign(n, 0);
    locked_.assign(n, false);
    for (std::size_t v = 0; v < n; ++v)
      each(v, [&](std::size_t u, double rate) { gain_[v] += half_[u] != half_[v] ? rate : -rate; });
  }

  bool run() {
    double total = 0, best = 0;
    std::size_t keep = 0;
    std::vector<std::pair<std::size_t, std::size_t>> exchanged;
    for (std::size_t k = 0; k < half_.size() / 2; ++k) {
      const std::size_t a = pick(true, half_.size(), 0);
      if (a == half_.size()) break;
      const std::size_t b = pick(false, a, 1);
      double between = 0;
      each(a, [&](std::size_t u, double rate) { between += u == b ? rate : 0; });
      total += gain_[a] + gain_[b] - 2 * between;
      move(a);
      move(b);
      exchanged.push_back({a, b});
      if (total > best * (1 + 1e-12) && total > 0) {  // more than rounding
        best = total;
        keep = exchanged.size();
      }
    }
    for (std::size_t i = keep; i < exchanged.size(); ++i) {
      half_[exchanged[i].first] = !half_[exchanged[i].first];
      half_[exchanged[i].second] = !half_[exchanged[i].second];
    }
    return keep > 0;
  }

 private:
  template <class F>
  void each(std::size_t v, F&& f) const {
    for (std::int32_t k = out_.first[v]; k < out_.first[v + 1]; ++k) {
      const Link& l = t_.links[static_cast<std::size_t>(out_.link[static_cast<std::size_t>(k)])];
      f(static_cast<std::size_t>(l.to), share_of(t_, l).value());
    }
  }

  // The free chip of a side with the largest gain, the lowest number of equal ones; the second counts its links to
  // `first` against it.
  std::size_t pick(bool side, std::size_t first, double weight) const {
    std::vector<double> to_first(weight > 0 ? half_.size() : 0, 0);
    if (weight > 0) each(first, [&](std::size_t u, double rate) { to_first[u] += 2 * rate; });
    std::size_t best = half_.size();
    double most = 0;
    for (std::size_t v = 0; v < half_.size(); ++v) {
      if (locked_[v] || half_[v] != side) continue;
      const double gain = gain_[v] - (weight > 0 ? to_first[v] : 0);
      if (best == half_.size() || gain > most) best = v, most = gain;
    }
    return best;
  }

  void move(std::size_t v) {
    locked_[v] = true;
    each(v, [&](std::size_t u, double rate) { gain_[u] += half_[u] == half_[v] ? 2 * rate : -2 * rate; });
    half_[v] = !half_[v];
  }

  const Topology& t_;
  const Adjacency& out_;
  std::vector<bool>& half_;
  std::vector<double> gain_;
  std::vector<bool> locked_;
};

}  // namespace

std::vector<bool> exchange_pairs(const Topology& topology, const Adjacency& out, std::vector<bool> half) {
  // A pass that gains lowers the cut; the number of passes is small in practice and bounded here.
  for (int pass = 0; pass < 50; ++pass)
    if (!Pass(topology, out, half).run()) break;
  return half;
}

}  // namespace tpusim::topologies
