#include "reports/csv.hpp"

#include <cmath>

#include "reports/summary.hpp"
#include "sim/result/json.hpp"

namespace tpusim::reports {

namespace {

std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string field(double value) {
  return std::isfinite(value) ? result::number_text(value) : "";
}

}  // namespace

std::string step_csv(const result::Result& r) {
  std::string out = "part,seconds,share\n";
  if (!result::has_step(r)) return out;  // no rows of zeros for what was not simulated
  for (const Part& part : step_parts(r.step))
    out += part.key + "," + field(part.value) + "," + field(part.share) + "\n";
  return out + "total," + field(r.step.time.value()) + "," + field(r.step.time.value() > 0 ? 1 : 0) + "\n";
}

std::string communication_csv(const result::Result& r) {
  std::string out = "collective,axes,algorithm,count,bytes_per_chip,busy_s,exposed_s\n";
  for (const result::Communication& c : r.communication)
    out += field(c.collective) + "," + field(joined(c.axes, "+")) + "," + field(c.algorithm) + "," + field(c.count) +
           "," + field(c.bytes_per_chip) + "," + field(c.busy.value()) + "," + field(c.exposed.value()) + "\n";
  return out;
}

}  // namespace tpusim::reports
