#include "reports/html/markup.hpp"

#include <fmt/format.h>

namespace tpusim::reports {

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
      case '\t':
        out += c;
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
          out += "\xEF\xBF\xBD";
        else
          out += c;
    }
  }
  return out;
}

std::string script_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json.substr(i, 3) == "\xE2\x80\xA8") {
      out += "\\u2028";
      i += 2;
    } else if (json.substr(i, 3) == "\xE2\x80\xA9") {
      out += "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

std::string HtmlTable::render() const {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
      "aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
      escape(caption_));
  for (const Column& c : columns_)
    out += fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", c.style, escape(c.heading));
  out += "</tr></thead><tbody>\n";
  for (const auto& cells : rows_) {
    out += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i)
      out += i == 0 ? fmt::format("<th scope=\"row\" class=\"{}\">{}</th>", columns_[i].style, cells[i])
                    : fmt::format("<td class=\"{}\">{}</td>", columns_[i].style, cells[i]);
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string section(std::string_view id, std::string_view heading, std::string_view lead, std::string_view body) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-h\">\n<h2 id=\"{0}-h\">{1}</h2>\n<p "
      "class=\"lead\">{2}</p>\n{3}</section>\n",
      id, escape(heading), escape(lead), body);
}

std::string chart(std::string_view id, std::string_view description) {
  return fmt::format("<div class=\"chart\" id=\"{}\" role=\"img\" aria-label=\"{}\"></div>\n", id, escape(description));
}

std::string nothing(std::string_view why) {
  return fmt::format("<p class=\"nothing\">{}</p>\n", escape(why));
}

std::string swatch(std::string_view key) {
  return fmt::format("<span class=\"swatch\" style=\"background:var(--{})\"></span>", key);
}

}  // namespace tpusim::reports
