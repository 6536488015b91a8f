// A result as one offline HTML page: headline numbers, where the time goes, timeline, memory, communication, diagnosis,
// verification, assumptions, scenario.
//
// Everything is inside the page (style, scripts, charts, data); its content security policy forbids any request. Every
// number that matters is in the text, so that the page says the same without scripts; the charts only draw it.
#pragma once

#include <string>

#include "sim/result/result.hpp"

namespace tpusim::reports {

std::string html(const result::Result& result);

}  // namespace tpusim::reports
