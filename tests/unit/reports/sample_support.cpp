#include "tests/unit/reports/sample_support.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace tpusim::reports::samples {

using namespace tpusim::result;

namespace {

constexpr int kStages = 8;
constexpr int kMicrobatches = 14;
constexpr int kLayers = 12;  // of one stage
constexpr std::int64_t kMicro = 1'000'000;

struct Call {
  bool forward;
  int microbatch;
};

// 1F1B: stage s warms up with p - s - 1 forwards, then alternates, then drains. SOURCE: Narayanan et al. 2021,
// figure 4.
std::vector<Call> order_of(int stage) {
  std::vector<Call> calls;
  const int warm = std::min(kStages - stage - 1, kMicrobatches);
  for (int m = 0; m < warm; ++m) calls.push_back({true, m});
  for (int m = warm; m < kMicrobatches; ++m) {
    calls.push_back({true, m});
    calls.push_back({false, m - warm});
  }
  for (int m = kMicrobatches - warm; m < kMicrobatches; ++m) calls.push_back({false, m});
  return calls;
}

class PipelineTimeline {
 public:
  PipelineTimeline() : builder_(24'000) {
    for (int s = 0; s < kStages; ++s) {
      const std::size_t c = builder_.add_class("stage " + std::to_string(s), 64);
      for (const char* name : {"compute", "nvlink", "nic"}) builder_.add_stream(c, name);
    }
  }

  Timeline finish() {
    const std::int64_t none = -1;
    std::vector<std::vector<std::int64_t>> forward(kStages, std::vector<std::int64_t>(kMicrobatches, none));
    auto backward = forward;
    std::vector<std::vector<Call>> orders;
    for (int s = 0; s < kStages; ++s) orders.push_back(order_of(s));
    std::vector<std::size_t> next(kStages, 0);
    std::vector<std::int64_t> free(kStages, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < kStages; ++s) {
        const auto stage = static_cast<std::size_t>(s);
        if (next[stage] == orders[stage].size()) continue;
        const Call call = orders[stage][next[stage]];
        const auto m = static_cast<std::size_t>(call.microbatch);
        std::int64_t ready = 0;
        if (call.forward && s > 0) ready = forward[stage - 1][m];
        if (!call.forward) ready = s + 1 < kStages ? backward[stage + 1][m] : forward[stage][m];
        if (ready == none) continue;
        const std::int64_t end = play(s, call, std::max(ready, free[stage]));
        free[stage] = end;
        (call.forward ? forward : backward)[stage][m] = end + send(s, call, end);
        ++next[stage];
        moved = true;
      }
    }
    std::int64_t last = *std::max_element(free.begin(), free.end());
    for (int s = 0; s < kStages; ++s) {
      const auto c = static_cast<std::size_t>(s);
      span(c, 1, last, last + 26'000 * kMicro, "reduce-scatter gradients", SpanKind::communication, SpanPhase::update,
           -1, -1);
      span(c, 0, last + 26'000 * kMicro, last + 41'000 * kMicro, "adamw", SpanKind::compute, SpanPhase::update, -1, -1);
    }
    builder_.set_window(0, last + 41'000 * kMicro);
    memory(last + 41'000 * kMicro);
    return builder_.finish();
  }

 private:
  void span(std::size_t c, std::size_t stream, std::int64_t start, std::int64_t end, const char* label, SpanKind kind,
            SpanPhase phase, int layer, int microbatch) {
    Span s;
    s.start_ps = start;
    s.end_ps = end;
    s.label = builder_.label(label);
    s.kind = kind;
    s.phase = phase;
    s.layer = layer;
    s.microbatch = microbatch;
    builder_.add_span(c, stream, s);
  }

  std::int64_t play(int stage, Call call, std::int64_t now) {
    const auto c = static_cast<std::size_t>(stage);
    const SpanPhase phase = call.forward ? SpanPhase::forward : SpanPhase::backward;
    const int factor = call.forward ? 1 : 2;
    for (int k = 0; k < kLayers; ++k) {
      const int layer = stage * kLayers + (call.forward ? k : kLayers - 1 - k);
      for (const char* part : {"attention", "mlp"}) {
        const bool attention = part[0] == 'a';
        const std::int64_t first = (attention ? 900 : 1'500) * kMicro * factor;
        const std::int64_t second = (attention ? 700 : 1'400) * kMicro * factor;
        span(c, 0, now, now + first, attention ? "qkv projection" : "mlp up", SpanKind::compute, phase, layer,
             call.microbatch);
        now += first;
        span(c, 0, now, now + second, attention ? "flash attention" : "mlp down", SpanKind::compute, phase, layer,
             call.microbatch);
        now += second;
        span(c, 1, now, now + 380 * kMicro, "all-reduce tensor", SpanKind::communication, phase, layer,
             call.microbatch);
        now += 380 * kMicro;
      }
    }
    return now;
  }

  std::int64_t send(int stage, Call call, std::int64_t now) {
    if (call.forward ? stage + 1 == kStages : stage == 0) return 0;
    span(static_cast<std::size_t>(stage), 2, now, now + 2'000 * kMicro,
         call.forward ? "send activations" : "send gradients", SpanKind::communication,
         call.forward ? SpanPhase::forward : SpanPhase::backward, -1, call.microbatch);
    return 2'000 * kMicro;
  }

  // Stage 0 keeps up to 8 microbatches: climbs in warm-up, then a saw-tooth, then drains.
  void memory(std::int64_t end) {
    constexpr int kSamples = 600;
    for (int i = 0; i < kSamples; ++i) {
      const double x = static_cast<double>(i) / kSamples;
      const double alive = x < 0.25 ? 8 * x / 0.25 : x < 0.8 ? 7.5 + 0.5 * ((i / 6) % 2) : 8 * (1 - x) / 0.2;
      builder_.add_memory(0, end / kSamples * i, static_cast<std::int64_t>((43.5 + 2.6 * alive) * 1e9));
    }
  }

  TimelineBuilder builder_;
};

Verification passed_verification() {
  Verification v;
  v.passed = true;
  v.mesh = {{"data", 2}, {"pipeline", 2}, {"tensor", 2}};
  v.steps = 3;
  v.loss_reference = {6.931882645117, 6.774120938857, 6.601937712045};
  v.loss_sharded = {6.931882645117, 6.774120938857, 6.601937712046};
  v.max_relative_error = 4.4e-16;
  v.bytes_executed = v.bytes_charged = 18'874'368;
  v.flops_executed = v.flops_charged = 3'221'225'472;
  v.peak_bytes_executed = v.peak_bytes_charged = 2'359'296;
  v.checks = {{"every value of the first step", true, "2,418 values equal those of one device, in program order"},
              {"gradient against finite differences", true, "one seeded direction, relative difference 3.1e-9"},
              {"losses and parameters after 3 steps", true, "largest relative error 4.4e-16"},
              {"collectives alone", true, "ring and hierarchical, on 4 members of each physical axis"},
              {"tally", true, "bytes, FLOPs and peak live bytes are equal"}};
  return v;
}

}  // namespace

Result pipeline() {
  Result r;
  r.scenario_json = R"({"version":1,"name":"GPT-3 175B, 512 A100s","model":"gpt3-175b",)"
                    R"("cluster":{"chip":"a100-80gb","hosts":64,"chips_per_host":8},)"
                    R"("mesh":{"data":8,"pipeline":8,"tensor":8},)"
                    R"("training":{"global_batch":112,"sequence_length":2048,"microbatch":1,"compute_dtype":"bf16",)"
                    R"("parameter_dtype":"f32","gradient_dtype":"f32","optimizer":"adamw","learning_rate":0.0003,)"
                    R"("clip_norm":1.0,"remat":"selective","attention":"flash"},)"
                    R"("strategies":{"pipeline":{"schedule":"1f1b"},"tensor":{"sequence_parallel":true}}})";
  r.model = {174'604'259'328, 96};
  // 0.52 + 0.11 + 0.29 + 0.05 + 0.03 of 5.2 s
  r.step = {Seconds(5.2), Seconds(2.704), Seconds(0.572), Seconds(1.508), Seconds(0.26), Seconds(0.156)};
  r.startup = {Seconds(5.71)};
  r.throughput = {44110.8, 21.538, Flops(2.41e17 * 1), 141.6, 0.4538, 0.4711, "full"};
  r.memory = {64'400'000'000, 85'899'345'920, true,          10'913'000'000, 10'913'000'000,
              21'826'000'000, 14'448'000'000, 4'700'000'000, 1'600'000'000};
  r.communication = {
      {"all-gather", {"tensor"}, "ring, both directions", 5376, 3.78e11, Seconds(1.21), Seconds(0.31)},
      {"reduce-scatter", {"tensor"}, "ring, both directions", 5376, 3.78e11, Seconds(1.19), Seconds(0.18)},
      {"collective-permute", {"pipeline"}, "direct", 28, 7.05e8, Seconds(0.056), Seconds(0.032)},
      {"reduce-scatter", {"data"}, "two-level over hosts", 12, 9.55e9, Seconds(0.29), Seconds(0.026)},
      {"all-gather", {"data"}, "two-level over hosts", 12, 4.77e9, Seconds(0.15), Seconds(0.018)},
      {"all-reduce", {"pipeline"}, "tree", 1, 1.2e9, Seconds(0.041), Seconds(0.006)}};
  r.verification = passed_verification();
  r.diagnosis = {
      {"peak FLOP/s", 0.241, "14 more microbatches (global batch 224): 13.9 % more tokens/s, measured"},
      {"NVLink", 0.088, "tensor 4, pipeline 16: 2.1 % slower, measured; the bubble grows by more than the link saves"},
      {"HBM", 0.047, "remat none: 4.4 % faster, needs 78.1 GiB of 80 GiB, measured"},
      {"NIC", 0.009, ""}};
  r.assumptions = {
      {"peak bf16", 3.12e14, "FLOP/s", "NVIDIA A100 datasheet, dense", Confidence::vendor},
      {"HBM bandwidth", 2.039e12, "B/s", "NVIDIA A100 80 GB datasheet", Confidence::vendor},
      {"NVLink, one direction", 3e11, "B/s", "NVIDIA A100 datasheet: 600 GB/s both directions", Confidence::vendor},
      {"NIC bandwidth", 2.5e10, "B/s", "8 x HDR InfiniBand per host, Narayanan et al. 2021, section 5",
       Confidence::paper},
      {"NVLink latency", 1.5e-6, "s", "all-reduce of small messages, fitted", Confidence::fitted},
      {"kernel floor", 4e-6, "s", "launch of an empty kernel", Confidence::measured},
      {"matrix unit tile", std::string("128 x 128 x 32"), "", "cuBLAS default for bf16", Confidence::guess},
      {"runtime reserve", 1.6e9, "B", "CUDA context and NCCL buffers", Confidence::guess},
      {"attention block", 128.0, "rows", "FlashAttention-2, section 3.3", Confidence::paper}};
  r.device_classes = kStages;
  r.notes = {"no input described: the batch is always there"};
  r.warnings = {
      "scenario.json:9:22: warning: /training/global_batch [bad-value]\n"
      "  14 microbatches for 8 stages leave a bubble of a third of the step"};
  r.timeline = PipelineTimeline().finish();
  return r;
}

Result minimal() {
  Result r;
  r.scenario_json =
      R"({"version":1,"name":"GPT-2 on one chip","model":"gpt2","cluster":{"chip":"tpu-v5e","topology":"1x1"},)"
      R"("mesh":{}})";
  r.model = {124'439'808, 12};
  r.step = {Seconds(0.05), Seconds(0.049), Seconds(0), Seconds(0), Seconds(0), Seconds(0.001)};
  r.startup = {Seconds(0.05)};
  r.throughput.examples_per_s = 160;
  r.memory = {4'000'000'000, 17'179'869'184, true,       500'000'000, 500'000'000,
              1'000'000'000, 1'900'000'000,  50'000'000, 50'000'000};
  return r;
}

Result hostile() {
  Result r = quickstart();
  r.scenario_json =
      R"({"version":1,"name":"</script><script>document.title='broken'</script> \"quotes\" & 'apostrophes' <img src=x onerror=alert(1)> )"
      R"(ALongNameWithoutAnySpacesThatMustNotMakeThePageScrollSidewaysWhateverTheScreenIsWideOrNarrow",)"
      R"("model":{"family":"<b>transformer</b>"},"mesh":{"fsdp</script>":4}})";
  r.step.bubble = Seconds(std::numeric_limits<double>::quiet_NaN());
  r.throughput.mfu = std::numeric_limits<double>::infinity();
  r.memory.peak_bytes += 30'000'000'000;
  r.memory.activations_bytes += 30'000'000'000;
  r.memory.fits = false;
  r.verdict = {false, "out of memory", "<42 GiB> on the fullest chip", "16 GiB", "/training/microbatch"};
  r.verification->passed = false;
  r.verification->culprit = "layer 3, backward: dot[\"</script>\"] all-reduce over <tensor>";
  r.verification->flops_executed += 1;
  r.verification->checks[1].passed = false;
  r.communication[0].collective = "all-gather</script>";
  r.assumptions[0].source = "<a href=\"javascript:alert(1)\">source</a>";
  r.notes = {"a note with <i>markup</i> and a line separator \xE2\x80\xA8 in it"};
  TimelineBuilder builder;
  const std::size_t c = builder.add_class("class </script>", 1);
  Span span;
  span.end_ps = 1'000'000;
  span.label = builder.label("op <b>\"bold\"</b></script>");
  builder.add_span(c, builder.add_stream(c, "compute <i>"), span);
  builder.set_window(0, 2'000'000);
  r.timeline = builder.finish();
  return r;
}

Result quickstart() {
  Result r;
  r.scenario_json = R"({"version":1,"name":"Llama 2 7B on a v5e 4x4 slice","model":"llama2-7b",)"
                    R"("cluster":{"chip":"tpu-v5e","topology":"4x4","slices":1},"mesh":{"fsdp":16},)"
                    R"("training":{"global_batch":64,"sequence_length":4096,"microbatch":1,"compute_dtype":"bf16",)"
                    R"("optimizer":"adamw","remat":"full"}})";
  r.model = {6'738'415'616, 32};
  r.step = {Seconds(5), Seconds(4), Seconds(0.75), Seconds(0), Seconds(0), Seconds(0.25)};
  r.startup = {Seconds(5.125)};
  r.throughput = {52428.8, 12.8, Flops(1.2e16), 150, 0.7614, 0.9, "full"};
  const std::int64_t gib = std::int64_t{1} << 30;
  r.memory = {12 * gib, 16 * gib, true, 3 * gib, 2 * gib, 4 * gib, 2 * gib, gib / 2, gib / 2};
  r.communication = {
      {"all-gather", {"fsdp"}, "two axes, both directions", 128, 2.5e10, Seconds(1.5), Seconds(0.5)},
      {"reduce-scatter", {"fsdp"}, "two axes, both directions", 64, 2.5e10, Seconds(1.25), Seconds(0.25)}};
  r.verification = passed_verification();
  r.verification->mesh = {{"fsdp", 4}};
  r.diagnosis = {{"peak FLOP/s", 0.375, "fsdp 8, tensor 2: 4.5 % slower, measured"}, {"ICI", 0.0625, ""}};
  r.assumptions = {{"peak bf16", 1.97e14, "FLOP/s", "Google Cloud, TPU v5e", Confidence::vendor},
                   {"kernel floor", 2e-6, "s", "no source", Confidence::guess}};
  r.device_classes = 1;
  r.notes = {"no input described: the batch is always there"};
  return r;
}

}  // namespace tpusim::reports::samples
