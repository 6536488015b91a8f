#include <algorithm>

#include "sim/scenario/bounds.hpp"
#include "sim/scenario/sections.hpp"

namespace tpusim::scenario {
namespace {

void read_stage(const Json& value, const std::string& where, Context& context, std::vector<InputStage>& out) {
  ObjectReader reader(&value, where, "/input/stages/*", context);
  if (!reader.is_object()) return;
  InputStage stage;
  reader.require("name", "what this stage does, such as \"decode\"");
  reader.require("time_per_example", "the time of one thread for one example, such as \"5 ms\"");
  reader.read("name", stage.name);
  reader.read("threads", stage.threads, {1, kMaxThreads});
  if (reader.find("time_per_example") != nullptr)
    reader.read("time_per_example", stage.time_per_example, {0, kMaxSeconds, true});
  const auto same = [&stage](const InputStage& s) { return s.name == stage.name; };
  if (!stage.name.empty() && std::any_of(out.begin(), out.end(), same))
    context.sink.error(Code::conflict, reader.at("name"),
                       fmt::format("two stages are called \"{}\"", shown(stage.name)));
  out.push_back(std::move(stage));
}

}  // namespace

void read_input(const Json& value, Context& context, InputSpec& out) {
  ObjectReader reader(&value, "/input", "/input", context);
  if (!reader.is_object()) return;
  const Json none = Json::object();
  const Json* storage = reader.find("storage");
  ObjectReader s(storage != nullptr ? storage : &none, "/input/storage", "/input/storage", context);
  s.read("bandwidth", out.storage.bandwidth, {0, kMaxRate, true});
  s.read("latency", out.storage.latency, {0, kMaxSeconds, false});
  s.read_name("shared_by", out.storage.shared_by);
  if (const Json* stages = reader.find("stages")) {
    if (!stages->is_array())
      context.sink.error(Code::wrong_type, "/input/stages",
                         fmt::format("a list of stages is expected, {} found", describe(*stages)));
    else if (stages->size() > kMaxInputStages)
      context.sink.error(Code::too_large, "/input/stages",
                         fmt::format("at most {} stages are possible, {} found", kMaxInputStages, stages->size()));
    else
      for (std::size_t i = 0; i < stages->size(); ++i)
        read_stage((*stages)[i], pointer_to("/input/stages", std::to_string(i)), context, out.stages);
  }
  reader.read("prefetch", out.prefetch, {1, kMaxInputPrefetch});
  reader.read("host_to_chip", out.host_to_chip, {0, kMaxRate, true});
}

}  // namespace tpusim::scenario
