#include "reports/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/summary.hpp"
#include "reports/text.hpp"
#include "sim/base/quantity_text.hpp"

namespace tpusim::reports {

namespace {

constexpr const char* kBold = "1";
constexpr const char* kGreen = "32";
constexpr const char* kRed = "1;31";

class Table {
 public:
  Table(const result::Result& result, const TableOptions& options)
      : r_(result), width_(std::max<std::size_t>(options.width, 60)), colour_(options.colour) {}

  std::string render() {
    title();
    headline();
    step();
    memory();
    communication();
    diagnosis();
    notes();
    return out_;
  }

 private:
  std::string paint(const std::string& text, const char* style) const {
    return colour_ && !text.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", style, text) : text;
  }

  void heading(const std::string& text) { out_ += "\n" + paint(text, kBold) + "\n"; }

  // "  key         text", wrapped under itself.
  void item(const std::string& key, const std::string& text, const char* style = nullptr) {
    constexpr std::size_t kKey = 14;
    bool first = true;
    for (const std::string& line : wrap(printable(text), width_ - kKey - 2)) {
      out_ += "  " + pad_right(first ? key : "", kKey) + (style != nullptr ? paint(line, style) : line) + "\n";
      first = false;
    }
  }

  void bullet(const std::string& text) {
    bool first = true;
    for (const std::string& line : wrap(printable(text), width_ - 4)) {
      out_ += (first ? "  - " : "    ") + line + "\n";
      first = false;
    }
  }

  void title() {
    const Facts f = facts(r_);
    std::string name = printable(f.title);
    std::replace(name.begin(), name.end(), '\n', ' ');
    out_ += paint(truncate(name, width_), kBold) + "\n";
    item("model", f.model);
    if (!f.cluster.empty()) item("cluster", f.cluster);
    item("mesh", f.mesh);
    if (!f.training.empty()) item("training", f.training);
    const std::string obstacle = obstacle_sentence(r_);
    if (obstacle.empty()) return;
    out_ += "\n";
    for (const std::string& line : wrap(printable(obstacle), width_)) out_ += paint(line, kRed) + "\n";
  }

  void headline() {
    out_ += "\n";
    if (!has_step(r_)) {
      item("step time", "not simulated");
      return;
    }
    const result::Throughput& t = r_.throughput;
    item("step time",
         seconds_text(r_.step.time) + " in the steady state; first step " + seconds_text(r_.startup.first_step));
    std::string rate = t.tokens_per_s ? rate_text(t.tokens_per_s, "tokens/s") + "; " : "";
    item("throughput", rate + rate_text(t.examples_per_s, "examples/s"));
    if (t.mfu) {
      std::string text = std::isfinite(*t.mfu) ? share_text(*t.mfu) + " of peak" : "-";
      if (t.hfu) text += "; HFU " + share_text(*t.hfu);
      if (t.tflops_per_chip) text += "; " + format_number(*t.tflops_per_chip) + " TFLOP/s per chip";
      if (!t.flops_convention.empty()) text += "; attention FLOPs: " + t.flops_convention;
      item("MFU", text);
    }
    if (t.model_flops_per_step) item("model work", format_flops(*t.model_flops_per_step) + " per step, whole job");
    const bool run = r_.verification.has_value();
    item("verification", verification_sentence(r_), !run ? nullptr : r_.verification->passed ? kGreen : kRed);
  }

  void parts(const std::vector<Part>& parts, bool time) {
    Grid grid("lrrl");
    for (const Part& part : parts)
      grid.row({part.name, time ? seconds_text(Seconds(part.value)) : bytes_text(part.value), share_text(part.share),
                bar(part.share, 40)});
    out_ += grid.render(2, width_);
  }

  void step() {
    if (!has_step(r_)) return;
    heading("Where the step goes (mean over all chips)");
    if (!(r_.step.time.value() > 0)) {
      out_ += "  no step was timed\n";
      return;
    }
    parts(step_parts(r_.step), true);
  }

  void memory() {
    const result::Memory& m = r_.memory;
    if (!has_plan(r_)) return;
    heading(fmt::format("Memory of the fullest chip: {} of {}, {}", bytes_text(static_cast<double>(m.peak_bytes)),
                        capacity_text(m), m.fits ? "fits" : "DOES NOT FIT"));
    parts(memory_parts(m), false);
  }

  void communication() {
    if (!has_step(r_)) return;
    heading("Communication of one chip in one step");
    if (r_.communication.empty()) {
      out_ += "  none\n";
      return;
    }
    Grid grid("lllrrrr");
    grid.row({"collective", "over", "algorithm", "times", "sent", "busy", "exposed"});
    for (const result::Communication& c : r_.communication)
      grid.row({printable(c.collective), printable(joined(c.axes, "+")), printable(c.algorithm),
                count_text(c.count) + " x", bytes_text(c.bytes_per_chip), seconds_text(c.busy),
                seconds_text(c.exposed)});
    out_ += grid.render(2, width_);
  }

  void diagnosis() {
    if (!has_step(r_)) return;
    heading("What holds it back (each replayed twice as fast)");
    if (r_.diagnosis.empty()) out_ += "  no replay was made\n";
    for (const result::Diagnosis& d : r_.diagnosis)
      bullet(fmt::format("{}: saves {} of the step{}{}", d.bottleneck, share_text(d.share),
                         d.suggestion.empty() ? "" : "; ", d.suggestion));
  }

  void notes() {
    heading("Notes");
    for (const std::string& warning : r_.warnings) bullet(warning);
    for (const std::string& note : r_.notes) bullet(note);
    if (r_.device_classes > 0)
      bullet(fmt::format("timed with {} device class{}", format_count(r_.device_classes),
                         r_.device_classes == 1 ? "" : "es"));
    const auto guesses = std::count_if(r_.assumptions.begin(), r_.assumptions.end(), [](const result::Assumption& a) {
      return a.confidence == result::Confidence::guess;
    });
    bullet(fmt::format("{} assumptions, {} of them guesses: --json lists each with its source", r_.assumptions.size(),
                       guesses));
  }

  const result::Result& r_;
  std::size_t width_;
  bool colour_;
  std::string out_;
};

}  // namespace

std::string table(const result::Result& result, const TableOptions& options) {
  return Table(result, options).render();
}

}  // namespace tpusim::reports
