// The order of events that carry the same time. A lower number goes first; among equals the one scheduled first goes
// first.
#pragma once

#include <cstdint>

namespace tpusim::engine {

enum class Priority : std::uint8_t {
  // Work that ends at t gives back its server, link or slot before anything that starts at t looks for one. Without
  // this
  // order a server that falls free exactly when the next job arrives would look busy.
  completion = 0,
  // Work that arrives or starts at t. It sees everything that was given back at t.
  start = 1,
  // Shares of links are solved once per instant, after all that ends and starts at t is known: so the result does not
  // depend on the order of starts within t.
  solve = 2,
  // Measurements see the state that holds after t.
  observe = 3,
  // A limit on the run: what happens at the limit itself still happens.
  stop = 4,
};

}  // namespace tpusim::engine
