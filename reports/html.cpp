#include "reports/html.hpp"

#include "reports/html/assets.hpp"
#include "reports/html/chart_data.hpp"
#include "reports/html/markup.hpp"
#include "reports/html/sections.hpp"
#include "reports/summary.hpp"

namespace tpusim::reports {

std::string html(const result::Result& r) {
  const Assets a = assets();
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>";
  out += escape(facts(r).title) + " - tpusim</title>\n<style>\n";
  out += a.style;
  out += "</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#time\">Skip to the results</a>\n<div class=\"page\">\n";
  out += header_markup(r);
  out +=
      "<nav aria-label=\"Sections\"><a href=\"#time\">Time</a><a href=\"#diagnosis\">Bottlenecks</a>"
      "<a href=\"#timeline\">Timeline</a><a href=\"#memory\">Memory</a><a href=\"#communication\">Communication</a>"
      "<a href=\"#verification\">Verification</a><a href=\"#assumptions\">Assumptions</a>"
      "<a href=\"#scenario\">Scenario</a></nav>\n<main>\n";
  out += step_section(r) + diagnosis_section(r) + timeline_section(r) + memory_section(r) + communication_section(r) +
         verification_section(r) + notes_section(r) + assumptions_section(r) + scenario_section(r);
  out +=
      "</main>\n<footer>Made by tpusim. This page is complete in itself: it loads nothing and sends nothing. Charts: "
      "Apache "
      "ECharts.</footer>\n</div>\n<script type=\"application/json\" id=\"data\">";
  out += script_json(chart_data(r));
  out += "</script>\n<script>\n";
  out += a.echarts;
  out += "\n</script>\n<script>\n";
  out += a.charts;
  out += "</script>\n<script>\n";
  out += a.timeline;
  return out + "</script>\n</body>\n</html>\n";
}

}  // namespace tpusim::reports
