#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/plan/plan_support.hpp"

namespace tpusim::plan {
namespace {

using testing::Asked;
using testing::find;
using testing::instructions;
using testing::Tiny;
using Text = std::vector<std::string>;

Text of(const StepProgram& p, const std::string& kind, const std::string& previous, const std::string& next) {
  const Template* t = find(p, kind, previous, next);
  REQUIRE_MESSAGE(t != nullptr, kind << " after " << previous << " before " << next);
  return instructions(p, *t);
}

std::int64_t count(const StepProgram& p, CollectiveKind kind) {
  return std::count_if(p.collectives.begin(), p.collectives.end(),
                       [&](const Collective& c) { return p.plans[static_cast<std::size_t>(c.plan)].kind == kind; });
}

TEST_CASE("one device runs the model block by block and the layers share their templates") {
  Asked asked;
  asked.layers = 3;
  const StepProgram p = Tiny(asked).lower();
  CHECK(of(p, "layer forward", "layer forward", "layer forward") ==
        Text{"kernel dot", "kernel map.relu", "kernel dot", "kernel map.add"});
  CHECK(of(p, "head forward", "layer forward", "head backward first last") ==
        Text{"kernel map.mul map.sub map.square reduce.sum"});
  CHECK(of(p, "layer update", "input update", "layer update") ==
        Text{"kernel fill update.sgd map.copy", "kernel fill update.sgd map.copy"});
  CHECK(p.collectives.empty());
  // forward of input, 3 layers, head; the same backwards; then the 5 updates.
  REQUIRE(p.schedules.size() == 1);
  CHECK(p.schedules[0].calls() == 15);
  CHECK(verify(p).empty());
}

TEST_CASE("the peak of one device is that of the hand count") {
  // All f32. There before and after: g twice (2 x 16), w1 and w2 (2 x 256) = 544 of parameters; features and labels 2 x
  // 128 of activations; the loss, 4. The fullest moment is in the layer's backward when the gradient of w2 is made.
  // Then live besides: the layer's input x 128, hidden 512 (saved), its dx 128; gradients: the head's g 16, w2 256;
  // workspace: relu(hidden) again 512 and the gradient of it 512.
  Asked asked;
  asked.layers = 1;
  const StepProgram p = Tiny(asked).lower();
  REQUIRE(p.memory.size() == 1);
  CHECK(p.memory[0].at_peak[0] == 544);
  CHECK(p.memory[0].at_peak[1] == 16 + 256);
  CHECK(p.memory[0].at_peak[2] == 0);
  CHECK(p.memory[0].at_peak[3] == 256 + 128 + 512 + 128);
  CHECK(p.memory[0].at_peak[4] == 4 + 512 + 512);
  CHECK(p.memory[0].peak_bytes == 544 + 272 + 1024 + 1028);
}

TEST_CASE(
    "kernels count multiply-adds, bytes of what they read and write, and useful work without what others repeat") {
  Asked asked;
  asked.layers = 1;
  for (const bool split : {false, true}) {
    // On the axis "spare" nothing is split: both devices do all of it, and half of it is of use.
    asked.mesh = split ? std::vector<std::pair<std::string, std::int64_t>>{{"spare", 2}}
                       : std::vector<std::pair<std::string, std::int64_t>>{};
    const StepProgram p = Tiny(asked).lower();
    const Kernel& dot =
        p.kernels[static_cast<std::size_t>(find(p, "layer forward", "input forward", "head forward")->instrs[0].body)];
    CHECK(dot.matrix);
    CHECK(dot.cost.executed_flops == 2.0 * 8 * 4 * 16);
    CHECK(dot.model_flops == (split ? 8 * 4 * 16 : 2 * 8 * 4 * 16));
    CHECK(dot.bytes_read == 128 + 256);
    CHECK(dot.bytes_written == 8 * 16 * 4);
  }
}

TEST_CASE("data parallelism reduces the gradients of a block once a step, in buckets, in place") {
  Asked asked;
  asked.mesh = {{"data", 2}};
  asked.microbatches = 2;
  Tiny tiny(asked);
  StepProgram p = tiny.lower();
  // The first microbatch writes the gradients, the last adds its own and reduces the sum.
  const Text first = of(p, "layer backward first", "head backward first", "layer backward first");
  CHECK(std::count(first.begin(), first.end(), "all-reduce x2") == 0);
  const Text last = of(p, "layer backward last", "head backward last", "layer backward last");
  CHECK(std::count(last.begin(), last.end(), "all-reduce x2") == 1);
  // It starts when the second gradient is summed, ahead of what is left of the call.
  CHECK(Text(last.end() - 3, last.end()) == Text{"kernel map.add", "all-reduce x2", "kernel map.add"});
  CHECK(count(p, CollectiveKind::all_reduce) == 3);
  for (const Collective& c : p.collectives)
    for (std::size_t i = 0; i < c.reads.size(); ++i) CHECK(c.reads[i].second == c.writes[i].second);
  // w1 and w2 have 256 bytes each: buckets of 300 hold one.
  tiny.options.bucket_bytes = 300;
  p = tiny.lower();
  CHECK(count(p, CollectiveKind::all_reduce) == 4);
}

TEST_CASE("accumulation is fused where an elementwise kernel makes the gradient, and a kernel right behind a dot") {
  Asked asked;
  asked.layers = 3;
  asked.microbatches = 3;
  const StepProgram p = Tiny(asked).lower();
  CHECK(of(p, "input backward", "layer backward", "input forward") == Text{"kernel map.mul reduce.sum map.add"});
  const Text layer = of(p, "layer backward", "layer backward", "layer backward");
  CHECK(layer == Text{"kernel map.relu", "kernel dot", "kernel dot", "kernel map.add", "kernel map.relu_grad",
                      "kernel dot", "kernel dot", "kernel map.add", "kernel map.add"});
}

TEST_CASE(
    "ZeRO-3 gathers a block's parameters in the call before its forward and before its backward, and scatters their "
    "gradients, in buckets") {
  Asked asked;
  asked.mesh = {{"fsdp", 2}};
  asked.microbatches = 2;
  Tiny tiny(asked);
  StepProgram p = tiny.lower();
  // One gather for each of 3 blocks in forward; in backward the input block, which multiplies by nothing but data,
  // needs none.
  CHECK(count(p, CollectiveKind::all_gather) == 3 + 2);
  // Each gradient is scattered every microbatch: into its buffer in the first, into a temporary in the others.
  CHECK(count(p, CollectiveKind::reduce_scatter) == 3 + 3);
  CHECK(count(p, CollectiveKind::all_reduce) == 0);
  CHECK(of(p, "layer forward", "input forward", "layer forward") ==
        Text{">all-gather x2", "kernel dot", "kernel map.relu", "kernel dot", "kernel map.add"});
  // The first call of the step has nobody before it and gathers for itself.
  CHECK(of(p, "input forward", "nothing", "layer forward") ==
        Text{"all-gather x1", ">all-gather x2", "kernel map.mul"});
  // What the scatter brings is added by the following call.
  const Text middle = of(p, "layer backward last", "layer backward last", "input backward last");
  CHECK(Text(middle.end() - 2, middle.end()) == Text{"<kernel map.add", "<kernel map.add"});
  // w1 and w2 have 256 bytes each when whole: buckets of 300 hold one.
  tiny.options.bucket_bytes = 300;
  p = tiny.lower();
  CHECK(count(p, CollectiveKind::all_gather) == 4 + 3);
  CHECK(count(p, CollectiveKind::reduce_scatter) == 4 + 4);
  CHECK(of(p, "layer forward", "input forward", "layer forward") ==
        Text{">all-gather x1", ">all-gather x1", "kernel dot", "kernel map.relu", "kernel dot", "kernel map.add"});
  tiny.options.prefetch = 0;
  p = tiny.lower();
  CHECK(of(p, "layer forward", "input forward", "layer forward") ==
        Text{"all-gather x1", "kernel dot", "kernel map.relu", "all-gather x1", "kernel dot", "kernel map.add"});
}

TEST_CASE("ZeRO-1 keeps whole gradients, scatters them once, updates a slice and gathers the new parameter") {
  Asked asked;
  asked.mesh = {{"fsdp", 2}};
  asked.zero = 1;
  asked.microbatches = 2;
  asked.optimizer = ir::Optimizer::momentum;
  const StepProgram p = Tiny(asked).lower();
  CHECK(count(p, CollectiveKind::reduce_scatter) == 3);  // the layer's two in one bucket
  CHECK(count(p, CollectiveKind::all_gather) == 3);      // of the new parameters, likewise; none in forward or backward
  std::int64_t state = 0;
  for (const Buffer& b : p.buffers)
    if (b.category == Category::optimizer) state += b.bytes;
  CHECK(state == (16 + 256 + 256 + 16) / 2);
  const Text update = of(p, "head update", "layer update", "nothing");
  CHECK(update.front() == "kernel fill slice update.momentum map.copy");
}

TEST_CASE("tensor parallelism all-reduces once forward and once backward a layer, beside the weight gradient") {
  Asked asked;
  asked.mesh = {{"tensor", 2}};
  const StepProgram p = Tiny(asked).lower();
  CHECK(of(p, "layer forward", "layer forward", "head forward") ==
        Text{"kernel dot", "kernel map.relu", "kernel dot", "all-reduce x1", "kernel map.add"});
  const Text backward = of(p, "layer backward first last", "head backward first last", "layer backward first last");
  CHECK(Text(backward.end() - 4, backward.end()) ==
        Text{"kernel dot", "all-reduce x1", "kernel dot", "kernel map.add"});
}

TEST_CASE(
    "pipeline stages send right behind the kernel that makes the boundary value and post receives one call ahead") {
  Asked asked;
  asked.mesh = {{"pipeline", 2}};
  asked.microbatches = 3;
  asked.gpipe = true;
  const StepProgram p = Tiny(asked).lower();
  CHECK(p.stages == 2);
  REQUIRE(p.permutes.size() == 2);
  CHECK(p.permutes[0].from_stage == 0);
  CHECK(p.permutes[0].to_stage == 1);
  CHECK(p.permutes[0].bytes == 128);
  CHECK(p.permutes[0].alpha.value() == 1e-6);
  CHECK(p.permutes[0].beta.value() == 1e9);
  CHECK(p.permutes[0].buffer.site_delta == 0);
  CHECK(p.permutes[0].target.site_delta == -1);
  CHECK(p.permutes[1].buffer.site_delta == -1);
  CHECK(p.permutes[1].target.site_delta == 0);
  CHECK(p.permutes[0].resource != p.permutes[1].resource);
  CHECK(of(p, "layer forward", "input forward", "input forward").back() == "send");
  CHECK(of(p, "head forward", "layer forward", "layer forward").front() == ">receive");
  CHECK(of(p, "layer forward", "nothing", "head forward").front() == "receive");
}

TEST_CASE("a tied parameter is held, reduced and updated by both stages, and its gradients are summed over them") {
  Asked asked;
  asked.tied = true;
  asked.mesh = {{"pipeline", 2}};
  StepProgram p = Tiny(asked).lower();
  REQUIRE(p.stage_reduces.size() == 1);
  CHECK(p.stage_reduces[0].stages == std::vector<std::int32_t>{0, 1});
  const Buffer& gradient = p.buffers[static_cast<std::size_t>(p.stage_reduces[0].buffer.buffer.index)];
  CHECK(gradient.scope == Scope::step);
  CHECK(gradient.category == Category::gradients);
  CHECK(of(p, "input update", "input backward first last", "layer update") ==
        Text{"stage_reduce", "kernel fill update.sgd map.copy"});
  CHECK(of(p, "head update", "layer update", "nothing") == Text{"stage_reduce", "kernel fill update.sgd map.copy"});

  // On one stage it has one gradient, which the input block's backward adds to, and one update.
  asked.mesh = {};
  p = Tiny(asked).lower();
  CHECK(p.stage_reduces.empty());
  CHECK(of(p, "input backward first last", "layer backward first last", "input update") ==
        Text{"kernel map.mul reduce.sum map.add"});
  CHECK(find(p, "head update", "layer update", "nothing") == nullptr);
  CHECK(of(p, "layer update", "layer update", "nothing") ==
        Text{"kernel fill update.sgd map.copy", "kernel fill update.sgd map.copy"});
}

TEST_CASE("clipping sums squares site by site, then over devices and stages, and every update reads gscale") {
  Asked asked;
  asked.clip = 1;
  asked.mesh = {{"pipeline", 2}, {"tensor", 2}};
  const StepProgram p = Tiny(asked).lower();
  // w1 and w2 are split over tensor, g is not: two accumulators, of which the first needs an all-reduce.
  std::int64_t accumulators = 0;
  for (const Buffer& b : p.buffers)
    accumulators += b.scope == Scope::step && !b.persistent && b.label == "norm" ? 1 : 0;
  CHECK(accumulators == 2);
  CHECK(of(p, "clip", "layer norm", "input update") ==
        Text{"all-reduce x1", "kernel map.add", "stage_reduce",
             "kernel map.sqrt map.add_scalar map.reciprocal map.scale map.minimum_scalar"});
  CHECK(of(p, "input norm", "input backward first last", "layer norm") ==
        Text{"kernel fill fill", "kernel map.square reduce.sum map.add"});
  CHECK(of(p, "input update", "clip", "layer update") == Text{"kernel update.sgd map.copy"});
  REQUIRE(p.gscale.valid());
  // torch.nn.utils.clip_grad_norm_: max_norm / (total_norm + 1e-6), at most 1.
  const ir::Program& clip = p.programs.back().local;
  double added = 0, scaled = 0, most = 0;
  for (const ir::Op& op : clip.ops)
    if (const auto* map = std::get_if<ir::Map>(&op.kind)) {
      if (map->kind == ir::Elementwise::add_scalar) added = map->a;
      if (map->kind == ir::Elementwise::scale) scaled = map->a;
      if (map->kind == ir::Elementwise::minimum_scalar) most = map->a;
    }
  CHECK(added == 1e-6);
  CHECK(scaled == 1.0);
  CHECK(most == 1.0);
}

TEST_CASE("a tied parameter counts once in the norm") {
  Asked asked;
  asked.clip = 1;
  asked.tied = true;
  for (const bool pipeline : {false, true}) {
    asked.mesh = pipeline ? std::vector<std::pair<std::string, std::int64_t>>{{"pipeline", 2}}
                          : std::vector<std::pair<std::string, std::int64_t>>{};
    const StepProgram p = Tiny(asked).lower();
    std::int64_t squares = 0;
    for (std::size_t i = 3; i < 6; ++i)  // the update programs
      for (const ir::Op& op : p.programs[i].local.ops)
        squares +=
            std::holds_alternative<ir::Map>(op.kind) && std::get<ir::Map>(op.kind).kind == ir::Elementwise::square ? 1
                                                                                                                   : 0;
    CHECK(squares == 3);  // g, w1, w2
  }
}

TEST_CASE("without overlap each reduction is waited for at the end of its backward call") {
  Asked asked;
  asked.mesh = {{"data", 2}};
  Tiny tiny(asked);
  tiny.options.overlap = false;
  const StepProgram p = tiny.lower();
  const Text text = of(p, "layer backward first last", "head backward first last", "layer backward first last");
  CHECK(Text(text.end() - 2, text.end()) == Text{"all-reduce x2", "wait"});
  const Template* t = find(p, "layer backward first last", "head backward first last", "layer backward first last");
  CHECK(t->instrs.back().body == static_cast<std::int32_t>(t->instrs.size()) - 2);
}

TEST_CASE("equal collectives share one plan") {
  Asked asked;
  asked.mesh = {{"fsdp", 2}};
  const StepProgram p = Tiny(asked).lower();
  // 4 (g) and 128 elements (w1 and w2), gathered and scattered: 4 plans for 5 gathers and 3 + 3 scatters.
  CHECK(p.collectives.size() == 11);
  CHECK(p.plans.size() == 4);
  for (const Collective& c : p.collectives) CHECK(c.resources == std::vector<std::int32_t>{0});
}

TEST_CASE("a million microbatches are planned by arithmetic") {
  Asked asked;
  asked.gpipe = true;
  const auto peak = [&](std::int64_t m) {
    asked.microbatches = m;
    return Tiny(asked).lower().memory[0].peak_bytes;
  };
  // All-forward-first keeps every microbatch: x between 4 sites (3 x 128), hidden of 2 layers (2 x 512), features and
  // labels (2 x 128), the loss (4).
  const std::int64_t each = 3 * 128 + 2 * 512 + 2 * 128 + 4;
  CHECK(peak(7) - peak(6) == each);
  CHECK(peak(1000000) == peak(10) + (1000000 - 10) * each);
  // One after the other only the data of the batch and the losses grow.
  asked.gpipe = false;
  CHECK(peak(1000000) == peak(10) + (1000000 - 10) * (2 * 128 + 4));
}

TEST_CASE("the printed plan names every collective and the memory") {
  Asked asked;
  asked.mesh = {{"fsdp", 2}};
  const std::string text = print(Tiny(asked).lower());
  CHECK(text.find("all-gather") != std::string::npos);
  CHECK(text.find("reduce-scatter") != std::string::npos);
  CHECK(text.find("stage 0: peak ") != std::string::npos);
  CHECK(text.find("layer backward, first microbatch, last microbatch") != std::string::npos);
}

}  // namespace
}  // namespace tpusim::plan
