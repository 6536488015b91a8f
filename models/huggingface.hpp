// A model from the config.json that Hugging Face Transformers writes, for model_type "llama" and "gpt2". Any other
// architecture is refused by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "models/config.hpp"

namespace tpusim::models {

// `text`: the file's contents, at most 1 MiB; `file`: its name for messages. nullopt where the sink got an error. Keys
// that do not change the shape of the model (token ids, dropout, dtypes, versions) are passed over; rope_scaling is a
// warning, since it changes angles and not cost. The defaults of missing keys are those of Transformers' LlamaConfig
// and GPT2Config.
std::optional<ModelConfig> import_huggingface(std::string_view text, const std::string& file, DiagnosticSink& sink);

}  // namespace tpusim::models
