// Where the time and the memory go, and what is sent.
#include "reports/html/sections.hpp"

#include <fmt/format.h>

#include <cmath>

#include "reports/html/markup.hpp"
#include "reports/summary.hpp"
#include "reports/text.hpp"
#include "sim/base/quantity_text.hpp"

namespace tpusim::reports {

namespace {

std::string_view meaning_of(std::string_view part) {
  if (part == "compute") return "the chip computes";
  if (part == "communication") return "the chip waits for a transfer that is under way";
  if (part == "bubble") return "the chip waits for work that another chip has not finished";
  if (part == "input") return "the chip waits for its batch";
  if (part == "overhead") return "none of these: launches and latencies";
  if (part == "parameters") return "weights, with copies in the compute type";
  if (part == "gradients") return "gradients that are alive at the peak";
  if (part == "optimizer") return "moments and master weights";
  if (part == "activations") return "kept for backward";
  if (part == "workspace") return "buffers of instructions and collectives";
  return "the runtime's own share";
}

std::string parts_table(const std::vector<Part>& parts, bool time, std::string_view whole, const std::string& total) {
  HtmlTable table(time ? "Parts of the step" : "Parts of the memory",
                  {{"Part", ""}, {time ? "Time" : "Size", "n"}, {"Share", "n"}, {"Meaning", "muted gloss"}});
  for (const Part& part : parts)
    table.row({swatch(part.key) + escape(part.name),
               escape(time ? seconds_text(Seconds(part.value)) : bytes_text(part.value)), share_text(part.share),
               escape(meaning_of(part.key))});
  table.row({"<b>total</b>", "<b>" + escape(total) + "</b>", "", escape(whole)});
  return table.render();
}

std::string legend(const std::vector<std::pair<const char*, const char*>>& entries) {
  std::string out = "<ul class=\"legend\">";
  for (const auto& [key, name] : entries) out += "<li>" + swatch(key) + name + "</li>";
  return out + "</ul>\n";
}

}  // namespace

std::string step_section(const result::Result& r) {
  const std::string lead =
      "The parts are means over all chips and sum to the step time; each instant of a chip counts once.";
  if (!(r.step.time.value() > 0)) return section("time", "Where the time goes", lead, nothing("No step was timed."));
  const std::vector<Part> parts = step_parts(r.step);
  std::string description = "Stacked bar of the step time: ";
  for (const Part& part : parts) description += part.name + " " + share_text(part.share) + "; ";
  return section(
      "time", "Where the time goes", lead,
      chart("chart-step", description) + parts_table(parts, true, "steady-state step", seconds_text(r.step.time)));
}

std::string timeline_section(const result::Result& r) {
  const result::Timeline& t = r.timeline;
  std::string lead = "One device of each class: what its streams do during one step.";
  if (t.empty() || t.end_ps <= t.start_ps)
    return section("timeline", "Timeline", lead, nothing("No timeline was recorded for this run."));
  std::size_t spans = 0;
  for (const result::DeviceClass& c : t.classes)
    for (const result::Stream& s : c.streams) spans += s.spans.size();
  std::string below = fmt::format("{} bars", format_count(static_cast<std::int64_t>(spans)));
  if (t.spans_joined > 0)
    below += fmt::format(
        "; {} instructions share bars with their neighbours: such a bar is filled to the share of time that they are "
        "busy",
        format_count(t.spans_joined));
  if (t.spans_left_out > 0) below += fmt::format("; {} instructions are left out", format_count(t.spans_left_out));
  const std::string body =
      legend({{"forward", "forward"},
              {"backward", "backward"},
              {"update", "update"},
              {"plain", "other compute"},
              {"communication", "communication"},
              {"wait", "wait"},
              {"input", "input"}}) +
      "<div class=\"tools\" role=\"group\" aria-label=\"Zoom of the timeline\">"
      "<button type=\"button\" data-zoom=\"in\" aria-label=\"Zoom in\">+</button>"
      "<button type=\"button\" data-zoom=\"out\" aria-label=\"Zoom out\">&minus;</button>"
      "<button type=\"button\" data-zoom=\"all\">Whole step</button>"
      "<span class=\"hint\">Drag to move; pinch, double-click or Ctrl + wheel to zoom</span></div>\n"
      "<div class=\"timeline\" id=\"timeline-view\" tabindex=\"0\" role=\"group\" aria-roledescription=\"timeline\" "
      "aria-label=\"" +
      escape(fmt::format("Timeline of {} device classes over {}; arrow keys move, plus and minus zoom",
                         t.classes.size(), seconds_text(SimTime::from_ps(t.end_ps - t.start_ps).seconds()))) +
      "\"></div>\n<p class=\"below\">" + escape(below) + ".</p>\n";
  return section("timeline", "Timeline", lead, body);
}

std::string memory_section(const result::Result& r) {
  const result::Memory& m = r.memory;
  const auto bytes = [](std::int64_t n) { return bytes_text(static_cast<double>(n)); };
  const std::string lead = "The fullest chip: what is alive at its peak, and over one step.";
  if (m.peak_bytes <= 0) return section("memory", "Memory", lead, nothing("No memory was planned."));
  const std::vector<Part> parts = memory_parts(m);
  std::string description = "Stacked bar of memory at the peak against " + capacity_text(m) + ": ";
  for (const Part& part : parts) description += part.name + " " + bytes_text(part.value) + "; ";
  const std::string peak =
      chart("chart-memory", description) +
      parts_table(parts, false, fmt::format("of {}: {}", capacity_text(m), m.fits ? "fits" : "does not fit"),
                  bytes(m.peak_bytes));
  if (r.timeline.memory.empty())
    return section("memory", "Memory", "The fullest chip: what is alive at its peak.",
                   peak + "<p class=\"below\">Memory over time was not recorded for this run.</p>\n");
  return section("memory", "Memory", lead,
                 "<div class=\"pair\"><div>\n<h3>At the peak</h3>\n" + peak + "</div><div>\n<h3>Over one step</h3>\n" +
                     chart("chart-memory-time", "Line of the memory in use over one step") + "</div></div>\n");
}

std::string communication_section(const result::Result& r) {
  const std::string lead =
      "One chip in one step. Exposed: the time that the chip waited for it alone, with the transfers that it had to "
      "wait "
      "for itself.";
  if (r.communication.empty())
    return section("communication", "Communication", lead, nothing("This plan has no collectives."));
  HtmlTable table("Collectives of one chip in one step", {{"Collective", ""},
                                                          {"Mesh axes", ""},
                                                          {"Algorithm", ""},
                                                          {"Times", "n"},
                                                          {"Sent", "n"},
                                                          {"Rate while busy", "n"},
                                                          {"Busy", "n"},
                                                          {"Exposed", "n"}});
  for (const result::Communication& c : r.communication) {
    const double rate = c.bytes_per_chip / c.busy.value();
    table.row({escape(c.collective), escape(joined(c.axes, " + ")), escape(c.algorithm),
               escape(count_text(c.count) + " ×"), escape(bytes_text(c.bytes_per_chip)),
               c.busy.value() > 0 && std::isfinite(rate) ? escape(format_rate(BytesPerSecond(rate))) : "-",
               escape(seconds_text(c.busy)), escape(seconds_text(c.exposed))});
  }
  return section("communication", "Communication", lead,
                 legend({{"communication", "exposed"}, {"hidden", "behind compute"}}) +
                     chart("chart-communication", "Bars of the busy time of each collective, exposed and hidden") +
                     table.render());
}

}  // namespace tpusim::reports
