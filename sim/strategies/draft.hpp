// A Setup while the strategies write it. Internal to sim/strategies.
#pragma once

#include <initializer_list>
#include <map>

#include "sim/strategies/strategies.hpp"

namespace tpusim::strategies {

using ir::Axis;
using ir::Place;
using ir::Table;

inline std::size_t at(Axis axis) {
  return static_cast<std::size_t>(axis);
}

class Draft {
 public:
  Draft(const Request& asked, Setup& setup) : request(asked), out(setup) {}
  const Request& request;
  Setup& out;

  std::int64_t requested(std::string_view name) const;  // size of a mesh axis as written; 1 where the mesh lacks it
  void note(std::string text) { out.notes.push_back(std::move(text)); }
  void refuse(std::string reason, std::string needed, std::string available, std::string pointer);

  // --- while splitting: sub-axes of `name`, major to minor; sizes of 1 are left out, one alone keeps the name.
  void sub_axes(std::string_view name, std::vector<std::int64_t> sizes);
  // Makes the size of `axis` a multiple of what splits it, with a note: padded entries are zero and count nowhere.
  void pad(Axis axis, std::int64_t multiple, std::string_view strategy);
  // --- once the mesh is made: the k-th sub-axis asked for by sub_axes (or the whole axis as k = 0); empty where it has
  // size 1.
  spmd::MeshAxes sub_axis(std::string_view name, std::size_t k) const;

  // Adds mesh axes to the rule for (axis, place) in a table, behind those that are there.
  void split(std::initializer_list<Table> tables, Axis axis, const spmd::MeshAxes& mesh_axes, std::string_view strategy,
             Place place = Place::none);
  void make_mesh();
  void apply_by_hand();

 private:
  std::vector<spmd::Rule>& rules(Table table);
  std::map<std::string, std::vector<std::int64_t>, std::less<>> sub_axes_;
};

void tensor_split(Draft& draft);
void tensor_shard(Draft& draft);
void data_shard(Draft& draft);
void fsdp_split(Draft& draft);
void fsdp_shard(Draft& draft);
void pipeline_split(Draft& draft);
void pipeline_schedule(Draft& draft);

std::string list_text(
    const std::vector<std::int64_t>& numbers);       // "1, 2, 4"; at most twelve, the last ones after "..."
std::vector<std::int64_t> divisors(std::int64_t n);  // ascending

}  // namespace tpusim::strategies
