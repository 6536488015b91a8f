// Transcripts of the command. Each *.txt here is a list of commands ("$ tpusim ..."), each followed by what it prints:
// its standard output as it is, its standard error behind "! ", its exit status behind "= ". A command that ends in "#
// shape" is compared with each number as # and runs of spaces as one, for what changes whenever a model is improved.
//
// After a wanted change: TPUSIM_UPDATE_GOLDEN=1 tests/golden, then read the difference.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/cli/cli.hpp"

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Words of a shell line; single quotes hold a word together. `| tpusim` pipes are not played: "< FILE" feeds a file.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any || !word.empty()) out.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) out.push_back(word);
  return out;
}

// Numbers become #, units of one kind one word, bars and what fills lines up go: what is left changes only when the
// report itself does.
std::string as_shape(const std::string& text) {
  static const std::pair<std::regex, const char*> rules[] = {
      {std::regex("(\xE2\x96[\x88-\x8F])+"), ""},
      {std::regex("[0-9][0-9.,]*(e[-+][0-9]+)?"), "#"},
      {std::regex("# (ps|ns|us|ms|s|min|h|d)\\b(?!/)"), "# <time>"},
      {std::regex("# (B|KiB|MiB|GiB|TiB)\\b(?!/)"), "# <bytes>"},
      {std::regex("# [KMBT] "), "# "},
      {std::regex(" +"), " "},
      {std::regex(" \n"), "\n"}};
  std::string out = text;
  for (const auto& [pattern, word] : rules) out = std::regex_replace(out, pattern, word);
  return out;
}

std::string marked(const std::string& text, const std::string& mark) {
  std::string out, line;
  std::istringstream lines(text);
  while (std::getline(lines, line)) out += mark + line + "\n";
  return out;
}

std::string play(const std::string& command) {
  std::string line = command;
  const std::string kShape = " # shape";
  const bool shape = line.size() > kShape.size() && line.substr(line.size() - kShape.size()) == kShape;
  if (shape) line.resize(line.size() - kShape.size());
  std::vector<std::string> words = words_of(line);
  REQUIRE(words.size() >= 2);
  REQUIRE(words[0] == "$");
  REQUIRE(words[1] == "tpusim");
  words.erase(words.begin(), words.begin() + 2);
  std::string input;
  if (words.size() >= 2 && words[words.size() - 2] == "<") {
    input = text_of(words.back());
    words.resize(words.size() - 2);
  }
  std::istringstream in(input);
  std::ostringstream out, err;
  tpusim::cli::Streams streams{in, out, err};
  const int status = tpusim::cli::run_command(words, streams);
  const std::string printed = marked(out.str(), "") + marked(err.str(), "! ");
  return command + "\n" + (shape ? as_shape(printed) : printed) + "= " + std::to_string(status) + "\n";
}

std::string replay(const std::string& transcript) {
  std::string out, line;
  std::istringstream lines(transcript);
  while (std::getline(lines, line))
    if (line.substr(0, 2) == "$ ") out += (out.empty() ? "" : "\n") + play(line);
  return out;
}

}  // namespace

TEST_CASE("the command says what its transcripts say") {
  // Paths in the transcripts are relative to the repository's root.
  std::filesystem::current_path(TPUSIM_SOURCE_DIR);
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden"))
    if (entry.path().extension() == ".txt") files.insert(entry.path().string());
  REQUIRE(files.size() >= 4);
  for (const std::string& file : files) {
    const std::string expected = text_of(file);
    const std::string actual = replay(expected);
    if (std::getenv("TPUSIM_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(file, std::ios::binary) << actual;
      continue;
    }
    CAPTURE(file);
    CHECK(actual == expected);
  }
}

TEST_CASE("every line of the quickstart's table that has a number has a unit") {
  std::filesystem::current_path(TPUSIM_SOURCE_DIR);
  const std::string transcript = play("$ tpusim run scenarios/quickstart.json");
  // Above stand names and sizes of the scenario; what is not a number with a unit there is a name ("v5e 4x4").
  const std::size_t from = transcript.find("  step time"), to = transcript.find("Notes\n");
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  const std::regex number("[0-9]"), with_unit(
                                        "[0-9] ?(ps|ns|us|ms|s|B|KiB|MiB|GiB|%|x|steps|[KMGTPE]?FLOP|[KMBT] "
                                        "(tokens|examples)/s|(tokens|examples)/s)");
  std::istringstream lines(transcript.substr(from, to - from));
  std::string line;
  int checked = 0;
  while (std::getline(lines, line)) {
    if (!std::regex_search(line, number)) continue;
    // The rest of a name that was too long for its column ("then line of 4").
    if (line.find_first_not_of(' ') > 10) continue;
    CAPTURE(line);
    CHECK(std::regex_search(line, with_unit));
    ++checked;
  }
  CHECK(checked > 15);
}
