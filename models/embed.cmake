# Writes models/cards/*.json into a generated source file as string literals, so that the binary needs no data files. Add a
# preset: write its card and add its name here; the order is the order of `list models`.
set(TPUSIM_MODELS gpt2 gpt3-175b llama2-7b llama2-13b llama2-70b llama3.1-8b llama3.1-70b llama3.1-405b palm-8b palm-62b
                  palm-540b)

set(text "// Generated from models/cards/*.json by models/embed.cmake; do not edit.\n")
string(APPEND text "#include \"models/embedded.hpp\"\n\nnamespace tpusim::models {\n\n")
string(APPEND text "std::vector<EmbeddedCard> embedded_cards() {\n  return {\n")
foreach(model ${TPUSIM_MODELS})
  set(card ${CMAKE_SOURCE_DIR}/models/cards/${model}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${card})
  file(READ ${card} json)
  string(APPEND text "    {\"${model}\", R\"card(${json})card\"},\n")
endforeach()
string(APPEND text "  };\n}\n\n}  // namespace tpusim::models\n")

set(generated ${CMAKE_BINARY_DIR}/generated/models/embedded_cards.cpp)
file(CONFIGURE OUTPUT ${generated} CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
target_sources(tpusim_models PRIVATE ${generated})
