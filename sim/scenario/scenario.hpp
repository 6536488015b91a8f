// What is asked: the scenario (input contract, version 1) as plain data.
//
// `read` (read.hpp) makes a Scenario from JSON text and reports every fault; `to_json` (write.hpp) writes one back with
// every default filled in. This room knows the contract's shape and nothing of the registries: names of chips, models
// and cluster presets are checked by the session, which points at a field by its JSON pointer ("/cluster/chip") and
// lets `locate` (source.hpp) add file, line and column.
//
// An optional that is empty means: the scenario leaves it to the thing named in the comment (a preset, the chip, the
// cluster's size). Everything else holds its documented default. Units: bytes, seconds, bytes a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/scenario/source.hpp"

namespace tpusim::scenario {

enum class Family { transformer, mlp, fixed };
enum class Positions { rotary, learned, none };
enum class Norm { rms, layer };
enum class Activation { silu, gelu, relu };

// /model. Exactly one of preset, huggingface and family is given; fields beside it override it.
// family transformer requires layers, embed, heads, mlp, vocab. The defaults of the others, where no preset says
// otherwise: kv_heads = heads, head_dim = embed / heads, gated_mlp true, tied_embeddings false, positions rotary,
// max_positions = sequence_length (learned positions only), norm rms, norm_eps 1e-5, activation silu, parallel_block
// false, bias false, rope_theta 10000. family mlp (blocks x -> x + W2 act(W1 x)) requires layers, embed, mlp; gated_mlp
// false, activation relu, bias false. family fixed requires step_compute.
struct ModelSpec {
  std::string preset;       // "llama2-70b"; "" when not given
  std::string huggingface;  // path of a config.json, as written; relative to the scenario's folder
  std::optional<Family> family;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> embed;     // width of the residual stream
  std::optional<std::int64_t> heads;     // query heads
  std::optional<std::int64_t> kv_heads;  // key and value heads; divides heads
  std::optional<std::int64_t> head_dim;
  std::optional<std::int64_t> mlp;  // inner width
  std::optional<std::int64_t> vocab;
  std::optional<std::int64_t> max_positions;
  std::optional<bool> gated_mlp;  // three matrices (SwiGLU and the like) instead of two
  std::optional<bool> tied_embeddings;
  std::optional<bool> parallel_block;  // attention and MLP side by side on one norm (PaLM)
  std::optional<bool> bias;
  std::optional<Positions> positions;
  std::optional<Norm> norm;
  std::optional<Activation> activation;
  std::optional<double> norm_eps;
  std::optional<double> rope_theta;
  std::optional<Seconds> step_compute;  // family fixed: compute of one step on every chip
  std::optional<Bytes> example_bytes;   // size in storage of one example; language models: 4 bytes a token
  bool operator==(const ModelSpec&) const = default;
};

// A number, switch or text beside a preset whose meaning the catalogue knows ("peak_bf16": "500 TFLOP/s").
struct Override {
  std::string name;
  std::variant<double, bool, std::string> value;
  bool operator==(const Override&) const = default;
};

// /cluster/chip: a catalogue name, {"preset": name, overrides...}, or a whole chip without preset.
struct ChipSpec {
  std::string preset;
  std::vector<Override> overrides;  // in the order of the file; pointer "/cluster/chip/<name>"
  bool operator==(const ChipSpec&) const = default;
};

// /cluster. Either a slice shape (topology, slices) or hosts (hosts, chips_per_host), of a chip or of a cluster preset.
struct ClusterSpec {
  std::string preset;  // "dgx-h100"; "" when chip is given
  ChipSpec chip;
  std::vector<std::int64_t> topology;          // {4, 4, 8} for "4x4x8"; empty with hosts
  std::int64_t slices = 1;                     // slices of that shape, joined by the data center network
  std::optional<std::int64_t> hosts;           // default 1 where neither topology nor hosts is given
  std::optional<std::int64_t> chips_per_host;  // default: the preset's or the chip's
  bool operator==(const ClusterSpec&) const = default;
  // topology × slices or hosts × chips_per_host; nothing where chips_per_host is left to the catalogue.
  std::optional<std::int64_t> chips() const;
};

enum class DType { bf16, f32, f64 };
enum class Optimizer { sgd, momentum, adam, adamw, adafactor };
enum class Remat { none, selective, full };
enum class Attention { flash, unfused };
enum class FlopsConvention { full, causal };  // of attention's scores, for MFU; full = PaLM, appendix B

// /training/optimizer: a name, or {"name": ..., fields}.
struct OptimizerSpec {
  Optimizer name = Optimizer::adamw;
  double momentum = 0.9;      // momentum only
  double beta1 = 0.9;         // adam, adamw
  double beta2 = 0.95;        // adam, adamw
  double epsilon = 1e-8;      // adam, adamw; adafactor uses 1e-30 inside the root unless given
  double weight_decay = 0.1;  // adamw only
  bool operator==(const OptimizerSpec&) const = default;
};

// /training
struct TrainingSpec {
  std::int64_t global_batch = 0;                // examples in one step of the whole job; required, > 0
  std::optional<std::int64_t> sequence_length;  // default: transformer 2048; mlp and fixed 1
  // Examples in one microbatch of one replica. Default: all of its share; with a pipeline the largest divisor of it
  // that gives at least 4 microbatches a stage (else 1).
  std::optional<std::int64_t> microbatch;
  DType compute_dtype = DType::bf16;
  DType parameter_dtype = DType::f32;
  DType gradient_dtype = DType::f32;
  OptimizerSpec optimizer;
  double learning_rate = 3e-4;
  double clip_norm = 1.0;  // of the global gradient norm; 0 (or null in the file) turns clipping off
  Remat remat = Remat::none;
  Attention attention = Attention::flash;
  FlopsConvention flops_convention = FlopsConvention::full;
  bool operator==(const TrainingSpec&) const = default;
};

// One mesh axis; its name is its strategy: "data", "fsdp", "tensor" or "pipeline".
struct MeshAxis {
  std::string name;
  std::int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

enum class Schedule { gpipe, one_f_one_b };  // "gpipe", "1f1b"
enum class Compression { none };

struct DataStrategy {
  bool overlap = true;  // all-reduce buckets while backward runs
  std::int64_t bucket_bytes = 25 * 1024 * 1024;
  Compression compression = Compression::none;
  bool operator==(const DataStrategy&) const = default;
};
struct FsdpStrategy {
  int zero_stage = 3;  // 1 optimizer state split, 2 gradients too, 3 parameters too
  int prefetch = 1;    // parameters are gathered this many blocks ahead, 0 (when needed) or 1
  bool operator==(const FsdpStrategy&) const = default;
};
struct TensorStrategy {
  bool sequence_parallel = false;  // residual stream split over the sequence between blocks
  bool operator==(const TensorStrategy&) const = default;
};
struct PipelineStrategy {
  Schedule schedule = Schedule::one_f_one_b;
  int virtual_stages = 1;
  bool operator==(const PipelineStrategy&) const = default;
};
// /strategies; one of an axis that the mesh lacks is an error, so these are meant only where the mesh has the axis.
struct StrategySpecs {
  DataStrategy data;
  FsdpStrategy fsdp;
  TensorStrategy tensor;
  PipelineStrategy pipeline;
  bool operator==(const StrategySpecs&) const = default;
};

// One rule of a table: logical axis (batch seq embed kv_heads q_group head_dim mlp vocab position), alone ("mlp") or at
// a place (residual attention mlp logits; "residual.seq"), to the mesh axes that split it, major first.
struct ShardingRule {
  std::string key;
  std::vector<std::string> mesh_axes;  // empty = whole
  std::string_view place() const;      // "residual"; "" for a rule that holds everywhere
  std::string_view axis() const;       // "seq"
  bool operator==(const ShardingRule&) const = default;
};
// /sharding: by hand, over what the strategies say; in the order of the file.
struct ShardingSpec {
  std::vector<ShardingRule> parameters;
  std::vector<ShardingRule> gradients;
  std::vector<ShardingRule> optimizer;
  std::vector<ShardingRule> activations;
  bool operator==(const ShardingSpec&) const = default;
};

enum class SharedBy { job, host };

struct StorageSpec {
  std::optional<BytesPerSecond> bandwidth;  // default: infinite
  Seconds latency{0};                       // of each batch read
  SharedBy shared_by = SharedBy::job;       // whether bandwidth is the whole job's or each host's
  bool operator==(const StorageSpec&) const = default;
};
struct InputStage {
  std::string name;
  std::int64_t threads = 1;     // on each host
  Seconds time_per_example{0};  // of one thread
  bool operator==(const InputStage&) const = default;
};
// /input
struct InputSpec {
  StorageSpec storage;
  std::vector<InputStage> stages;
  std::int64_t prefetch = 2;                   // batches prepared ahead of the step that needs them
  std::optional<BytesPerSecond> host_to_chip;  // of one host, to all its chips; default: infinite
  bool operator==(const InputSpec&) const = default;
};

// A value that the scenario left out and this room filled in; the result repeats it under `assumptions`.
struct Default {
  std::string name;   // "training.remat"
  std::string value;  // "none", "0.0003"
  std::string unit;   // "s", "bytes"; "" for a pure number or a name
  bool operator==(const Default&) const = default;
};

struct Scenario {
  std::string name;
  ModelSpec model;
  ClusterSpec cluster;
  // Major to minor. Left out: {"data": chips}, empty here where chips() is not known yet, for the session to fill.
  std::vector<MeshAxis> mesh;
  TrainingSpec training;
  StrategySpecs strategies;
  ShardingSpec sharding;
  std::optional<InputSpec> input;  // empty: the batch is always there

  std::vector<Default> defaults;  // in the contract's order
  SourceText source;              // for locate(); not part of what is asked

  std::int64_t mesh_size(std::string_view axis) const;  // 1 for an axis that the mesh lacks
  // Compares what is asked; defaults and source are left out.
  bool operator==(const Scenario& other) const;
};

// The names of the contract: "1f1b", "selective".
std::string_view to_string(Family);
std::string_view to_string(Positions);
std::string_view to_string(Norm);
std::string_view to_string(Activation);
std::string_view to_string(DType);
std::string_view to_string(Optimizer);
std::string_view to_string(Remat);
std::string_view to_string(Attention);
std::string_view to_string(FlopsConvention);
std::string_view to_string(Schedule);
std::string_view to_string(Compression);
std::string_view to_string(SharedBy);

}  // namespace tpusim::scenario
