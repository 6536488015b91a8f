// From text to a Scenario: every fault of the file at once, each with its place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/scenario.hpp"

namespace tpusim::scenario {

// Reads a scenario. `file_name` is only shown. `sets` are "path=value" as in --set mesh.tensor=8: the path has dots, or
// is a JSON pointer ("/sharding/activations/residual.seq=[\"tensor\"]"); the value is JSON where it parses as such,
// else text. They are applied in order and checked like the file. A preset name on the way becomes an object:
// model.layers=4 on "model": "gpt2" gives {"preset": "gpt2", "layers": 4}.
//
// Faults go to `sink` with file, line and column, in the order of the text, at most 20. After an error the returned
// Scenario holds what could be read, and must not be simulated. Never throws for wrong input; text of any content is
// fine. Cost: linear in the text, which may have at most 1 MiB.
Scenario read(std::string_view text, std::string file_name, DiagnosticSink& sink,
              const std::vector<std::string>& sets = {});

// The same from a file; one that cannot be read is a diagnostic (code io).
Scenario load(const std::string& path, DiagnosticSink& sink, const std::vector<std::string>& sets = {});

}  // namespace tpusim::scenario
