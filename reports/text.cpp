#include "reports/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/control.hpp"

namespace tpusim::reports {

namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !continues(c); }));
}

std::string pad_right(std::string_view text, std::size_t width) {
  std::string out(text);
  const std::size_t w = display_width(text);
  if (w < width) out.append(width - w, ' ');
  return out;
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t w = display_width(text);
  return (w < width ? std::string(width - w, ' ') : std::string()) + std::string(text);
}

std::string truncate(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  std::string out;
  std::size_t columns = 0;
  for (char c : text) {
    if (!continues(c) && ++columns >= width) break;
    out += c;
  }
  return out + "…";
}

std::string printable(std::string_view text) {
  return without_controls(text, " ", "\n");
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '\n') {
      lines.emplace_back();
      ++at;
      continue;
    }
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::string& line = lines.back();
    if (line.empty())
      line = word;
    else if (display_width(line) + 1 + display_width(word) <= width)
      line.append(" ").append(word);
    else
      lines.emplace_back(word);
    at = end;
  }
  return lines;
}

std::string Grid::render(std::size_t indent, std::size_t width) const {
  std::vector<std::size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_)
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i)
      widths[i] = std::max(widths[i], display_width(row[i]));
  std::size_t total = indent + 2 * (widths.empty() ? 0 : widths.size() - 1);
  for (std::size_t w : widths) total += w;
  while (total > width) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (alignment_[i] == 'l' && widths[i] > 8 && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
    if (widest == widths.size()) break;
    --widths[widest];
    --total;
  }
  std::string out;
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (std::size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      cells.push_back(display_width(row[i]) > widths[i] ? wrap(row[i], widths[i]) : std::vector<std::string>{row[i]});
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t k = 0; k < lines; ++k) {
      std::string line(indent, ' ');
      for (std::size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) line += "  ";
        const std::string cell = k < cells[i].size() ? truncate(cells[i][k], widths[i]) : "";
        line += alignment_[i] == 'r' ? pad_left(cell, widths[i]) : pad_right(cell, widths[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
  }
  return out;
}

std::string bar(double share, std::size_t width) {
  static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  if (!std::isfinite(share)) return "";
  const double filled = std::clamp(share, 0.0, 1.0) * static_cast<double>(width) * 8;
  const auto eighths = static_cast<std::size_t>(std::lround(filled));
  std::string out;
  for (std::size_t i = 0; i < eighths / 8; ++i) out += "█";
  return out + kEighths[eighths % 8];
}

std::string share_text(double share) {
  return std::isfinite(share) ? fmt::format("{:.1f} %", share * 100 + 0.0) : std::string("-");
}

}  // namespace tpusim::reports
