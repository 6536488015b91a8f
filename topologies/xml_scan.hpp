// A small XML scanner with positions, for GraphML. Private to this room.
//
// Elements, attributes, text, comments, CDATA, processing instructions, the five named entities and numeric ones. A
// DOCTYPE is passed over; entities of its own are refused, so that nothing grows. Keeps nothing but the names of open
// elements.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tpusim::topologies {

struct XmlTag {
  std::string_view name;  // without its namespace prefix
  std::vector<std::pair<std::string_view, std::string>> attributes;
  std::size_t offset = 0;  // of '<'
  const std::string* find(std::string_view attribute) const;
};

// What the scanner calls; each returns false to stop. `text` is called with pieces.
struct XmlEvents {
  std::function<bool(const XmlTag&)> start;
  std::function<bool(std::string_view name)> end;
  std::function<bool(const std::string& text)> text;
};

struct XmlFault {
  std::string message;  // empty: none
  std::size_t offset = 0;
};
XmlFault scan_xml(std::string_view text, const XmlEvents& events);

}  // namespace tpusim::topologies
