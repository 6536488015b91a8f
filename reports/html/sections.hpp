// The page's sections, each as markup.
#pragma once

#include <string>

#include "sim/result/result.hpp"

namespace tpusim::reports {

std::string header_markup(const result::Result& result);  // title, facts, what stands in the way, headline cards
std::string step_section(const result::Result& result);
std::string timeline_section(const result::Result& result);
std::string memory_section(const result::Result& result);
std::string communication_section(const result::Result& result);
std::string diagnosis_section(const result::Result& result);
std::string verification_section(const result::Result& result);
std::string assumptions_section(const result::Result& result);
std::string notes_section(const result::Result& result);
std::string scenario_section(const result::Result& result);

}  // namespace tpusim::reports
