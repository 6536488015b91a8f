// The keys of the contract, one list an object: what an unknown key is compared with, here and elsewhere. Private.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpusim::scenario {

struct Section {
  std::string pointer;            // "/training"; an element of /input/stages is "/input/stages/*"
  std::vector<std::string> keys;  // in the contract's order
};
const std::vector<Section>& contract();
const Section& section(std::string_view pointer);  // InternalError for none

// The keys that are part of the contract and not built yet, and the mesh axes likewise.
bool is_planned_key(std::string_view key);
bool is_planned_axis(std::string_view axis);
const std::vector<std::string>& mesh_axes();     // of this version
const std::vector<std::string>& logical_axes();  // of this version
const std::vector<std::string>& places();        // where in the model a rule may hold
bool is_planned_logical_axis(std::string_view axis);

// What other tools call a thing of ours: "dp" -> "data", "bfloat16" -> "bf16"; "" when unknown.
std::string_view our_name(std::string_view theirs);

}  // namespace tpusim::scenario
