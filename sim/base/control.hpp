// Characters that would let text drive the terminal, or the reading order, of whoever sees it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tpusim {

// How many bytes the control character at the beginning of UTF-8 `text` takes; 0 when there is none. Controls are the
// C0 set with delete, the C1 set (U+0080 to U+009F), and what overrides the direction of writing (U+202A to U+202E,
// U+2066 to U+2069).
inline std::size_t control_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if (!text.empty() && (byte(0) < 0x20 || byte(0) == 0x7F)) return 1;
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return 2;
  if (byte(0) == 0xE2 && byte(1) == 0x80 && byte(2) >= 0xAA && byte(2) <= 0xAE) return 3;
  if (byte(0) == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return 3;
  return 0;
}

// With every control character but those in `kept` replaced by `by`.
inline std::string without_controls(std::string_view text, std::string_view by, std::string_view kept = "") {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = control_bytes(text.substr(i));
    if (length == 0 || kept.find(text[i]) != std::string_view::npos) {
      out += text[i++];
    } else {
      out += by;
      i += length;
    }
  }
  return out;
}

}  // namespace tpusim
