// The readers of the contract's sections, and the checks across them. Private.
#pragma once

#include "sim/scenario/object_reader.hpp"
#include "sim/scenario/scenario.hpp"

namespace tpusim::scenario {

void read_model(const Json& value, Context& context, ModelSpec& out);
void read_cluster(const Json& value, Context& context, ClusterSpec& out);
void read_mesh(const Json& value, Context& context, std::vector<MeshAxis>& out);
// `model` and `mesh` decide which keys have a meaning.
void read_training(const Json* value, const ModelSpec& model, Context& context, TrainingSpec& out);
void read_strategies(const Json* value, const std::vector<MeshAxis>& mesh, Context& context, StrategySpecs& out);
void read_sharding(const Json* value, const std::vector<MeshAxis>& mesh, Context& context, ShardingSpec& out);
void read_input(const Json& value, Context& context, InputSpec& out);

// What several sections must agree on, as far as it shows without the registries: mesh and chips, batch and replicas,
// ...
void check_whole(const Scenario& scenario, Context& context);

// Puts the --set options into the tree, and their pointers into source.sets.
void apply_sets(const std::vector<std::string>& sets, Json& root, SourceText& source, DiagnosticSink& sink);

// Whether a key of /training, or of /training/optimizer, has a meaning.
bool training_key_applies(std::string_view key, const ModelSpec& model);
bool optimizer_key_applies(std::string_view key, Optimizer optimizer);
bool model_key_applies(std::string_view key, const ModelSpec& model);

}  // namespace tpusim::scenario
