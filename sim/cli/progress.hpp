// The line on a terminal that says what a long run is doing. Private.
#pragma once

#include <chrono>
#include <ostream>
#include <string>
#include <string_view>

#include "sim/cli/cli.hpp"

namespace tpusim::cli {

// Silent for the first second and where nobody watches; erases itself at the end.
class Progress {
 public:
  explicit Progress(Streams& streams) : streams_(streams) {}
  ~Progress() { erase(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // fraction: how much is done, 0..1; negative where it cannot be known.
  void step(std::string_view what, double fraction) {
    if (!streams_.err_is_terminal) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - start_ < std::chrono::seconds(1)) return;
    if (shown_ && now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    shown_ = true;
    const std::string text(what.substr(0, streams_.width > 20 ? streams_.width - 10 : 10));
    streams_.err << "\r\033[K" << text;
    if (fraction >= 0 && fraction <= 1) streams_.err << ' ' << static_cast<int>(100 * fraction) << " %";
    streams_.err << " ..." << std::flush;
  }
  void erase() {
    if (shown_) streams_.err << "\r\033[K" << std::flush;
    shown_ = false;
  }

 private:
  Streams& streams_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), last_;
  bool shown_ = false;
};

}  // namespace tpusim::cli
