// report_sample FOLDER: writes pipeline.html, minimal.html and hostile.html, the made-up results of the reports' tests.
#include <cstdio>
#include <fstream>
#include <string>

#include "reports/html.hpp"
#include "tests/unit/reports/sample_support.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: report_sample FOLDER\n", stderr);
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  namespace samples = tpusim::reports::samples;
  std::ofstream(folder + "pipeline.html") << tpusim::reports::html(samples::pipeline());
  std::ofstream(folder + "minimal.html") << tpusim::reports::html(samples::minimal());
  std::ofstream last(folder + "hostile.html");
  last << tpusim::reports::html(samples::hostile());
  return last.good() ? 0 : 1;
}
