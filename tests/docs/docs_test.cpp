// What the documents say is so: every command of the README runs as it stands, every output shown is what is printed,
// every scenario passes `check`, every key, command and option is there, every file named exists.
//
//   ```sh     commands, one a line, run in a copy of scenarios/ with ./tpusim beside it. "# exit status 2" at the end
//   of
//             a line: that is expected. Lines that build or test tpusim itself are not run here.
//   ```text   right after a ```sh block: the standard output of its last command. A line "..." stands for any lines.
//   ```json   a whole scenario
//
// After a wanted change of an output that is shown in full: TPUSIM_UPDATE_DOCS=1 tests/docs, then read the difference.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/scenario/contract.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = TPUSIM_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::string line;
  std::istringstream lines(text);
  while (std::getline(lines, line)) out.push_back(line);
  return out;
}

// A fenced block: its language, its lines, where its first line is (0-based), and whether it follows the block before
// it with nothing but empty lines between.
struct Block {
  std::string language;
  std::vector<std::string> lines;
  std::size_t first = 0;
  bool follows = false;
};

std::vector<Block> blocks_of(const std::string& text) {
  std::vector<Block> out;
  bool inside = false, alone = true;
  const std::vector<std::string> lines = lines_of(text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool fence = lines[i].rfind("```", 0) == 0;
    if (fence && !inside) out.push_back({lines[i].substr(3), {}, i + 1, !alone});
    if (fence) {
      inside = !inside;
      alone = inside;
    } else if (inside) {
      out.back().lines.push_back(lines[i]);
    } else if (!lines[i].empty()) {
      alone = true;
    }
  }
  REQUIRE_FALSE(inside);
  return out;
}

// A folder of our own with the scenarios and the built program, gone at the end.
class Sandbox {
 public:
  Sandbox() {
    std::string name = (fs::temp_directory_path() / "tpusim-docs-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    fs::copy(kRoot / "scenarios", folder_ / "scenarios", fs::copy_options::recursive);
    fs::create_symlink(TPUSIM_BINARY, folder_ / "tpusim");
  }
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;
  ~Sandbox() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  struct Said {
    int status = -1;
    std::string out, err;
  };
  Said run(const std::string& command) const {
    const std::string line = "cd '" + folder_.string() + "' && { " + command + "\n} >out.txt 2>err.txt </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(folder_ / "out.txt"), text_of(folder_ / "err.txt")};
  }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

// Builds or tests tpusim itself: too much for a test within a test.
bool is_about_building(const std::string& line) {
  static const std::regex words("^(tests/run|\\.ci/run|cmake|ctest|build/)");
  return std::regex_search(line, words);
}

// The size of a rounding error is not part of a document.
std::string without_rounding(const std::string& text) {
  static const std::regex error("relative\\s+error [0-9.e+-]+");
  return std::regex_replace(text, error, "relative error #");
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

// Whether `actual` reads like `shown`, in which a line "..." stands for any lines.
bool reads_like(const std::vector<std::string>& shown, const std::vector<std::string>& actual, std::size_t i = 0,
                std::size_t j = 0) {
  for (; i < shown.size(); ++i, ++j) {
    if (shown[i] == "...") {
      for (std::size_t k = j; k <= actual.size(); ++k)
        if (reads_like(shown, actual, i + 1, k)) return true;
      return false;
    }
    if (j == actual.size() || shown[i] != actual[j]) return false;
  }
  return j == actual.size();
}

// The block `at` of a file, with other lines.
void replace_block(const fs::path& file, const Block& block, const std::string& text) {
  std::vector<std::string> lines = lines_of(text_of(file));
  const auto from = lines.begin() + static_cast<std::ptrdiff_t>(block.first);
  lines.erase(from, from + static_cast<std::ptrdiff_t>(block.lines.size()));
  const std::vector<std::string> with = lines_of(text);
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(block.first), with.begin(), with.end());
  std::ofstream(file, std::ios::binary) << joined(lines);
}

// Runs the commands of a block; the standard output of the last one. Returns how many were run.
int run_block(const Sandbox& sandbox, const Block& block, std::string& last) {
  static const std::regex expected("\\s+# exit status ([0-9]+)$");
  int count = 0;
  for (std::string line : block.lines) {
    if (line.empty() || line[0] == '#' || is_about_building(line)) continue;
    std::smatch match;
    int status = 0;
    if (std::regex_search(line, match, expected)) {
      status = std::stoi(match[1]);
      line = match.prefix();
    }
    const Sandbox::Said said = sandbox.run(line);
    CAPTURE(line);
    CAPTURE(said.err);
    CHECK(said.status == status);
    last = said.out;
    ++count;
  }
  return count;
}

// The cells of a table's row, trimmed; empty when the line is none.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> out;
  if (line.empty() || line[0] != '|') return out;
  std::istringstream cells(line.substr(1));
  std::string cell;
  while (std::getline(cells, cell, '|')) {
    const std::size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
    out.push_back(from == std::string::npos ? "" : cell.substr(from, to - from + 1));
  }
  return out;
}

// `words` in backquotes, in order.
std::vector<std::string> quoted(const std::string& text) {
  static const std::regex word("`([^`]+)`");
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), word), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
}

struct Room {
  std::string folder;
  std::vector<std::string> includes;
};
std::vector<Room> rooms() {
  std::vector<Room> out;
  for (const std::string& line : lines_of(text_of(kRoot / "tests/layers/rooms.txt"))) {
    if (line.empty() || line[0] == '#' || line[0] == '<') continue;
    std::istringstream words(line);
    Room room;
    words >> room.folder;
    REQUIRE(room.folder.back() == ':');
    room.folder.pop_back();
    for (std::string word; words >> word;) room.includes.push_back(word);
    out.push_back(room);
  }
  return out;
}

}  // namespace

TEST_CASE("every command of the README runs as it stands, and prints what is shown") {
  const Sandbox sandbox;
  const fs::path readme = kRoot / "README.md";
  int commands = 0, outputs = 0;
  std::string last;
  for (const Block& block : blocks_of(text_of(readme))) {
    if (block.language == "sh") commands += run_block(sandbox, block, last);
    if (block.language != "text" || !block.follows) continue;
    ++outputs;
    const std::string shown = without_rounding(joined(block.lines)), printed = without_rounding(last);
    if (reads_like(lines_of(shown), lines_of(printed))) continue;
    if (std::getenv("TPUSIM_UPDATE_DOCS") != nullptr && shown.find("\n...\n") == std::string::npos)
      replace_block(readme, block, last);
    else
      CHECK(shown == printed);
  }
  // That the blocks were found at all: the README has some twenty commands and shows two outputs.
  CHECK(commands >= 20);
  CHECK(outputs >= 2);
}

TEST_CASE("the README begins with the two commands that build, run and test tpusim") {
  const std::vector<Block> blocks = blocks_of(text_of(kRoot / "README.md"));
  REQUIRE_FALSE(blocks.empty());
  CHECK(blocks[0].first == 3);  // a heading, an empty line, the fence
  CHECK(blocks[0].lines == std::vector<std::string>{"./tpusim run scenarios/quickstart.json", "tests/run"});
  for (const char* script : {"tpusim", "tests/run", ".ci/run"}) {
    CAPTURE(script);
    CHECK((fs::status(kRoot / script).permissions() & fs::perms::owner_exec) != fs::perms::none);
  }
}

TEST_CASE("every scenario that a document shows passes check") {
  const Sandbox sandbox;
  int scenarios = 0;
  for (const char* name : {"README.md", "ARCHITECTURE.md", "scenarios/README.md"})
    for (const Block& block : blocks_of(text_of(kRoot / name))) {
      if (block.language != "json") continue;
      std::ofstream(sandbox.folder() / "shown.json") << joined(block.lines);
      const Sandbox::Said said = sandbox.run("./tpusim check shown.json");
      CAPTURE(name);
      CAPTURE(said.err);
      CHECK(said.status == 0);
      ++scenarios;
    }
  CHECK(scenarios >= 2);
}

TEST_CASE("every command and every option in the help is in the README") {
  const Sandbox sandbox;
  const std::string readme = text_of(kRoot / "README.md");
  static const std::regex command("\n  ([a-z]+)  +"), option("(--[a-z][a-z-]*)");
  const std::string help = sandbox.run("./tpusim --help").out;
  const std::size_t at = help.find("Subcommands:"), end = help.find("Examples:");
  REQUIRE(at != std::string::npos);
  REQUIRE(end != std::string::npos);
  const std::string list = help.substr(at, end - at);
  std::set<std::string> words;
  int commands = 0;
  for (std::sregex_iterator it(list.begin(), list.end(), command), none; it != none; ++it, ++commands) {
    const std::string name = (*it)[1];
    words.insert("**`tpusim " + name);
    const std::string of_command = sandbox.run("./tpusim " + name + " --help").out;
    for (std::sregex_iterator o(of_command.begin(), of_command.end(), option), stop; o != stop; ++o)
      words.insert((*o)[1]);
  }
  CHECK(commands >= 5);
  CHECK(words.size() >= 11);  // run, check, explain, list, new; help, set, json, html, trace, no-verify, ...
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(readme.find(word) != std::string::npos);
  }
}

TEST_CASE("every key of the scenario contract and of the result is in the README") {
  std::set<std::string> documented;
  // A fence's own backquotes would pair up with a word's.
  bool inside = false;
  for (const std::string& line : lines_of(text_of(kRoot / "README.md"))) {
    if (line.rfind("```", 0) == 0) inside = !inside;
    if (inside || line.rfind("```", 0) == 0) continue;
    for (const std::string& text : quoted(line)) {
      documented.insert(text);
      std::istringstream words(text);
      for (std::string word; words >> word;) documented.insert(word);
    }
  }
  for (const tpusim::scenario::Section& section : tpusim::scenario::contract())
    for (const auto& key : section.keys) {
      const std::string name(key);
      CAPTURE(section.pointer);
      CAPTURE(name);
      CHECK(documented.count(name) == 1);
    }
  const Sandbox sandbox;
  const std::string result = sandbox.run("./tpusim run scenarios/gpt2-one-chip.json --json").out;
  const std::size_t scenario = result.find("\"scenario\""), model = result.find("\n  \"model\"");
  REQUIRE(scenario != std::string::npos);
  REQUIRE(model != std::string::npos);
  // The scenario inside it is the contract above; the mesh of the verification names axes.
  static const std::regex key("\"([a-z_]+)\": ");
  const std::string rest = result.substr(model);
  const std::set<std::string> axes = {"data", "fsdp", "tensor", "pipeline"};
  int keys = 0;
  for (std::sregex_iterator it(rest.begin(), rest.end(), key), none; it != none; ++it, ++keys) {
    const std::string name = (*it)[1];
    if (axes.count(name) == 1) continue;
    CAPTURE(name);
    // "detail" of a check is the only key whose name says all that there is to say.
    CHECK((documented.count(name) == 1 || name == "detail"));
  }
  CHECK(keys > 40);
}

TEST_CASE("everything that the README's layout names exists, and it names every room") {
  const std::vector<Block> blocks = blocks_of(text_of(kRoot / "README.md"));
  std::set<std::string> named;
  for (const Block& block : blocks) {
    if (block.language != "text" || block.lines.empty() || block.lines[0].rfind("tpusim  ", 0) != 0) continue;
    for (const std::string& line : block.lines) named.insert(line.substr(0, line.find(' ')));
  }
  REQUIRE(named.size() > 10);
  for (const std::string& path : named) {
    CAPTURE(path);
    CHECK(fs::exists(kRoot / path));
  }
  for (const Room& room : rooms()) {
    CAPTURE(room.folder);
    CHECK(named.count(room.folder) == 1);
  }
}

TEST_CASE("every file, folder and link that a document names exists") {
  static const std::regex link("\\]\\(([^)#:]+)(#[^)]*)?\\)");
  static const std::regex path("^(sim|models|topologies|reports|scenarios|tests|tools)(/[A-Za-z0-9_.-]+)+$");
  int checked = 0;
  for (const char* name : {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "scenarios/README.md", "tests/README.md"}) {
    const std::string text = text_of(kRoot / name);
    CAPTURE(name);
    REQUIRE_FALSE(text.empty());
    for (std::sregex_iterator it(text.begin(), text.end(), link), none; it != none; ++it, ++checked) {
      const std::string target = (*it)[1];
      CAPTURE(target);
      CHECK(fs::exists((kRoot / name).parent_path() / target));
    }
    for (const std::string& line : lines_of(text))
      for (const std::string& word : quoted(line)) {
        if (!std::regex_match(word, path)) continue;
        CAPTURE(word);
        CHECK(fs::exists(kRoot / word));
        ++checked;
      }
  }
  CHECK(checked > 30);
}

TEST_CASE("each room has a README, and so have scenarios and tests") {
  std::vector<std::string> folders = {"scenarios", "tests"};
  for (const Room& room : rooms()) folders.push_back(room.folder);
  REQUIRE(folders.size() >= 19);
  for (const std::string& folder : folders) {
    CAPTURE(folder);
    CHECK(fs::exists(kRoot / folder / "README.md"));
  }
}

TEST_CASE("the rooms in ARCHITECTURE.md are those that tests/layers enforces") {
  std::set<std::pair<std::string, std::set<std::string>>> told, enforced;
  for (const std::string& line : lines_of(text_of(kRoot / "ARCHITECTURE.md"))) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() != 3 || quoted(cells[0]).size() != 1 || !fs::is_directory(kRoot / quoted(cells[0])[0])) continue;
    const std::vector<std::string> includes = quoted(cells[2]);
    told.insert({quoted(cells[0])[0], {includes.begin(), includes.end()}});
  }
  for (const Room& room : rooms()) enforced.insert({room.folder, {room.includes.begin(), room.includes.end()}});
  CHECK(enforced.size() >= 17);
  CHECK(told == enforced);
}

TEST_CASE("the newest version in the changelog is the one that the command prints") {
  const Sandbox sandbox;
  const std::string printed = sandbox.run("./tpusim --version").out, changes = text_of(kRoot / "CHANGELOG.md");
  static const std::regex version("\n## ([0-9]+\\.[0-9]+\\.[0-9]+)");
  std::smatch match;
  REQUIRE(std::regex_search(changes, match, version));
  CHECK(printed == "tpusim " + match[1].str() + "\n");
}
