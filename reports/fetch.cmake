# cmake -DNPM= -DFOLDER= -DFILE= -DSHA256= -P fetch.cmake: `npm ci` in FOLDER, then FILE must be there and be the one expected.
execute_process(
  COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
  WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 0 OR NOT EXISTS ${FILE})
  message(FATAL_ERROR "npm could not fetch the package echarts 6.1.0 that the HTML report embeds "
    "(reports/package-lock.json):\n${output}")
endif()
file(SHA256 ${FILE} sha256)
if(NOT sha256 STREQUAL SHA256)
  message(FATAL_ERROR "${FILE} has SHA-256 ${sha256}, expected ${SHA256}")
endif()
# npm keeps the dates of the package's own files; the build needs to see that this one is newer than the lock file.
file(TOUCH ${FILE})
