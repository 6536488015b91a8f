// The version of the program: that of project() in CMakeLists.txt, which a test compares.
#pragma once

namespace tpusim::cli {

inline constexpr const char* kVersion = "0.1.0";

}  // namespace tpusim::cli
