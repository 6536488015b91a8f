// The result as JSON text, both ways.
//
// Deterministic: keys in contract order, two-space indentation, numbers in the shortest form that reads back as the
// same double (integers without a point). NaN and infinities are never written: the value is null and `notes` names it.
#pragma once

#include <string>
#include <string_view>

#include "sim/result/result.hpp"

namespace tpusim::result {

// The output contract, version 1 (without the timeline), ending in a newline. Throws InternalError when scenario_json
// is not JSON.
std::string to_json(const Result& result);

// Reads what to_json wrote; null numbers become NaN or empty optionals. Throws ScenarioError with a Diagnostic that
// points at what is missing or of the wrong type.
Result from_json(std::string_view text);

// The timeline alone, compact: {"start_ps","end_ps","labels":[...],"classes":[{"name","devices","streams":[{"name",
// "spans":[[start_ps,end_ps,busy_ps,label,kind,phase,layer,microbatch,joined],...]}]}],"memory_class",
// "memory":[[time_ps,bytes],...],"spans_joined","spans_left_out"}. `kind` and `phase` are the enums' numbers.
std::string timeline_to_json(const Timeline& timeline);
Timeline timeline_from_json(std::string_view text);  // throws ScenarioError

// The shortest text that reads back as `value`; "null" when it is not finite.
std::string number_text(double value);

}  // namespace tpusim::result
