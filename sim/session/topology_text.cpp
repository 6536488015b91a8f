// What `tpusim topology` prints.
#include <fmt/format.h>

#include "sim/base/quantity_text.hpp"
#include "sim/session/topology.hpp"

namespace tpusim::session {

namespace {

constexpr std::size_t kWidth = 96, kLabel = 20;

// "  label          words of the value", broken between words, with what follows below the first.
std::string entry(const std::string& label, const std::string& value) {
  std::string text, line = fmt::format("  {:<{}}", label, kLabel - 2);
  std::size_t from = 0;
  bool fresh = true;
  while (from < value.size()) {
    const std::size_t to = std::min(value.find(' ', from), value.size());
    if (!fresh && line.size() + 1 + (to - from) > kWidth) {
      text += line + "\n";
      line.assign(kLabel, ' ');
      fresh = true;
    }
    line += (fresh ? "" : " ") + value.substr(from, to - from);
    fresh = false;
    from = to + 1;
  }
  return text + line + "\n";
}

std::string links_text(std::int64_t count) {
  return format_count(count) + (count == 1 ? " link" : " links");
}

std::string span_text(std::int64_t least, std::int64_t most) {
  return least == most ? links_text(least) : fmt::format("{} to {}", least, links_text(most));
}

std::string bisection_text(const Network& n) {
  if (n.chips < 2) return entry("bisection", "none: one chip");
  const std::string cut = n.bisection_links > 0 ? " over " + links_text(n.bisection_links) : "";
  if (n.bisection_lower == n.bisection_upper) {
    std::string how = n.bisection_upper_how;
    if (n.bisection_lower_how != how)
      how = fmt::format("found as {}; that no halves have less follows {}", how, n.bisection_lower_how);
    return entry("bisection", fmt::format("{} one way{}, exact ({})", format_rate(n.bisection_upper), cut, how));
  }
  return entry("bisection",
               fmt::format("at most {} one way{} ({})", format_rate(n.bisection_upper), cut, n.bisection_upper_how)) +
         entry("", fmt::format("at least {} one way ({})", format_rate(n.bisection_lower), n.bisection_lower_how));
}

std::string network_text(const Network& n) {
  std::string text =
      entry("links", n.links == 0 ? "none" : format_count(n.links) + " cables, each used in both directions at once");
  if (n.switches + n.cards > 0)
    text += entry("", fmt::format("switches: {}; network cards: {}", format_count(n.switches), format_count(n.cards)));
  text += entry("links of a chip", span_text(n.min_degree, n.max_degree));
  text += entry("diameter", fmt::format("{}{}", n.distances_exact ? "" : "at least ", links_text(n.diameter)));
  if (n.chips > 1)
    text += entry("mean hops", fmt::format("{} links between two different chips ({})", format_number(n.mean_hops, 4),
                                           n.distances_how));
  text += bisection_text(n);
  text +=
      entry("disjoint rings", n.chips < 3 ? "none: " + n.rings_how
                                          : fmt::format("{} through all chips, of at most {} that share no link ({})",
                                                        n.rings, n.rings_at_most, n.rings_how));
  return text;
}

std::string machine_text(const TopologyReport& r) {
  std::string text;
  for (const NetworkAxis& axis : r.axes)
    text += entry(&axis == r.axes.data() ? "axes" : "", fmt::format("{}: {}", axis.name, axis.form));
  for (const NetworkLinks& l : r.links)
    text += entry(&l == r.links.data() ? "kinds of link" : "",
                  fmt::format("{} {} between {}: {} each way, {} to cross", format_count(l.cables), l.kind, l.between,
                              format_rate(l.rate), format_seconds(l.latency)));
  return text;
}

std::string costs_text(const TopologyReport& r) {
  if (!r.verdict) return "\nCost of collectives: none, since the mesh cannot be used: " + r.verdict.reason + "\n";
  if (r.costs.empty()) return "\nCost of collectives: none, one chip sends nothing\n";
  std::string text = fmt::format(
      "\nCost of collectives: the cheapest algorithm for V bytes ({} bytes an element), nothing else running\n"
      "  start: of any collective; alpha: latency of the steps; beta: bytes over the busiest link\n"
      "  V: all that is gathered, or reduced; bus bandwidth: V (n-1)/n / total, of an all-reduce twice that\n"
      "  mesh on the machine: {}\n",
      r.element_bytes, r.placement);
  const bool one_axis = r.costs.front().over == r.costs.back().over;
  const CollectiveCost* last = nullptr;
  for (const CollectiveCost& c : r.costs) {
    if (last == nullptr || last->over != c.over)
      text += fmt::format("\n  over {}: n = {} chips{}\n    {:>8} {:>10}   {:>10}   {:>10}   {:>10} {:>14}\n", c.over,
                          format_count(c.members), one_axis ? ", all of them" : "", "V", "start", "alpha", "beta",
                          "total", "bus bandwidth");
    if (last == nullptr || last->over != c.over || last->collective != c.collective || last->algorithm != c.algorithm)
      text += entry("  " + c.collective, c.algorithm);
    text += fmt::format("    {:>8} {:>10} + {:>10} + {:>10} = {:>10} {:>14}\n", format_bytes(c.size),
                        format_seconds(c.start), format_seconds(c.alpha), format_seconds(c.beta),
                        format_seconds(c.total()), format_rate(c.bus()));
    last = &c;
  }
  return text;
}

}  // namespace

std::string to_text(const TopologyReport& r) {
  std::string text = r.cluster;
  if (r.whole) text += fmt::format(": {} chip{}", format_count(r.whole->chips), r.whole->chips == 1 ? "" : "s");
  text += "\n" + machine_text(r);
  if (r.whole) text += network_text(*r.whole);
  for (const std::string& note : r.notes) text += entry("note", note);
  if (!r.refusal.empty()) text += entry("not measured", r.refusal);
  if (r.one_part)
    text += fmt::format("\nOne {} of the {}: {} chip{}\n{}", r.part, format_count(r.parts),
                        format_count(r.one_part->chips), r.one_part->chips == 1 ? "" : "s", network_text(*r.one_part));
  return text + costs_text(r);
}

}  // namespace tpusim::session
