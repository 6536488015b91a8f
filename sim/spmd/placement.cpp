// How mesh axes are laid on the machine.
//
// The size n of a mesh axis is written as a product of one factor per physical axis; the factors on a physical axis
// multiply to its size. As the mesh multiplies to the number of chips, such factors always exist, prime by prime (a
// transportation problem whose totals agree), and any choice for one mesh axis leaves a solvable rest. So the mesh axes
// choose one after the other, in order of priority, each the cheapest of all its factorings of what is left: that is
// the exact minimum of the costs compared lexicographically by priority. A later chooser of a physical axis gets a part
// with a longer stride.
//
// Cost of a factoring, compared in this order: members over slices; members over hosts; parts that break a physical
// axis (open lines or shared links instead of whole rings); time of a byte, 1 / links at work (a whole ring gives 2, an
// open line 1, a port 1, of which `stride` groups share a neighbour link); unwrapped parts; then the minor physical
// axes first.
#include "sim/spmd/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"

namespace tpusim::spmd {
namespace {

using Factors = std::vector<std::int64_t>;  // by physical axis
using Cost = std::tuple<std::int64_t, std::int64_t, int, double, int, std::vector<int>>;

// What is left of the machine while mesh axes choose.
struct Remaining {
  const fabric::Fabric& fabric;
  Factors size;    // members not yet taken
  Factors stride;  // of the next part
};

Cost cost_of(const Factors& factors, const Remaining& left) {
  std::int64_t slices = 1, hosts = 1;
  int broken = 0, open = 0;
  double links = 0;
  std::vector<int> order;
  for (std::size_t p = factors.size(); p-- > 0;) {
    if (factors[p] == 1) continue;
    const fabric::PhysicalAxis& axis = left.fabric.axes[p];
    if (axis.level == fabric::Level::slice) slices *= factors[p];
    if (axis.level == fabric::Level::host) hosts *= factors[p];
    const bool whole = factors[p] == axis.size;
    const bool closed = axis.link == fabric::Link::ring && factors[p] == left.size[p];
    if (axis.link != fabric::Link::switched) {
      if (!whole) ++broken;
      if (!closed) ++open;
      links += (closed ? 2.0 : 1.0) / static_cast<double>(left.stride[p]);
    } else {
      links += 1;
    }
    order.push_back(static_cast<int>(factors.size() - p));
  }
  return {slices, hosts, broken, links > 0 ? 1 / links : 0, open, order};
}

Factors divisors(std::int64_t n) {
  Factors low, high;
  for (std::int64_t f = 1; f <= n / f; ++f) {
    if (n % f != 0) continue;
    low.push_back(f);
    if (f != n / f) high.push_back(n / f);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

// All ways to write n as a product of divisors of `left.size`; the cheapest is kept.
class Choice {
 public:
  Choice(std::int64_t n, const Remaining& left) : left_(left), factors_(left.size.size(), 1) { enumerate(0, n); }
  bool found() const { return found_; }
  const Factors& best() const { return best_; }

 private:
  void enumerate(std::size_t p, std::int64_t n) {
    if (p == left_.size.size()) {
      if (n != 1) return;
      Cost cost = cost_of(factors_, left_);
      if (found_ && !(cost < cost_)) return;
      found_ = true;
      cost_ = std::move(cost);
      best_ = factors_;
      return;
    }
    for (const std::int64_t f : divisors(std::gcd(n, left_.size[p]))) {
      factors_[p] = f;
      enumerate(p + 1, n / f);
    }
    factors_[p] = 1;
  }
  const Remaining& left_;
  Factors factors_, best_;
  Cost cost_;
  bool found_ = false;
};

// Takes the factors from what is left.
std::vector<AxisPart> take(const Factors& factors, Remaining& left) {
  std::vector<AxisPart> parts;
  for (std::size_t p = 0; p < factors.size(); ++p) {
    if (factors[p] == 1) continue;
    parts.push_back({static_cast<int>(p), factors[p], left.stride[p]});
    left.size[p] /= factors[p];
    left.stride[p] *= factors[p];
  }
  return parts;
}

// A mesh axis as the user wrote it: its sub-axes are placed inside what it takes as a whole.
struct Group {
  std::string name;
  std::int64_t size = 1;
  std::vector<std::size_t> axes;  // of the mesh, major to minor
};

std::vector<Group> groups_by_priority(const Mesh& mesh, const std::vector<std::string>& priority) {
  std::vector<Group> groups;
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    const MeshAxis& axis = mesh.axes[a];
    const auto same = [&axis](const Group& g) { return g.name == axis.parent; };
    auto it = std::find_if(groups.begin(), groups.end(), same);
    if (it == groups.end()) it = groups.insert(groups.end(), Group{axis.parent, 1, {}});
    it->size = checked_mul(it->size, axis.size, "the size of a mesh axis");
    it->axes.push_back(a);
  }
  const auto place_of = [&priority](const Group& g) {
    const auto it = std::find(priority.begin(), priority.end(), g.name);
    return it - priority.begin();
  };
  std::reverse(groups.begin(), groups.end());  // of those not named, the minor ones first
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Group& a, const Group& b) { return place_of(a) < place_of(b); });
  return groups;
}

std::string sizes_text(const fabric::Fabric& fabric) {
  std::string text;
  for (const fabric::PhysicalAxis& axis : fabric.axes) {
    if (!text.empty()) text += " x ";
    text += fmt::format("{} {}", axis.name, axis.size);
  }
  return text;
}

// Why a mesh does not fit: the axis with a prime factor that the machine lacks, if there is one.
Verdict mismatch(const std::vector<Group>& groups, const Mesh& mesh, const fabric::Fabric& fabric) {
  Verdict verdict;
  verdict.feasible = false;
  verdict.reason = "the mesh does not fit the machine";
  verdict.available = fmt::format("{} chips: {}", fabric.chips(), sizes_text(fabric));
  verdict.needed = fmt::format("{} devices", mesh.devices());
  verdict.pointer = "/mesh";
  for (const Group& g : groups) {
    std::int64_t rest = g.size;
    for (std::int64_t common = std::gcd(rest, fabric.chips()); common > 1; common = std::gcd(rest, fabric.chips()))
      rest /= common;
    if (rest == 1) continue;
    verdict.reason = fmt::format("the mesh axis {} of {} does not factor over the machine", g.name, g.size);
    verdict.needed = fmt::format("a physical axis with the factor {}", rest);
    verdict.pointer = "/mesh/" + g.name;
    break;
  }
  return verdict;
}

std::string describe(const std::vector<Group>& by_priority, const Placement& placement, const fabric::Fabric& fabric) {
  std::vector<const Group*> groups;
  for (const Group& g : by_priority) groups.push_back(&g);
  std::sort(groups.begin(), groups.end(), [](const Group* a, const Group* b) { return a->axes[0] < b->axes[0]; });
  std::string text;
  for (const Group* g : groups) {
    Factors taken(fabric.axes.size(), 1);
    for (const std::size_t a : g->axes)
      for (const AxisPart& part : placement.parts[a]) taken[static_cast<std::size_t>(part.physical)] *= part.size;
    std::string list;
    for (std::size_t p = 0; p < taken.size(); ++p) {
      if (taken[p] == 1) continue;
      if (!list.empty()) list += ", ";
      list += fabric.axes[p].name;
      if (taken[p] != fabric.axes[p].size) list += fmt::format(" ({} of {})", taken[p], fabric.axes[p].size);
    }
    if (list.empty()) list = "one chip";
    if (!text.empty()) text += "; ";
    text += g->name + " on " + list;
  }
  return text;
}

}  // namespace

std::int64_t Placement::chip(std::int64_t device, const Mesh& mesh, const fabric::Fabric& fabric) const {
  std::int64_t coordinate[16] = {};
  TPUSIM_CHECK(fabric.axes.size() <= 16, "a fabric has at most 16 physical axes");
  for (std::size_t a = parts.size(); a-- > 0;) {
    std::int64_t index = device % mesh.axes[a].size;  // mesh axes and parts are major to minor
    device /= mesh.axes[a].size;
    for (std::size_t i = parts[a].size(); i-- > 0;) {
      const AxisPart& part = parts[a][i];
      coordinate[part.physical] += index % part.size * part.stride;
      index /= part.size;
    }
  }
  std::int64_t chip = 0;
  for (std::size_t p = 0; p < fabric.axes.size(); ++p) chip = chip * fabric.axes[p].size + coordinate[p];
  return chip;
}

PlacementResult place(const Mesh& mesh, const fabric::Fabric& fabric, const std::vector<std::string>& priority) {
  PlacementResult result;
  static constexpr const char* kDefault[] = {"tensor", "fsdp", "data", "pipeline"};
  const std::vector<std::string> order =
      priority.empty() ? std::vector<std::string>(std::begin(kDefault), std::end(kDefault)) : priority;
  const std::vector<Group> groups = groups_by_priority(mesh, order);
  if (mesh.devices() != fabric.chips()) {
    result.verdict = mismatch(groups, mesh, fabric);
    return result;
  }
  result.placement.parts.resize(mesh.axes.size());
  Remaining left{fabric, {}, Factors(fabric.axes.size(), 1)};
  for (const fabric::PhysicalAxis& axis : fabric.axes) left.size.push_back(axis.size);
  for (const Group& group : groups) {
    const Choice whole(group.size, left);
    TPUSIM_CHECK(whole.found(), "a mesh axis cannot be placed: " + group.name);
    Remaining inside{fabric, whole.best(), left.stride};
    for (std::size_t i = group.axes.size(); i-- > 0;) {
      const std::size_t axis = group.axes[i];
      const Choice part(mesh.axes[axis].size, inside);
      TPUSIM_CHECK(part.found(), "a sub-axis cannot be placed: " + mesh.axes[axis].name);
      result.placement.parts[axis] = take(part.best(), inside);
    }
    take(whole.best(), left);
  }
  result.description = describe(groups, result.placement, fabric);
  return result;
}

}  // namespace tpusim::spmd
