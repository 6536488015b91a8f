// Why a reader may believe the numbers: diagnosis, verification, assumptions, notes, the scenario itself.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/html/markup.hpp"
#include "reports/html/sections.hpp"
#include "reports/summary.hpp"
#include "reports/text.hpp"
#include "sim/base/quantity_text.hpp"
#include "sim/result/json.hpp"
#include "sim/result/json_text.hpp"

namespace tpusim::reports {

namespace {

std::string badge(std::string_view style, std::string_view text) {
  return fmt::format("<span class=\"badge {}\">{}</span>", style, escape(text));
}

std::string tally_row_equal(std::int64_t executed, std::int64_t charged) {
  return executed == charged ? badge("good", "equal") : badge("bad", "differ");
}

std::string losses(const result::Verification& v) {
  HtmlTable table("Losses", {{"Step", ""}, {"Loss, one device", "n"}, {"Loss, sharded", "n"}, {"Difference", "n"}});
  const std::size_t steps = std::min(v.loss_reference.size(), v.loss_sharded.size());
  for (std::size_t i = 0; i < steps; ++i)
    table.row({std::to_string(i + 1), fmt::format("{:.12f}", v.loss_reference[i]),
               fmt::format("{:.12f}", v.loss_sharded[i]),
               fmt::format("{:.1e}", std::abs(v.loss_sharded[i] - v.loss_reference[i]))});
  return steps == 0 ? "" : "<h3>Losses</h3>\n" + table.render();
}

std::string tallies(const result::Verification& v) {
  HtmlTable table("Tallies",
                  {{"Quantity", ""}, {"Counted while executing", "n"}, {"Charged by timing", "n"}, {"Verdict", ""}});
  table.row({"bytes sent", format_count(v.bytes_executed) + " B", format_count(v.bytes_charged) + " B",
             tally_row_equal(v.bytes_executed, v.bytes_charged)});
  table.row({"floating-point operations", format_count(v.flops_executed) + " FLOP",
             format_count(v.flops_charged) + " FLOP", tally_row_equal(v.flops_executed, v.flops_charged)});
  table.row({"peak live bytes", format_count(v.peak_bytes_executed) + " B", format_count(v.peak_bytes_charged) + " B",
             tally_row_equal(v.peak_bytes_executed, v.peak_bytes_charged)});
  return "<h3>What was timed is what was computed</h3>\n" + table.render();
}

}  // namespace

std::string diagnosis_section(const result::Result& r) {
  const std::string lead =
      "The same plan, replayed with each resource twice as fast: the share of the step that this saves.";
  if (r.diagnosis.empty())
    return section("diagnosis", "What holds it back", lead, nothing("No replay was made for this run."));
  std::string body = "<ul class=\"gains\">\n";
  for (const result::Diagnosis& d : r.diagnosis) {
    const double share = std::isfinite(d.share) ? std::clamp(d.share, 0.0, 1.0) : 0;
    body += fmt::format(
        "<li><div class=\"gain\"><b>{}</b><span class=\"track\" aria-hidden=\"true\"><span style=\"width:{:.1f}%\">"
        "</span></span><span class=\"amount\">saves {}</span></div>{}</li>\n",
        escape(d.bottleneck), share * 100, share_text(d.share),
        d.suggestion.empty() ? "" : "<p>" + escape(d.suggestion) + "</p>");
  }
  return section("diagnosis", "What holds it back", lead, body + "</ul>\n");
}

std::string verification_section(const result::Result& r) {
  const std::string lead =
      "The same strategies, executed with real values in f64 on a shrunken model and mesh, against one device.";
  if (!r.verification)
    return section("verification", "Verification", lead, nothing("Verification was not run: the plan was only timed."));
  const result::Verification& v = *r.verification;
  std::string body = fmt::format("<p class=\"verdict\">{} {} on {}; largest relative error {:.1e}.{}</p>\n",
                                 v.passed ? badge("good", "passed") : badge("bad", "failed"),
                                 escape(fmt::format("{} step{}", v.steps, v.steps == 1 ? "" : "s")),
                                 escape(mesh_text(v.mesh)), v.max_relative_error,
                                 v.culprit.empty() ? "" : " First difference: <code>" + escape(v.culprit) + "</code>.");
  if (!v.checks.empty()) {
    HtmlTable table("Checks", {{"Check", ""}, {"Verdict", ""}, {"Detail", "muted"}});
    for (const result::Check& c : v.checks)
      table.row({escape(c.name), c.passed ? badge("good", "passed") : badge("bad", "failed"), escape(c.detail)});
    body += "<h3>What was checked</h3>\n" + table.render();
  }
  return section("verification", "Verification", lead, body + tallies(v) + losses(v));
}

std::string assumptions_section(const result::Result& r) {
  const std::string lead = "Every number that the answer rests on, where it comes from, and how far to trust it.";
  if (r.assumptions.empty())
    return section("assumptions", "Assumptions", lead, nothing("The result names no assumptions."));
  HtmlTable table("Assumptions", {{"Name", ""}, {"Value", "n"}, {"Confidence", ""}, {"Source", "muted"}});
  for (const result::Assumption& a : r.assumptions)
    table.row({escape(a.name), escape(assumption_value(a)),
               badge(result::confidence_name(a.confidence), result::confidence_name(a.confidence)), escape(a.source)});
  return section("assumptions", "Assumptions", lead, "<div class=\"tall\">" + table.render() + "</div>\n");
}

std::string notes_section(const result::Result& r) {
  std::string body = "<ul class=\"notes\">\n";
  for (const std::string& warning : r.warnings)
    body += "<li>" + badge("guess", "warning") + " <span class=\"pre\">" + escape(warning) + "</span></li>\n";
  for (const std::string& note : r.notes) body += "<li>" + escape(note) + "</li>\n";
  if (r.device_classes > 0)
    body += fmt::format("<li>Timed with {} device class{}: chips that behave alike are played once.</li>\n",
                        format_count(r.device_classes), r.device_classes == 1 ? "" : "es");
  if (!r.throughput.flops_convention.empty())
    body += "<li>Attention FLOPs are counted by the convention “" + escape(r.throughput.flops_convention) + "”" +
            (r.throughput.model_flops_per_step
                 ? ": " + escape(format_flops(*r.throughput.model_flops_per_step)) + " of model work in a step"
                 : std::string()) +
            ".</li>\n";
  if (body.size() < 30) return "";
  return section("notes", "Notes", "What to know before quoting a number from this page.", body + "</ul>\n");
}

std::string scenario_section(const result::Result& r) {
  const result::Json scenario = result::Json::parse(r.scenario_json, nullptr, false);
  const std::string text = scenario.is_discarded() ? r.scenario_json : result::pretty(scenario);
  return section("scenario", "Scenario", "What was asked, with every default filled in.",
                 "<details><summary>Show the scenario as JSON</summary><pre tabindex=\"0\">" + escape(text) +
                     "</pre></details>\n");
}

}  // namespace tpusim::reports
