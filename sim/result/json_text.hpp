// JSON text with the result's layout: private to this room and to reports (it needs nlohmann/json).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tpusim::result {

using Json = nlohmann::ordered_json;

// Two-space indentation, arrays of scalars on one line, numbers as number_text writes them, strings in UTF-8 with
// invalid bytes replaced. No newline at the end.
std::string pretty(const Json& json);
// The same without any white space.
std::string compact(const Json& json);

// The document of to_json, as a tree. Numbers that are not finite are null, and `notes` names them.
struct Result;
Json result_tree(const Result& result);
struct Timeline;
Json timeline_tree(const Timeline& timeline);

}  // namespace tpusim::result
