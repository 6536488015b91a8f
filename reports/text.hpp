// Laying out text for a terminal: display width, wrapping, columns. No colours.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tpusim::reports {

// Columns that `text` (UTF-8) takes on a terminal, one for each code point: names are Latin, and a CJK name that is
// twice as wide only moves its own line.
std::size_t display_width(std::string_view text);

std::string pad_right(std::string_view text, std::size_t width);
std::string pad_left(std::string_view text, std::size_t width);
// At most `width` columns; what is cut ends in "…".
std::string truncate(std::string_view text, std::size_t width);

// Control characters (a name from a scenario may hold an escape sequence) become spaces.
std::string printable(std::string_view text);

// Lines of at most `width` columns, broken at spaces; a longer word stays whole. Newlines in `text` are kept.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// Rows of cells in aligned columns, two spaces apart.
class Grid {
 public:
  // One letter a column: 'l' or 'r'.
  explicit Grid(std::string alignment) : alignment_(std::move(alignment)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // Every line begins with `indent` spaces and has at most `width` columns: the widest left-aligned column gives way,
  // its cells go on in the next line, and a word that is still too wide is cut.
  std::string render(std::size_t indent, std::size_t width) const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;
};

// A bar of `share` (0..1, clamped) of `width` columns, in eighths of a block.
std::string bar(double share, std::size_t width);

// "60.0 %" with one decimal, so that a column of shares lines up; "-" for what is not finite.
std::string share_text(double share);

}  // namespace tpusim::reports
