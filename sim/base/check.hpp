// The two exception types that cross room borders, and the always-on check.
//
// ScenarioError (diagnostic.hpp): the input is wrong. InternalError: tpusim itself is wrong. CapacityError: an answer
// would need a number beyond a documented bound (a named refusal). An impossible plan is a value (Verdict), not an
// error.
#pragma once

#include <stdexcept>
#include <string>

namespace tpusim {

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

struct CapacityError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void internal_error(const char* file, int line, const char* condition, const std::string& message);

}  // namespace tpusim

// TPUSIM_CHECK(condition, message): never compiled out; message is any expression that converts to std::string and is
// evaluated only on failure.
#define TPUSIM_CHECK(condition, message)                                                 \
  do {                                                                                   \
    if (!(condition)) ::tpusim::internal_error(__FILE__, __LINE__, #condition, message); \
  } while (false)
