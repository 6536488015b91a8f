# Writes topologies/catalogue/*.json into a generated source file as string literals, so that the binary needs no data
# files. Add a chip: write its card and add its name here; the order is the order of `list chips`.
set(TPUSIM_CHIPS tpu-v2 tpu-v3 tpu-v4 tpu-v5e tpu-v5p tpu-v6e tpu7x v100 a100-40gb a100-80gb h100 h200 b200
                 cpu-epyc-9654 ideal-v5p)

set(text "// Generated from topologies/catalogue/*.json by topologies/embed.cmake; do not edit.\n")
string(APPEND text "#include \"topologies/embedded.hpp\"\n\nnamespace tpusim::topologies {\n\n")
string(APPEND text "std::vector<EmbeddedCard> embedded_cards() {\n  return {\n")
foreach(chip ${TPUSIM_CHIPS})
  set(card ${CMAKE_SOURCE_DIR}/topologies/catalogue/${chip}.json)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${card})
  file(READ ${card} json)
  string(APPEND text "    {\"${chip}\", R\"card(${json})card\"},\n")
endforeach()
string(APPEND text "  };\n}\n\n}  // namespace tpusim::topologies\n")

set(generated ${CMAKE_BINARY_DIR}/generated/topologies/embedded_cards.cpp)
file(CONFIGURE OUTPUT ${generated} CONTENT "${text}" @ONLY NEWLINE_STYLE UNIX)
target_sources(tpusim_topologies PRIVATE ${generated})
