#include "reports/csv.hpp"

#include <doctest/doctest.h>

#include "tests/unit/reports/sample_support.hpp"

using namespace tpusim;
using namespace tpusim::reports;

TEST_CASE("the step as CSV has plain numbers and sums to its total") {
  CHECK(step_csv(samples::quickstart()) ==
        "part,seconds,share\n"
        "compute,4,0.8\n"
        "communication,0.75,0.15\n"
        "bubble,0,0\n"
        "input,0,0\n"
        "overhead,0.25,0.05\n"
        "total,5,1\n");
}

TEST_CASE("communication as CSV quotes what holds a comma, a quote or a newline") {
  result::Result r = samples::quickstart();
  r.communication[1].collective = "say \"hi\"\nthere";
  r.communication[1].axes = {"data", "fsdp"};
  CHECK(communication_csv(r) ==
        "collective,axes,algorithm,count,bytes_per_chip,busy_s,exposed_s\n"
        "all-gather,fsdp,\"two axes, both directions\",128,25000000000,1.5,0.5\n"
        "\"say \"\"hi\"\"\nthere\",data+fsdp,\"two axes, both directions\",64,25000000000,1.25,0.25\n");
}

TEST_CASE("a number that is not finite is an empty field") {
  CHECK(step_csv(samples::hostile()).find("\nbubble,,\n") != std::string::npos);
}

TEST_CASE("the table of step parts of a plan that was not timed has no rows of zeros") {
  tpusim::result::Result r;
  r.verdict.feasible = false;
  CHECK(tpusim::reports::step_csv(r) == "part,seconds,share\n");
}
