#include "sim/cli/input_output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <ostream>

#include "sim/scenario/bounds.hpp"
#include "sim/scenario/read.hpp"
#include "sim/session/session.hpp"

namespace tpusim::cli {
namespace {

std::string last_error() {
  return std::strerror(errno != 0 ? errno : EIO);
}

bool say_unwritable(const std::string& path, std::string_view option, const std::string& why, Streams& streams) {
  Diagnostic d;
  d.code = Code::io;
  d.message = fmt::format("{} cannot be written: {}", option, why);
  d.file = path;
  streams.err << format(d) << '\n';
  return false;
}

bool write_stream(const std::string& path, const std::string& content, std::string& why) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (file) file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (file) file.flush();
  if (!file) why = last_error();
  return why.empty();
}

scenario::Scenario read_alone(const ScenarioArguments& arguments, Streams& streams, DiagnosticSink& sink) {
  if (arguments.file != "-") return scenario::load(arguments.file, sink, arguments.sets);
  // One byte more than is allowed is enough to know that it is too much.
  std::string text(scenario::kMaxText + 1, '\0');
  streams.in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(streams.in.gcount()));
  return scenario::read(text, "-", sink, arguments.sets);
}

}  // namespace

void ScenarioArguments::declare(CLI::App& parser) {
  parser.add_option("FILE", file, "the scenario, or - for standard input")->required();
  parser
      .add_option(
          "--set", sets,
          "change a value of the scenario, as in mesh.tensor=8; may be given again, and is checked like the file")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->take_all();
}

scenario::Scenario read_scenario(const ScenarioArguments& arguments, Streams& streams, DiagnosticSink& sink) {
  scenario::Scenario read = read_alone(arguments, streams, sink);
  // What the reader found does not hide what the catalogues would say.
  if (sink.has_errors()) {
    DiagnosticSink names;
    session::check_names(read, names);
    for (const Diagnostic& d : names.all()) sink.add(d);
  }
  return read;
}

void print_diagnostics(const std::vector<Diagnostic>& diagnostics, Streams& streams) {
  std::size_t errors = 0;
  for (const Diagnostic& d : diagnostics) {
    streams.err << format(d) << '\n';
    errors += d.severity == Severity::error ? 1 : 0;
  }
  if (errors > 1) streams.err << errors << " faults\n";
}

void print_located(const ScenarioError& error, const scenario::Scenario& scenario, Streams& streams) {
  std::vector<Diagnostic> diagnostics = error.diagnostics;
  scenario::locate(diagnostics, scenario.source);
  print_diagnostics(diagnostics, streams);
}

std::string obstacle(const Verdict& verdict, const scenario::Scenario& scenario) {
  std::vector<Diagnostic> place(1);
  place[0].pointer = verdict.pointer;
  scenario::locate(place, scenario.source);
  std::string where = place[0].file;
  if (place[0].line > 0) where += fmt::format(":{}:{}", place[0].line, place[0].column);
  if (!verdict.pointer.empty()) where += ": " + verdict.pointer;
  std::string what = fmt::format("{}: the plan cannot work: {}", where, verdict.reason);
  if (!verdict.needed.empty()) what += fmt::format("; needed: {}", verdict.needed);
  if (!verdict.available.empty()) what += fmt::format("; available: {}", verdict.available);
  return what + "\n";
}

std::string folder_of(const std::string& file) {
  if (file == "-") return ".";
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool write_file(const std::string& path, const std::string& content, std::string_view option, Streams& streams) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return say_unwritable(path, option, "it is a directory", streams);
  std::string why;
  const bool special = fs::exists(status) && !fs::is_regular_file(status);
  if (special) return write_stream(path, content, why) || say_unwritable(path, option, why, streams);
  const std::string beside = path + ".partial";
  if (!write_stream(beside, content, why)) {
    fs::remove(beside, error);
    return say_unwritable(path, option, why, streams);
  }
  fs::rename(beside, path, error);
  if (!error) return true;
  why = error.message();
  fs::remove(beside, error);
  return say_unwritable(path, option, why, streams);
}

}  // namespace tpusim::cli
