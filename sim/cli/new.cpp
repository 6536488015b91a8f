// `tpusim new`: a commented scenario to start from.
#include <filesystem>
#include <ostream>

#include "sim/base/control.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/input_output.hpp"

namespace tpusim::cli {
namespace {

// Everything that can be said, what is usual switched on, the rest in comments. A test reads it, with and without them.
constexpr const char* kStarter = R"(// A scenario for tpusim: what to train, on which machine, and how.
// Comments start with //; the rest is JSON. Sizes, times and rates are numbers (bytes, seconds, bytes a second) or text
// with a unit ("25 MiB", "10 us", "2 GB/s").
//
//   tpusim check THIS_FILE     all that is wrong with it
//   tpusim run THIS_FILE       the answer
{
  "version": 1,
  "name": "Llama 2 7B on 16 v5e chips",

  // The model: a preset (tpusim list models), a preset with changes, a Hugging Face config.json, or sizes of your own.
  //   "model": {"preset": "llama2-7b", "layers": 16},
  //   "model": {"huggingface": "config.json"},
  //   "model": {"family": "transformer", "layers": 32, "embed": 4096, "heads": 32, "kv_heads": 32, "head_dim": 128,
  //             "mlp": 11008, "gated_mlp": true, "vocab": 32000, "tied_embeddings": false},
  "model": "llama2-7b",

  // The machine: a TPU slice of some shape (and how many of them), or hosts of GPUs (tpusim list chips, list topologies).
  // Any number of a chip can be changed.
  //   "cluster": {"chip": "tpu-v5p", "topology": "4x4x8", "slices": 2},
  //   "cluster": {"chip": "h100", "hosts": 16, "chips_per_host": 8},
  //   "cluster": {"preset": "dgx-h100", "hosts": 16},
  //   "cluster": {"chip": {"preset": "tpu-v5e", "hbm_bandwidth": "900 GB/s"}, "topology": "4x4"},
  "cluster": {"chip": "tpu-v5e", "topology": "4x4"},

  // How the chips are divided, major to minor; the sizes multiply to the number of chips. An axis's name is its strategy:
  //   data      each replica has the whole model, gradients are summed
  //   fsdp      as data, but parameters, gradients and optimizer state are split (ZeRO)
  //   tensor    the matrices of a layer are split (Megatron)
  //   pipeline  the layers are split into stages
  "mesh": {"fsdp": 16},

  "training": {
    "global_batch": 16,            // examples (here: sequences) in one step of the whole job
    "sequence_length": 4096,       // tokens in one of them
    // "microbatch": 1,            // examples in one microbatch of one replica; gradients are accumulated over them
    "compute_dtype": "bf16",       // bf16, f32 or f64
    "parameter_dtype": "f32",
    "gradient_dtype": "f32",
    "optimizer": "adamw",          // sgd, momentum, adam, adamw or adafactor
    "learning_rate": 3e-4,
    "clip_norm": 1.0,              // of the global gradient norm; 0 turns it off
    "remat": "full",               // none, selective (attention's scores) or full (only layer inputs are kept)
    "attention": "flash"           // flash or unfused
  },

  // Settings of the axes that the mesh has.
  //   "data": {"overlap": true, "bucket_bytes": "25 MiB"},
  //   "tensor": {"sequence_parallel": true},
  //   "pipeline": {"schedule": "1f1b"},                    // or gpipe
  "strategies": {
    "fsdp": {"zero_stage": 3, "prefetch": 1}
  }

  // Sharding by hand, over what the strategies say: logical axis, alone or at a place, to mesh axes.
  //   ,"sharding": {"parameters": {"vocab": ["fsdp"]}, "activations": {"residual.embed": []}}
  //
  // The way of the data; left out, a batch is always there.
  //   ,"input": {"storage": {"bandwidth": "2 GB/s", "latency": "1 ms", "shared_by": "job"},
  //              "stages": [{"name": "decode", "threads": 8, "time_per_example": "5 ms"}],
  //              "prefetch": 2, "host_to_chip": "15 GB/s"}
}
)";

class New : public Command {
 public:
  void declare(CLI::App& app) override {
    parser = app.add_subcommand("new", "write a commented scenario to start from");
    parser->add_option("FILE", file_, "where to; standard output when left out");
    parser->add_flag("--force", force_, "replace a file that exists");
    parser->footer(
        "Examples:\n"
        "  tpusim new my.json\n"
        "  tpusim new | tpusim run -\n");
  }

  int run(Streams& streams) override {
    if (file_.empty() || file_ == "-") {
      streams.out << kStarter;
      return exit_done;
    }
    std::error_code error;
    if (!force_ && std::filesystem::exists(file_, error) && !std::filesystem::is_directory(file_, error)) {
      Diagnostic d;
      d.code = Code::io;
      d.message = "the file exists already; --force replaces it";
      d.file = file_;
      streams.err << format(d) << '\n';
      return exit_usage;
    }
    if (!write_file(file_, kStarter, "the new scenario", streams)) return exit_usage;
    streams.err << "wrote " << without_controls(file_, "?") << "; next: tpusim run " << without_controls(file_, "?")
                << '\n';
    return exit_done;
  }

 private:
  std::string file_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_new() {
  return std::make_unique<New>();
}

}  // namespace tpusim::cli
