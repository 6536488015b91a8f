#include "sim/scenario/read.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "sim/scenario/bounds.hpp"
#include "sim/scenario/contract.hpp"
#include "sim/scenario/scan.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

void read_version(const ObjectReader& root, Context& context) {
  const Json* version = root.find("version");
  if (version == nullptr) {
    context.defaults.push_back({"version", "1", ""});
    return;
  }
  if (!version->is_number_integer())
    context.sink.error(Code::wrong_type, "/version",
                       fmt::format("the contract's version is 1, {} found", describe(*version)), "1");
  else if (*version != 1)
    context.sink.error(Code::not_in_version, "/version",
                       fmt::format("version {} of the scenario contract; this tpusim reads version 1", version->dump()),
                       "1");
}

void refuse_planned(const ObjectReader& root, Context& context) {
  for (const std::string& key : section("").keys) {
    const Json* v = is_planned_key(key) ? root.find(key) : nullptr;
    if (v == nullptr || (v->is_object() && v->empty())) continue;
    const bool list = key == "sweep" || key == "faults_static";  // lists too, in the versions to come
    if (!v->is_object() && !(list && v->is_array()) && !(key == "baseline" && v->is_string())) {
      context.sink.error(Code::wrong_type, root.at(key), fmt::format("an object is expected, {} found", describe(*v)));
      continue;
    }
    context.sink.error(Code::not_in_version, root.at(key),
                       fmt::format("\"{}\" is part of the contract, and not in this version", key));
  }
}

void read_root(const Json& value, Context& context, Scenario& out) {
  ObjectReader root(&value, "", "", context);
  if (!root.is_object()) return;
  read_version(root, context);
  refuse_planned(root, context);
  root.read("name", out.name);
  if (root.require("model", "a preset's name, or an object")) read_model(*root.find("model"), context, out.model);
  if (root.require("cluster", "a chip, and a topology or hosts"))
    read_cluster(*root.find("cluster"), context, out.cluster);
  if (const Json* mesh = root.find("mesh")) {
    read_mesh(*mesh, context, out.mesh);
  } else if (context.clean("/cluster") && out.cluster.chips()) {
    out.mesh = {{"data", *out.cluster.chips()}};
    context.defaults.push_back({"mesh.data", std::to_string(*out.cluster.chips()), ""});
  }
  read_training(root.find("training"), out.model, context, out.training);
  read_strategies(root.find("strategies"), out.mesh, context, out.strategies);
  read_sharding(root.find("sharding"), out.mesh, context, out.sharding);
  if (const Json* input = root.find("input")) read_input(*input, context, out.input.emplace());
  check_whole(out, context);
}

// By place in the text; what has none (--set) comes last, in the order of detection.
void sort_by_place(std::vector<Diagnostic>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Diagnostic& a, const Diagnostic& b) {
    if ((a.line == 0) != (b.line == 0)) return b.line == 0;
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
}

void read_text(std::string_view text, const std::vector<std::string>& sets, DiagnosticSink& sink, Scenario& out) {
  if (text.size() > kMaxText) {
    sink.error(Code::too_large, "", fmt::format("a scenario of more than {} bytes", kMaxText));
    return;
  }
  out.source.text = std::string(text);
  if (!scan(text, {}, sink)) return;
  Json root;
  try {
    root = Json::parse(text, nullptr, true, true);
  } catch (const Json::exception& e) {  // the scanner is at least as strict, so this is for what it cannot know
    sink.error(Code::syntax, "", fmt::format("not JSON: {}", e.what()));
    return;
  }
  apply_sets(sets, root, out.source, sink);
  Context context{sink, out.defaults};
  read_root(root, context, out);
}

}  // namespace

Scenario read(std::string_view text, std::string file_name, DiagnosticSink& sink,
              const std::vector<std::string>& sets) {
  Scenario out;
  out.source.file = std::move(file_name);
  DiagnosticSink own;
  read_text(text, sets, own, out);
  locate(own.all(), out.source);
  sort_by_place(own.all());
  for (Diagnostic& d : own.all()) sink.add(std::move(d));
  return out;
}

Scenario load(const std::string& path, DiagnosticSink& sink, const std::vector<std::string>& sets) {
  const auto fail = [&](std::string why) {
    Diagnostic d;
    d.code = Code::io;
    d.message = std::move(why);
    d.file = path;
    sink.add(std::move(d));
    Scenario empty;
    empty.source.file = path;
    return empty;
  };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return fail("this is a directory; a scenario file is expected");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(fmt::format("cannot be read: {}", std::strerror(errno != 0 ? errno : EIO)));
  // One byte more than is allowed is enough to know that it is too much.
  std::string text(kMaxText + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return fail("cannot be read to its end");
  text.resize(static_cast<std::size_t>(file.gcount()));
  return read(text, path, sink, sets);
}

}  // namespace tpusim::scenario
