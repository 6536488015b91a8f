#include "reports/json.hpp"

#include "sim/result/json.hpp"

namespace tpusim::reports {

std::string json(const result::Result& result, bool with_timeline) {
  std::string text = result::to_json(result);
  if (!with_timeline) return text;
  std::string timeline = result::timeline_to_json(result.timeline);
  timeline.pop_back();  // its newline
  // The document ends in "\n}\n": the timeline goes before that, compact, since it is not for reading.
  return text.substr(0, text.size() - 3) + ",\n  \"timeline\": " + timeline + "\n}\n";
}

}  // namespace tpusim::reports
