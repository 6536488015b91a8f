// What goes wrong around the command: files that are cut off, are something else, or cannot be written.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "sim/cli/cli.hpp"

using namespace tpusim::cli;

namespace {

struct Said {
  int status = -1;
  std::string out, err;
};

Said call(const std::vector<std::string>& arguments, const std::string& standard_input = "") {
  std::istringstream in(standard_input);
  std::ostringstream out, err;
  Streams streams{in, out, err};
  Said said;
  said.status = run_command(arguments, streams);
  said.out = out.str();
  said.err = err.str();
  return said;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string kQuickstart = std::string(TPUSIM_SOURCE_DIR) + "/scenarios/gpt2-one-chip.json";

struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "tpusim-anomaly-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* file) const { return (path / file).string(); }
};

}  // namespace

TEST_CASE("a scenario cut off at any byte is refused with a place, and never anything worse") {
  const std::string whole = text_of(kQuickstart);
  const std::size_t last = whole.rfind('}');
  for (std::size_t n = 0; n <= last; ++n) {
    CAPTURE(n);
    const Said said = call({"check", "-"}, whole.substr(0, n));
    REQUIRE(said.status == exit_usage);
    REQUIRE(said.err.substr(0, 2) == "-:");
    REQUIRE(said.out == "");
  }
}

TEST_CASE("a directory, a missing file, an empty file and a binary file are told apart") {
  const Folder folder;
  CHECK(call({"run", folder.path.string()}).err.find("this is a directory") != std::string::npos);
  CHECK(call({"run", folder / "none.json"}).err.find("No such file or directory") != std::string::npos);
  std::ofstream(folder / "empty.json").flush();
  CHECK(call({"run", folder / "empty.json"}).err.find("the scenario is empty") != std::string::npos);
  {
    std::ofstream binary(folder / "binary.json", std::ios::binary);
    for (int i = 0; i < 4096; ++i) binary << static_cast<char>(i * 37 % 256);
  }
  const Said binary = call({"run", folder / "binary.json"});
  CHECK(binary.err.find("[syntax]") != std::string::npos);
  for (const char* file : {"none.json", "empty.json", "binary.json"})
    CHECK(call({"run", folder / file}).status == exit_usage);
  CHECK(call({"run", "/dev/null"}).status == exit_usage);
  CHECK(call({"run", "/dev/zero"}).err.find("[too-large]") != std::string::npos);
}

TEST_CASE("a report that cannot be written is said, and the answer is printed all the same") {
  const Folder folder;
  const std::string good = call({"run", kQuickstart, "--no-verify", "--json"}).out;
  REQUIRE(good.size() > 100);
  for (const std::string& path : {folder / "no/such/folder/r.html", folder.path.string(), std::string("/dev/full")}) {
    CAPTURE(path);
    for (const char* option : {"--html", "--trace"}) {
      const Said said = call({"run", kQuickstart, "--no-verify", "--json", option, path});
      CHECK(said.status == exit_usage);
      CHECK(said.out == good);
      CHECK(said.err.find(path + ": error: ") == 0);
      CHECK(said.err.find("cannot be written") != std::string::npos);
    }
  }
}

TEST_CASE("a report is written whole, over an older one, and nothing is left beside it") {
  const Folder folder;
  const std::string file = folder / "r.html";
  std::ofstream(file) << "old";
  const Said said = call({"run", kQuickstart, "--no-verify", "--html", file});
  CHECK(said.err == "");
  CHECK(said.status == exit_done);
  const std::string page = text_of(file);
  CHECK(page.substr(0, 9) == "<!doctype");
  CHECK(page.find("</html>") != std::string::npos);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("a report without a name, or two in one file, is refused before anything is simulated") {
  const Folder folder;
  for (const char* option : {"--html", "--trace"}) {
    const Said said = call({"run", kQuickstart, "--no-verify", option, ""});
    CHECK(said.status == exit_usage);
    CHECK(said.out == "");
    CHECK(said.err.find(std::string(option) + ": a file name is expected") != std::string::npos);
  }
  const Said both = call({"run", kQuickstart, "--no-verify", "--html", folder / "r", "--trace", folder / "r"});
  CHECK(both.status == exit_usage);
  CHECK(both.out == "");
  CHECK(both.err.find("each needs its own") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("standard input is a file like any other") {
  const Said by_file = call({"run", kQuickstart, "--no-verify", "--json"});
  const Said by_input = call({"run", "-", "--no-verify", "--json"}, text_of(kQuickstart));
  CHECK(by_file.status == exit_done);
  CHECK(by_input.status == exit_done);
  CHECK(by_input.out == by_file.out);
}
