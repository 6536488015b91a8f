# Embeds what the HTML report is made of into the room tpusim_reports, so that one file is the whole program:
# our own style sheet and scripts, and the charts of the npm package echarts.
#
# The package is pinned by version and integrity in package-lock.json, fetched once by `npm ci` into the build folder,
# and only one of its files is used. Without npm, hand that file over: -DTPUSIM_ECHARTS=/path/to/echarts.common.min.js
# (version 6.1.0; its checksum is compared).
set(TPUSIM_ECHARTS "" CACHE FILEPATH "echarts.common.min.js of echarts 6.1.0, in place of fetching it with npm")
set(echarts_sha256 61f13280aba3161f77fc801bf5f9c786f55f10432153a0683fc5cc0700b013d5)

set(report_source ${CMAKE_CURRENT_LIST_DIR})
set(report_build ${CMAKE_BINARY_DIR}/reports)
file(MAKE_DIRECTORY ${report_build})

if(TPUSIM_ECHARTS)
  if(NOT EXISTS ${TPUSIM_ECHARTS})
    message(FATAL_ERROR "TPUSIM_ECHARTS: no such file: ${TPUSIM_ECHARTS}")
  endif()
  file(SHA256 ${TPUSIM_ECHARTS} sha256)
  if(NOT sha256 STREQUAL echarts_sha256)
    message(FATAL_ERROR "TPUSIM_ECHARTS: ${TPUSIM_ECHARTS} is not echarts.common.min.js of echarts 6.1.0 "
      "(SHA-256 ${sha256}, expected ${echarts_sha256})")
  endif()
  set(echarts ${TPUSIM_ECHARTS})
else()
  find_program(TPUSIM_NPM npm)
  if(NOT TPUSIM_NPM)
    message(FATAL_ERROR "npm was not found. The HTML report embeds the npm package echarts 6.1.0 "
      "(reports/package-lock.json). Install npm (Debian: apt-get install npm), or hand the file over: "
      "-DTPUSIM_ECHARTS=/path/to/echarts.common.min.js")
  endif()
  set(echarts ${report_build}/node_modules/echarts/dist/echarts.common.min.js)
  add_custom_command(
    OUTPUT ${echarts}
    COMMAND ${CMAKE_COMMAND} -E copy ${report_source}/package.json ${report_source}/package-lock.json ${report_build}
    COMMAND ${CMAKE_COMMAND} -DNPM=${TPUSIM_NPM} -DFOLDER=${report_build} -DFILE=${echarts} -DSHA256=${echarts_sha256}
            -P ${report_source}/fetch.cmake
    DEPENDS ${report_source}/package.json ${report_source}/package-lock.json ${report_source}/fetch.cmake
    COMMENT "Fetching the npm package echarts 6.1.0"
    VERBATIM)
endif()

# The bytes go in by the assembler's .incbin: no compiler has to read a megabyte of array.
set(TPUSIM_ASSET_ECHARTS ${echarts})
set(TPUSIM_ASSET_STYLE ${report_source}/html/report.css)
set(TPUSIM_ASSET_CHARTS ${report_source}/html/charts.js)
set(TPUSIM_ASSET_TIMELINE ${report_source}/html/timeline.js)
configure_file(${report_source}/html/assets.cpp.in ${report_build}/assets.cpp @ONLY)
target_sources(tpusim_reports PRIVATE ${report_build}/assets.cpp)
set_source_files_properties(${report_build}/assets.cpp PROPERTIES
  OBJECT_DEPENDS "${echarts};${TPUSIM_ASSET_STYLE};${TPUSIM_ASSET_CHARTS};${TPUSIM_ASSET_TIMELINE}")
if(NOT TPUSIM_ECHARTS)
  # Makefile generators build a generated file only where a target of this folder lists it.
  target_sources(tpusim_reports PRIVATE ${echarts})
  set_source_files_properties(${echarts} PROPERTIES HEADER_FILE_ONLY ON)
endif()
