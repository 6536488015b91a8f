// The files that every HTML report carries, as they were embedded at build time (reports/embed.cmake).
#pragma once

#include <string_view>

namespace tpusim::reports {

struct Assets {
  std::string_view echarts;   // echarts.common.min.js
  std::string_view style;     // report.css
  std::string_view charts;    // charts.js
  std::string_view timeline;  // timeline.js
};
Assets assets();

}  // namespace tpusim::reports
