#include "sim/strategies/draft.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/base/checked.hpp"

namespace tpusim::strategies {

std::int64_t Draft::requested(std::string_view name) const {
  for (const RequestedAxis& axis : request.mesh)
    if (axis.name == name) return axis.size;
  return 1;
}

void Draft::refuse(std::string reason, std::string needed, std::string available, std::string pointer) {
  Verdict verdict;
  verdict.feasible = false;
  verdict.reason = std::move(reason);
  verdict.needed = std::move(needed);
  verdict.available = std::move(available);
  verdict.pointer = std::move(pointer);
  out.refusals.push_back(std::move(verdict));
}

void Draft::sub_axes(std::string_view name, std::vector<std::int64_t> sizes) {
  sub_axes_.emplace(std::string(name), std::move(sizes));
}

void Draft::pad(Axis axis, std::int64_t multiple, std::string_view strategy) {
  std::int64_t& size = out.padded[at(axis)];
  if (size == 0 || size % multiple == 0) return;
  const std::int64_t padded = round_up(size, multiple);
  note(fmt::format("{} {} is padded to {} for {} {}", ir::name_of(axis), size, padded, strategy, requested(strategy)));
  size = padded;
}

void Draft::make_mesh() {
  for (const RequestedAxis& axis : request.mesh) {
    const auto it = sub_axes_.find(axis.name);
    std::vector<std::int64_t> sizes;
    if (it != sub_axes_.end())
      for (const std::int64_t size : it->second)
        if (size > 1) sizes.push_back(size);
    if (axis.name == "pipeline") out.pipeline_axis = static_cast<int>(out.mesh.axes.size());
    if (sizes.size() <= 1) {
      out.mesh.axes.push_back({axis.name, axis.size, axis.name});
      continue;
    }
    for (std::size_t i = 0; i < sizes.size(); ++i)
      out.mesh.axes.push_back({axis.name + "." + std::to_string(i), sizes[i], axis.name});
  }
  TPUSIM_CHECK(out.mesh.axes.size() <= 8, "more than 8 mesh axes");
}

spmd::MeshAxes Draft::sub_axis(std::string_view name, std::size_t k) const {
  const spmd::MeshAxes all = out.mesh.find(name);
  if (all.empty() || requested(name) == 1) return {};
  const auto it = sub_axes_.find(name);
  if (it == sub_axes_.end()) return k == 0 ? all : spmd::MeshAxes{};
  if (k >= it->second.size() || it->second[k] == 1) return {};
  std::size_t index = 0;
  for (std::size_t i = 0; i < k; ++i)
    if (it->second[i] > 1) ++index;
  return {all[index]};
}

std::vector<spmd::Rule>& Draft::rules(Table table) {
  switch (table) {
    case Table::activations:
      return out.tables.activations;
    case Table::parameters:
      return out.tables.parameters;
    case Table::gradients:
      return out.tables.gradients;
    case Table::optimizer:
      return out.tables.optimizer;
  }
  internal_error(__FILE__, __LINE__, "table", "no such sharding table");
}

void Draft::split(std::initializer_list<Table> tables, Axis axis, const spmd::MeshAxes& mesh_axes,
                  std::string_view strategy, Place place) {
  if (mesh_axes.empty()) return;
  for (const Table table : tables) {
    std::vector<spmd::Rule>& list = rules(table);
    auto it =
        std::find_if(list.begin(), list.end(), [&](const spmd::Rule& r) { return r.axis == axis && r.place == place; });
    if (it == list.end()) {
      list.push_back({axis, place, mesh_axes, "strategy " + std::string(strategy)});
      continue;
    }
    for (const std::uint8_t a : mesh_axes) it->mesh_axes.push_back(a);
    it->origin += ", " + std::string(strategy);
  }
}

void Draft::apply_by_hand() {
  std::array<std::size_t, 4> placed{};  // rules by hand stand first, in the order given
  for (const HandRule& hand : request.by_hand) {
    spmd::Rule rule{hand.axis, hand.place, {}, hand.pointer};
    for (const std::string& name : hand.mesh_axes) {
      const spmd::MeshAxes found = out.mesh.find(name);
      if (found.empty()) refuse("the mesh has no axis " + name, "a mesh axis", name, hand.pointer);
      for (const std::uint8_t a : found) {
        if (rule.mesh_axes.contains(a)) {
          refuse("a rule names the mesh axis " + name + " twice", "each mesh axis once", name, hand.pointer);
        } else if (static_cast<int>(a) == out.pipeline_axis) {
          refuse("stages of a pipeline cannot split a tensor", "another mesh axis", name, hand.pointer);
        } else {
          rule.mesh_axes.push_back(a);
        }
      }
    }
    std::vector<spmd::Rule>& list = rules(hand.table);
    std::size_t& first = placed[static_cast<std::size_t>(hand.table)];
    const auto same = [&](const spmd::Rule& r) { return r.axis == hand.axis && r.place == hand.place; };
    const auto begin = list.begin() + static_cast<std::ptrdiff_t>(first);
    list.erase(std::remove_if(begin, list.end(), same), list.end());
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(first), rule);
    ++first;
  }
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::string list_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  const std::size_t shown = 12;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers.size() > shown && i == shown - 1) {
      text += ", ..., " + std::to_string(numbers.back());
      break;
    }
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  }
  return text;
}

}  // namespace tpusim::strategies
