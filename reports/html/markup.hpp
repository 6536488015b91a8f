// Building blocks of the page. Everything that comes from a scenario passes through escape().
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tpusim::reports {

// & < > " ' become entities, control characters U+FFFD: safe as text and inside a quoted attribute.
std::string escape(std::string_view text);

// JSON text that may stand inside <script>: "<" only occurs in strings there and becomes \u003c, likewise the line
// separators U+2028 and U+2029.
std::string script_json(std::string_view json);

// A table in a box of its own that scrolls sideways. Cells are markup already. `columns`: heading and class of each;
// the class "n" sets numbers flush right.
struct Column {
  std::string heading;
  std::string style;
};
class HtmlTable {
 public:
  HtmlTable(std::string caption, std::vector<Column> columns)
      : caption_(std::move(caption)), columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string render() const;

 private:
  std::string caption_;  // for readers who do not see it
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// <section id=...> with its heading and a line that says what is shown; `body` is markup.
std::string section(std::string_view id, std::string_view heading, std::string_view lead, std::string_view body);
// A box for a chart that a script fills; `description` is its text alternative.
std::string chart(std::string_view id, std::string_view description);
// In place of a chart or table that has no data.
std::string nothing(std::string_view why);
// A coloured square before a name: `key` names a colour of report.css.
std::string swatch(std::string_view key);

}  // namespace tpusim::reports
