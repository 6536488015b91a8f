#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>

#include "cli_support.hpp"
#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/cli/commands.hpp"
#include "sim/cli/progress.hpp"
#include "sim/cli/version.hpp"

using namespace tpusim::cli;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder that is gone when the test is over.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tpusim-cli-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* file) const { return (path / file).string(); }
};

}  // namespace

TEST_CASE("the version is that of the build") {
  const std::string cmake = text_of(std::string(TPUSIM_SOURCE_DIR) + "/CMakeLists.txt");
  CHECK(cmake.find("project(tpusim VERSION " + std::string(kVersion) + " ") != std::string::npos);
  const Said said = call({"--version"});
  CHECK(said.status == exit_done);
  CHECK(said.out == "tpusim " + std::string(kVersion) + "\n");
}

TEST_CASE("every command has help with examples") {
  for (const char* command : {"run", "check", "explain", "topology", "list", "new"}) {
    CAPTURE(std::string(command));
    const Said said = call({command, "--help"});
    CHECK(said.status == exit_done);
    CHECK(said.out.find("Examples:\n  tpusim " + std::string(command)) != std::string::npos);
    CHECK(said.err == "");
  }
  CHECK(call({"--help"}).out.find("Exit status: 0 done;") != std::string::npos);
}

TEST_CASE("a misspelt command or option is told with the nearest") {
  CHECK(call({"rnu"}).status == exit_usage);
  CHECK(call({"rnu"}).err ==
        "tpusim: no command is called \"rnu\"; did you mean \"run\"?\n"
        "commands: run, check, explain, topology, list, new; tpusim --help says more\n");
  CHECK(call({}).err.find("a command is expected") != std::string::npos);
  CHECK(call({"--versio"}).err.find("did you mean \"--version\"?") != std::string::npos);
  const Said option = call({"run", "s.json", "--jso"});
  CHECK(option.status == exit_usage);
  CHECK(option.err ==
        "tpusim run: no such option: --jso; did you mean \"--json\"?\ntpusim run --help says how it is used\n");
  CHECK(call({"run"}).err.find("FILE is required") != std::string::npos);
  CHECK(call({"list", "modls"}).err.find("did you mean \"models\"?") != std::string::npos);
}

TEST_CASE("the starter scenario is sound as it stands, and with each of its comments switched on") {
  const Said starter = call({"new"});
  REQUIRE(starter.status == exit_done);
  CHECK(call({"check", "-"}, starter.out).status == exit_done);

  // The examples in comments: lines that begin with "//   " and a quote. One at a time takes the place of its section.
  for (const auto& change : std::vector<std::pair<std::string, std::string>>{
           {"model", R"({"preset": "llama2-7b", "layers": 16})"},
           {"model", R"({"family": "transformer", "layers": 32, "embed": 4096, "heads": 32, "kv_heads": 32,
             "head_dim": 128, "mlp": 11008, "gated_mlp": true, "vocab": 32000, "tied_embeddings": false})"},
           {"cluster", R"({"chip": {"preset": "tpu-v5e", "hbm_bandwidth": "900 GB/s"}, "topology": "4x4"})"},
           {"cluster", R"({"chip": "h100", "hosts": 2, "chips_per_host": 8})"},
           {"cluster", R"({"preset": "dgx-h100", "hosts": 2})"},
           {"sharding", R"({"parameters": {"vocab": ["fsdp"]}, "activations": {"residual.embed": []}})"},
           {"input", R"({"storage": {"bandwidth": "2 GB/s", "latency": "1 ms", "shared_by": "job"},
             "stages": [{"name": "decode", "threads": 8, "time_per_example": "5 ms"}],
             "prefetch": 2, "host_to_chip": "15 GB/s"})"}}) {
    CAPTURE(change.second);  // clang 14 takes no structured binding into the lambda that CAPTURE is
    const Said said = call({"check", "-", "--set", change.first + "=" + change.second}, starter.out);
    CHECK(said.err == "");
    CHECK(said.status == exit_done);
  }
}

TEST_CASE("new never replaces a file unasked") {
  const Folder folder;
  const std::string file = folder / "s.json";
  CHECK(call({"new", file}).status == exit_done);
  CHECK(text_of(file) == call({"new"}).out);
  std::ofstream(file) << "mine";
  const Said refused = call({"new", file});
  CHECK(refused.status == exit_usage);
  CHECK(refused.err.find("the file exists already; --force replaces it") != std::string::npos);
  CHECK(text_of(file) == "mine");
  CHECK(call({"new", file, "--force"}).status == exit_done);
  CHECK(text_of(file) == call({"new"}).out);
  // Nothing is left beside it.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("a full standard output is noticed") {
  std::istringstream in;
  std::ostringstream err;
  std::ofstream full("/dev/full");
  REQUIRE(full.good());
  Streams streams{in, full, err};
  CHECK(run_command({"new"}, streams) == exit_usage);
  CHECK(err.str() == "tpusim: standard output cannot be written to\n");
}

TEST_CASE("whatever is thrown becomes words and an exit status") {
  const auto status_of = [](auto thrown, const std::string& words) {
    std::istringstream in;
    std::ostringstream out, err;
    Streams streams{in, out, err};
    const int status = guarded([&]() -> int { throw thrown; }, streams);
    CHECK(err.str().find(words) != std::string::npos);
    CHECK(out.str() == "");
    return status;
  };
  tpusim::Diagnostic d;
  d.code = tpusim::Code::unknown_name;
  d.pointer = "/model";
  d.message = "unknown name \"x\"";
  CHECK(status_of(tpusim::ScenarioError({d}), "/model [unknown-name]") == exit_usage);
  CHECK(status_of(tpusim::CapacityError("the bytes of a tensor does not fit in 64 bits"), "the bytes of a tensor") ==
        exit_impossible);
  CHECK(status_of(std::bad_alloc(), "too little memory") == exit_impossible);
  CHECK(status_of(tpusim::InternalError("a.cpp:1: broken"), "a.cpp:1: broken") == exit_internal);
  CHECK(status_of(42, "please report") == exit_internal);
}

TEST_CASE("progress is silent where nobody watches, and in the first second") {
  std::istringstream in;
  std::ostringstream out, err;
  Streams streams{in, out, err};
  {
    Progress progress(streams);
    progress.step("timing", 0.5);
  }
  streams.err_is_terminal = true;
  {
    Progress progress(streams);
    progress.step("timing", 0.5);
  }
  CHECK(err.str() == "");
}

TEST_CASE("a report or a trace is not written over the scenario that is read") {
  const Folder folder;
  const std::string file = folder / "s.json", text = R"({"model": "gpt2"})";
  std::ofstream(file) << text;
  for (const char* option : {"--html", "--trace"}) {
    const Said said = call({"run", file, option, file});
    CHECK(said.status == exit_usage);
    CHECK(said.err.find("is read by this run and would be lost") != std::string::npos);
    CHECK(text_of(file) == text);
  }
}

TEST_CASE("a report or a trace is not written over the configuration that the scenario imports") {
  const Folder folder;
  const std::string config = R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 128,
    "vocab_size": 100})";
  std::ofstream(folder / "config.json") << config;
  std::ofstream(folder / "s.json") << R"({"model": {"huggingface": "config.json"}, "cluster": {"chip": "tpu-v5e",
    "topology": "1x1"}, "training": {"global_batch": 1, "sequence_length": 16}})";
  for (const char* option : {"--html", "--trace"}) {
    const Said said = call({"run", folder / "s.json", "--no-verify", option, folder / "config.json"});
    CHECK(said.status == exit_usage);
    CHECK(said.err.find("is read by this run and would be lost") != std::string::npos);
    CHECK(text_of(folder / "config.json") == config);
  }
  CHECK(call({"run", folder / "s.json", "--no-verify"}).status == exit_done);
}

TEST_CASE("two names of one file are one file, for the report and the trace") {
  const Folder folder;
  std::filesystem::create_directories(folder / "in");
  const Said said = call({"run", "scenarios/gpt2-one-chip.json", "--no-verify", "--html", folder / "out", "--trace",
                          folder / "in/../out"});
  CHECK(said.status == exit_usage);
  CHECK(said.err.find("each needs its own") != std::string::npos);
}

TEST_CASE("what a user wrote does not reach the terminal as control characters") {
  const std::string escape = "\x1b[31mx",
                    c1 = "\xc2\x9b"
                         "31mx",
                    bidi = "\xe2\x80\xaex";
  for (const std::string& bad : {escape, c1, bidi})
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{bad},
                                                                                       {"list", bad},
                                                                                       {"run", bad},
                                                                                       {"run", "a.json", "--" + bad},
                                                                                       {"run", "a.json", bad},
                                                                                       {"new", bad + "/a"}}) {
      const Said said = call(words);
      CHECK(said.status == exit_usage);
      CHECK(said.err.find(bad) == std::string::npos);
    }
}

TEST_CASE("a report or a trace does not go to standard output, which is the result's") {
  for (const char* option : {"--html", "--trace"}) {
    const Said said = call({"run", "nothing.json", option, "-"});
    CHECK(said.status == exit_usage);
    CHECK(said.out == "");
    CHECK(said.err.find("standard output belongs to the table or the JSON") != std::string::npos);
  }
}

TEST_CASE("explain ends with the formula of each headline number, and its values are those of a run") {
  const std::string file = TPUSIM_SOURCE_DIR "/scenarios/quickstart.json";
  const std::string table = call({"run", file, "--no-verify"}).out, text = call({"explain", file}).out;
  const auto after = [](const std::string& from, const std::string& word) {
    const std::size_t at = from.find(word);
    REQUIRE(at != std::string::npos);
    return from.substr(at + word.size());
  };
  const std::string step = after(table, "step time     ");  // "1.44 s in the steady state ..."
  const std::string numbers = after(text, "\nnumbers\n");
  CHECK(numbers.find(" = " + step.substr(0, step.find(" in the steady")) + "\n") != std::string::npos);
  const std::string mfu = after(table, "MFU           ");  // "66.4 % of peak ..."
  const std::string line = after(numbers, "  mfu = ").substr(0, after(numbers, "  mfu = ").find('\n'));
  CHECK(std::strtod(line.substr(line.rfind(' ')).c_str(), nullptr) * 100 ==
        doctest::Approx(std::strtod(mfu.c_str(), nullptr)).epsilon(0.001));  // the table rounds to three digits
  CHECK(numbers.find("memory.peak_bytes") != std::string::npos);
  CHECK(numbers.find("hfu = ") != std::string::npos);
}

TEST_CASE("explain and topology tell a plan that cannot work from a wrong scenario by exit status, as check does") {
  const std::string file = TPUSIM_SOURCE_DIR "/scenarios/palm-540b.json";
  for (const char* command : {"check", "explain", "topology"}) {
    // 7 heads over tensor 12
    CHECK(call({command, file, "--set", "model.heads=7"}).status == exit_impossible);
    CHECK(call({command, file, "--set", "model=palm-541b"}).status == exit_usage);
  }
}

TEST_CASE("topology reads standard input and --set, and prints the network although the mesh cannot be used") {
  const std::string file = TPUSIM_SOURCE_DIR "/scenarios/quickstart.json";
  const Said said = call({"topology", file});
  CHECK(said.status == exit_done);
  CHECK(said.err == "");
  CHECK(call({"topology", "-"}, text_of(file)).out == said.out);
  const Said other = call({"topology", file, "--set", "cluster.topology=2x8"});
  CHECK(other.status == exit_done);
  CHECK(other.out.find("diameter          8 links\n") != std::string::npos);  // 1 + 7
  const Said impossible = call({"topology", file, "--set", "model.heads=7", "--set", "model.kv_heads=7", "--set",
                                "mesh.fsdp=8", "--set", "mesh.tensor=2"});
  CHECK(impossible.status == exit_impossible);
  CHECK(impossible.out.find("diameter          6 links\n") != std::string::npos);
  CHECK(impossible.err.find("/mesh/tensor: the plan cannot work: tensor 2 does not divide") != std::string::npos);
  const Said wrong = call({"topology", file, "--set", "mesh.fsdp=8"});
  CHECK(wrong.status == exit_usage);
  CHECK(wrong.out == "");
}
