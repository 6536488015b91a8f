#include "topologies/readers.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

namespace tpusim::topologies {

namespace {

// 10^7 links at 200 bytes.
constexpr std::streamoff kMaxFile = std::streamoff{2'000'000'000};

std::optional<Topology> unreadable(Code code, const std::string& path, std::string message, DiagnosticSink& sink) {
  Diagnostic d;
  d.code = code;
  d.file = path;
  d.message = std::move(message);
  sink.add(std::move(d));
  return std::nullopt;
}

}  // namespace

std::optional<Topology> read_topology_file(const std::string& path, DiagnosticSink& sink) {
  errno = 0;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = in ? static_cast<std::streamoff>(in.tellg()) : -1;
  // A directory opens, but tells no size.
  if (!in || size < 0 || size == std::numeric_limits<std::streamoff>::max())
    return unreadable(Code::io, path,
                      std::string("cannot be read: ") + (errno != 0 ? std::strerror(errno) : "not a file"), sink);
  if (size > kMaxFile)
    return unreadable(Code::too_large, path,
                      "a network's file has at most 2 GB, found " + std::to_string(size) + " bytes", sink);
  std::string text(static_cast<std::size_t>(size), '\0');
  in.seekg(0);
  in.read(text.data(), size);
  if (!in) return unreadable(Code::io, path, "cannot be read to its end", sink);
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  const bool xml = first != std::string::npos && text[first] == '<';
  return xml ? read_graphml(text, path, sink) : read_edge_list(text, path, sink);
}

}  // namespace tpusim::topologies
