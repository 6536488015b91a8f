// The closed lists of names, in the order of their enumerations. Private.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/scenario.hpp"

namespace tpusim::scenario {

template <class E>
const std::vector<std::string>& names_of();

template <>
const std::vector<std::string>& names_of<Family>();
template <>
const std::vector<std::string>& names_of<Positions>();
template <>
const std::vector<std::string>& names_of<Norm>();
template <>
const std::vector<std::string>& names_of<Activation>();
template <>
const std::vector<std::string>& names_of<DType>();
template <>
const std::vector<std::string>& names_of<Optimizer>();
template <>
const std::vector<std::string>& names_of<Remat>();
template <>
const std::vector<std::string>& names_of<Attention>();
template <>
const std::vector<std::string>& names_of<FlopsConvention>();
template <>
const std::vector<std::string>& names_of<Schedule>();
template <>
const std::vector<std::string>& names_of<Compression>();
template <>
const std::vector<std::string>& names_of<SharedBy>();

}  // namespace tpusim::scenario
