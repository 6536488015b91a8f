// What the page's scripts draw, as compact JSON.
#pragma once

#include <string>

#include "sim/result/result.hpp"

namespace tpusim::reports {

// {"step":{"time","parts":[{"key","name","value","share"}]}, "memory":{"capacity" (0: unlimited),"peak","parts"},
//  "communication":[{"name","busy","exposed"}],
//  "timeline": null | {"quantum_s", "window", "labels", "spans_joined", "spans_left_out",
//     "classes":[{"name","devices","streams":[{"name","gap":[],"length":[],"label":[],"code":[],"layer":[],
//                 "microbatch":[],"busy":[],"joined":[]}]}],
//     "memory": null | {"class","time":[],"bytes":[]}}}
// Timeline times are whole quanta since the window's start; `gap` is the distance from the end of the span before (or
// from 0), code = kind * 4 + phase. `busy` and `joined` are left out of a stream that has no joined spans.
std::string chart_data(const result::Result& result);

}  // namespace tpusim::reports
