# Writes topologies/catalogue/*.json and libraries/*.json into a generated source file as string literals, so that the binary needs no data
# files. Add a chip: write its card and add its name here; the order is the order of `list chips`.
set(TPUSIM_CHIPS tpu-v2 tpu-v3 tpu-v4 tpu-v5e tpu-v5p tpu-v6e tpu7x v100 a100-40gb a100-80gb h100 h200 b200
                 cpu-epyc-9654 ideal-v5p)

set(TPUSIM_LIBRARIES nccl)

# embed_cards FUNCTION FOLDER NAME...: appends FUNCTION, which returns the cards topologies/FOLDER/NAME.json, to `text`.
function(embed_cards function folder)
  string(APPEND text "std::vector<EmbeddedCard> ${function}() {\n  return {\n")
  foreach(name ${ARGN})
    set(card ${CMAKE_SOURCE_DIR}/topologies/${folder}/${name}.json)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${card})
    file(READ ${card} json)
    string(APPEND text "    {\"${name}\", R\"card(${json})card\"},\n")
  endforeach()
  string(APPEND text "  };\n}\n")
  set(text "${text}" PARENT_SCOPE)
endfunction()

set(text "// Generated from the cards in topologies/ by topologies/embed.cmake; do not edit.\n")
string(APPEND text "#include \"topologies/embedded.hpp\"\n\nnamespace tpusim::topologies {\n\n")
embed_cards(embedded_cards catalogue ${TPUSIM_CHIPS})
embed_cards(embedded_libraries libraries ${TPUSIM_LIBRARIES})
string(APPEND text "\n}  // namespace tpusim::topologies\n")

set(generated ${CMAKE_BINARY_DIR}/generated/topologies/embedded_cards.cpp)
file(CONFIGURE OUTPUT ${generated} CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
target_sources(tpusim_topologies PRIVATE ${generated})
