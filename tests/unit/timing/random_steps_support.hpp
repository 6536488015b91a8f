// Random hand-built steps and how a run of them went.
#pragma once

#include "sim/base/random.hpp"
#include "sim/run/interpreter.hpp"
#include "sim/timing/step_time.hpp"
#include "tests/support/pipeline_program.hpp"

namespace tpusim::timing::testing {

using tpusim::testing::GradientMode;
using tpusim::testing::PipelineProgram;
using tpusim::testing::PipelineShape;

// Up to `most_devices`; durations are drawn from few values, so that ties are frequent.
inline PipelineShape random_shape(Random& random, std::int64_t most_devices) {
  PipelineShape s;
  s.stages = 1 + static_cast<std::int32_t>(random.below(5));
  s.layers = 1 + static_cast<std::int32_t>(random.below(5));
  s.microbatches = 1 + static_cast<std::int64_t>(random.below(random.below(4) == 0 ? 40 : 9));
  s.data = std::min<std::int64_t>(2 + static_cast<std::int64_t>(random.below(3)), most_devices / s.stages);
  s.data_major = random.below(2) == 0;
  s.gpipe = random.below(3) == 0;
  s.unequal = random.below(3) == 0;
  s.gather = random.below(2) == 0;
  s.await = random.below(3) == 0;
  s.tied = random.below(3) == 0;
  s.two_links = random.below(2) == 0;
  s.gradients = static_cast<GradientMode>(random.below(4));
  s.early_gradient = random.below(2) == 0;
  return s;
}
inline plan::StepProgram random_step(Random& random, std::int64_t most_devices) {
  PipelineShape shape = random_shape(random, most_devices);
  const std::uint64_t slow_links = 1 + random.below(30);  // from all hidden to links only
  shape.compute = [&random] { return Seconds(static_cast<double>(1 + random.below(6)) * 1e-9); };
  shape.transfer = [&random, slow_links] {
    return Seconds(static_cast<double>((1 + random.below(5)) * slow_links) * 0.6e-9);
  };
  return PipelineProgram::build(shape);
}

inline fabric::Fabric fabric_of(const plan::StepProgram& program) {
  fabric::Fabric fabric;
  fabric.axes.resize(static_cast<std::size_t>(program.resources));
  return fabric;
}

// The same reader with tokens that the interpreter takes for opaque: it keeps every instance, forgets nothing and
// repeats nothing.
struct OpaqueBackend : TimingBackend {
  using TimingBackend::TimingBackend;
  static constexpr bool kOrdered = false;
};

// Everything that a run leaves behind, by class, after each step.
struct Trace {
  std::vector<std::vector<std::int64_t>> ends;
  std::vector<std::vector<run::Spent>> spent;
  std::vector<std::vector<std::vector<std::int64_t>>> calls;
  run::CallCounts counts;
};
template <class B = TimingBackend>
Trace trace(const plan::StepProgram& program, run::Folding folding, bool repetition, std::int64_t steps) {
  const Durations table = durations(program, topologies::Chip{}, fabric_of(program));
  B backend(table,
            static_cast<std::size_t>(folding == run::Folding::per_device ? program.mesh.devices() : program.stages),
            {});
  run::Interpreter<B> interpreter(program, folding, backend);
  interpreter.set_repetition(repetition);
  Trace out;
  for (std::int64_t step = 1; step <= steps; ++step) {
    const auto stall = interpreter.run(step);
    TPUSIM_CHECK(!stall, run::to_string(*stall));
    out.ends.emplace_back();
    out.spent.emplace_back();
    for (std::size_t c = 0; c < interpreter.classes().size(); ++c) {
      out.ends.back().push_back(interpreter.compute_token(c).ps);
      out.spent.back().push_back(backend.spent(static_cast<std::int32_t>(c)));
    }
    out.calls.push_back(interpreter.calls());
  }
  out.counts = interpreter.counts();
  return out;
}

}  // namespace tpusim::timing::testing
