// The top of the page: what was simulated, whether it works, and the five numbers that matter.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/html/markup.hpp"
#include "reports/html/sections.hpp"
#include "reports/summary.hpp"
#include "reports/text.hpp"
#include "sim/base/quantity_text.hpp"

namespace tpusim::reports {

namespace {

// "1.25 s" as a large number with a small unit.
std::string big(const std::string& quantity) {
  const std::size_t space = quantity.rfind(' ');
  if (space == std::string::npos) return fmt::format("<span class=\"big\">{}</span>", escape(quantity));
  return fmt::format("<span class=\"big\">{}<span class=\"unit\">&nbsp;{}</span></span>",
                     escape(quantity.substr(0, space)), escape(quantity.substr(space + 1)));
}

std::string card(std::string_view name, const std::string& value, const std::string& below,
                 std::string_view style = "") {
  return fmt::format("<div class=\"card {}\"><h2>{}</h2>{}<p>{}</p></div>\n", style, escape(name), value, below);
}

std::string throughput_card(const result::Throughput& t) {
  if (!t.tokens_per_s) return card("Throughput", big(rate_text(t.examples_per_s, "examples/s")), "whole job");
  return card("Throughput", big(rate_text(t.tokens_per_s, "tokens/s")),
              escape(rate_text(t.examples_per_s, "examples/s") + ", whole job"));
}

std::string mfu_card(const result::Throughput& t) {
  if (!t.mfu || !std::isfinite(*t.mfu))
    return card("MFU", big("-"), t.mfu ? "not a finite number" : "this model states no FLOPs");
  std::string below = t.hfu ? "HFU " + share_text(*t.hfu) : "";
  if (t.tflops_per_chip) below += (below.empty() ? "" : "; ") + format_number(*t.tflops_per_chip) + " TFLOP/s per chip";
  return card("MFU", big(share_text(*t.mfu)), escape(below));
}

std::string memory_card(const result::Memory& m) {
  if (!has_capacity(m))
    return card("Memory, fullest chip", big(bytes_text(static_cast<double>(m.peak_bytes))), "of unlimited memory");
  const double share = static_cast<double>(m.peak_bytes) / static_cast<double>(m.capacity_bytes);
  const std::string meter =
      fmt::format("<span class=\"meter\" aria-hidden=\"true\"><span style=\"width:{:.1f}%\"></span></span>",
                  std::clamp(share, 0.0, 1.0) * 100);
  return card(
      "Memory, fullest chip", big(bytes_text(static_cast<double>(m.peak_bytes))) + meter,
      escape(fmt::format("{} of {}, {}", share_text(share), capacity_text(m), m.fits ? "fits" : "does not fit")),
      m.fits ? "good" : "bad");
}

std::string verification_card(const result::Result& r) {
  if (!r.verification) return card("Verification", "<span class=\"big\">not run</span>", "the plan was only timed");
  const result::Verification& v = *r.verification;
  if (!v.passed)
    return card("Verification", "<span class=\"big\">failed</span>",
                escape(v.culprit.empty() ? "see below" : truncate(v.culprit, 60)), "bad");
  return card("Verification", "<span class=\"big\">passed</span>",
              escape(fmt::format("sharded = one device, error {:.1e}", v.max_relative_error)), "good");
}

}  // namespace

std::string header_markup(const result::Result& r) {
  const Facts f = facts(r);
  std::string out =
      "<header>\n<p class=\"brand\">tpusim report</p>\n<h1>" + escape(f.title) + "</h1>\n<dl class=\"facts\">\n";
  const auto fact = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, escape(text));
  };
  fact("Model", f.model);
  fact("Cluster", f.cluster);
  fact("Mesh", f.mesh);
  fact("Training", f.training);
  out += "</dl>\n</header>\n";
  const std::string obstacle = obstacle_sentence(r);
  if (!obstacle.empty()) out += "<p class=\"obstacle\" role=\"alert\">" + escape(obstacle) + "</p>\n";
  const std::string summary = headline_sentence(r);
  if (!summary.empty()) out += "<p class=\"summary\">" + escape(summary) + "</p>\n";
  const bool timed = r.step.time.value() > 0;
  out += "<div class=\"cards\">\n";
  out += timed ? card("Step time", big(seconds_text(r.step.time)),
                      escape("steady state; first step " + seconds_text(r.startup.first_step)))
               : card("Step time", big("-"), "no step was timed");
  if (timed) out += throughput_card(r.throughput) + mfu_card(r.throughput);
  out += has_plan(r) ? memory_card(r.memory) : card("Memory", big("-"), "nothing was planned");
  return out + verification_card(r) + "</div>\n";
}

}  // namespace tpusim::reports
