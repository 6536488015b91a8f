#include "topologies/readers.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "sim/base/random.hpp"
#include "topologies/metrics.hpp"
#include "topologies/shapes/grid.hpp"
#include "topology_support.hpp"

using namespace tpusim;
using namespace tpusim::topologies;

namespace {

using Read = std::optional<Topology> (*)(std::string_view, const std::string&, DiagnosticSink&);

Topology good(Read read, const std::string& text) {
  DiagnosticSink sink;
  std::optional<Topology> t = read(text, "net", sink);
  for (const Diagnostic& d : sink.all()) MESSAGE(format(d));
  REQUIRE(t.has_value());
  CHECK(sink.all().empty());
  return *t;
}

std::vector<Diagnostic> bad(Read read, const std::string& text) {
  DiagnosticSink sink;
  CHECK_FALSE(read(text, "net", sink).has_value());
  REQUIRE(sink.has_errors());
  return sink.all();
}

std::string place(const Diagnostic& d) {
  return d.file + ":" + std::to_string(d.line) + ":" + std::to_string(d.column) + " " + d.pointer + " " +
         std::string(code_name(d.code));
}

// A ring of n as a file.
std::string ring_file(int n) {
  std::string text = R"({"bandwidth": "90 GB/s", "latency": "1 us", "links": [)";
  for (int i = 0; i < n; ++i)
    text += (i > 0 ? "," : "") + std::string(R"({"from": )") + std::to_string(i) + R"(, "to": )" +
            std::to_string((i + 1) % n) + "}";
  return text + "]}";
}

std::string one_link(const std::string& fields) {
  return R"({"links": [{"from": "a", "to": "b", )" + fields + "}]}";
}

}  // namespace

TEST_CASE("an edge list is read as it is written") {
  const Topology t = good(read_edge_list, R"({
    // two chips, a switch, a one-way link
    "nodes": [{"name": "s", "kind": "switch"}, {"name": "a", "host": 3}, {"name": "b", "slice": 1}],
    "chips_forward": false,
    "latency": "2 us",
    "links": [{"from": "a", "to": "s", "bandwidth": "50 GB/s"},
              {"from": "b", "to": "s", "bandwidth": 5e10, "half_duplex": true},
              {"from": "a", "to": "b", "bandwidth": "400 Gb/s", "latency": 0, "both_ways": false}]})");
  Topology expected;
  expected.name = "net";
  expected.names = {"a", "b", "s"};  // chips first
  expected.nodes = {{NodeKind::chip, 0, 3, -1}, {NodeKind::chip, 0, -1, 1}, {NodeKind::switch_node, 0, -1, -1}};
  expected.chips = 2;
  expected.chips_forward = false;
  const LinkClass full{BytesPerSecond(50e9), Seconds(2e-6), LinkKind::custom, fabric::Level::chip, Duplex::full, 1};
  LinkClass half = full, ideal = full;
  half.duplex = Duplex::half;
  ideal.latency = Seconds(0);
  expected.classes = {full, half, ideal};
  expected.links = {{0, 2, 0, 1}, {2, 0, 0, 0}, {1, 2, 1, 3}, {2, 1, 1, 2}, {0, 1, 2, -1}};
  CHECK(t == expected);
  CHECK(node_name(t, 2) == "s");
}

TEST_CASE("a ring from a file measures as the built one") {
  const Metrics file = measure(good(read_edge_list, ring_file(9))), built = measure(ring(9, ici()));
  CHECK(file.distances.diameter == built.distances.diameter);
  CHECK(file.distances.mean_hops == doctest::Approx(built.distances.mean_hops).epsilon(1e-12));
  CHECK(file.bisection.upper == built.bisection.upper);
  CHECK(file.links == 9);
}

TEST_CASE("routes of a network from a file are legal, and go around a broken link") {
  const Topology t = good(read_edge_list, ring_file(9));
  CHECK(fault_in_routes(t) == "");
  CHECK(fault_in_routes(t, {4, 5}) == "");
}

TEST_CASE("parallel links are kept and their capacities add") {
  const Topology t = good(read_edge_list, R"({"latency": 0, "bandwidth": 1e9, "links": [
    {"from": 0, "to": 1}, {"from": 0, "to": 1}, {"from": 1, "to": 0}]})");
  CHECK(t.links.size() == 6);
  CHECK(bisection(t, default_budget).upper == BytesPerSecond(3e9));
}

TEST_CASE("every fault of an edge list is told at once, with its place") {
  const std::vector<Diagnostic> all = bad(read_edge_list, R"({"links": [
  {"from": "a", "to": "b", "bandwidth": 0, "latency": 0},
  {"from": "a", "to": "a", "bandwidth": "1 GB/s", "latency": 0},
  {"from": "a", "too": "b", "bandwidth": "1 GB", "latency": 0},
  {"from": "a", "to": "b", "bandwidth": "1 GB/s", "latency": -1},
  {"from": "é", "to": true, "latency": 0}, 7],
"bandwith": 1})");
  std::vector<std::string> places;
  for (const Diagnostic& d : all) places.push_back(place(d));

  CHECK(places == std::vector<std::string>{
                      "net:2:3 /links/0 bad-value",
                      "net:3:3 /links/1 bad-value",
                      "net:4:17 /links/2/too unknown-key",
                      "net:4:29 /links/2/bandwidth bad-unit",
                      "net:5:3 /links/3 bad-value",
                      "net:6:17 /links/4/to wrong-type",
                      "net:6:44 /links/5 wrong-type",
                      "net:7:1 /bandwith unknown-key",
                  });
  CHECK(all[0].message == "expected a bandwidth above 0 and at most 1e+18, found 0");
  CHECK(all[1].message == "a link from \"a\" to itself carries nothing; expected another node");
  CHECK(all[2].suggestion == "to");
  CHECK(all[3].suggestion == "1 GB/s");
  CHECK(all[7].suggestion == "bandwidth");
}

TEST_CASE("a network in parts names a chip of each") {
  const std::vector<Diagnostic> all = bad(read_edge_list, R"({"latency": 0, "bandwidth": 1, "links": [
    {"from": "a", "to": "b"}, {"from": "c", "to": "d"}]})");
  REQUIRE(all.size() == 1);
  CHECK(all[0].message == "the network is in parts: no way leads from \"a\" to \"c\"");
  // One-way: b is reached and does not reach back.
  CHECK(bad(read_edge_list, one_link(R"("bandwidth": 1, "latency": 0, "both_ways": false)"))[0].message ==
        "the network is in parts: no way leads from \"b\" to \"a\"");
  // a and c meet b on a switch each, and b does not forward.
  CHECK(bad(read_edge_list, R"({"nodes": [{"name": "b"}, {"name": "a"}, {"name": "c"}, {"name": "s", "kind": "switch"},
    {"name": "t", "kind": "switch"}], "chips_forward": false, "latency": 0, "bandwidth": 1, "links": [
    {"from": "a", "to": "s"}, {"from": "b", "to": "s"}, {"from": "b", "to": "t"}, {"from": "c", "to": "t"}]})")[0]
            .message == "the network is in parts: no way leads from \"a\" to \"c\" (chips do not forward)");
}

TEST_CASE("names that nodes do not declare are refused with the nearest one") {
  const std::vector<Diagnostic> all = bad(read_edge_list, R"({"nodes": [{"name": "left"}, {"name": "right"},
    {"name": "left"}, {"kind": "chip"}, {"name": "x", "kind": "swich"}], "latency": 0, "bandwidth": 1, "links": [
    {"from": "left", "to": "rigth"}]})");
  REQUIRE(all.size() == 4);
  CHECK(all[0].message == "two nodes have the name \"left\"");
  CHECK(all[1].message == "a node needs \"name\"");
  CHECK(all[2].suggestion == "switch");
  CHECK(all[3].suggestion == "right");
}

TEST_CASE("a key given twice, and nodes after links, are refused") {
  // 11 characters to the link, 14 and 11 for its ends, 16 and 14 for the rates: the second "to" is at 67.
  CHECK(place(bad(read_edge_list, one_link(R"("bandwidth": 1, "latency": 0, "to": "c")"))[0]) ==
        "net:1:67 /links/0/to duplicate-key");
  CHECK(place(bad(read_edge_list, R"({"links": [], "links": []})")[0]) == "net:1:15 /links duplicate-key");
  CHECK(bad(read_edge_list, R"({"links": [], "nodes": [{"name": "a"}]})")[0].message ==
        "\"nodes\" has to come before \"links\"");
}

TEST_CASE("GraphML: a directed graph has one-way links, and a second graph is refused") {
  const std::string keys =
      R"(<graphml><key id="b" attr.name="bandwidth"><default>1</default></key><key id="l" attr.name="latency"><default>0</default></key>)";
  const Topology t = good(read_graphml, keys + R"(<graph edgedefault="directed"><node id="a"/><node id="b"/>
    <edge source="a" target="b"/><edge source="b" target="a"/><edge source="b" target="a" directed="false"/></graph></graphml>)");
  CHECK(t.links == std::vector<Link>{{0, 1, 0, -1}, {1, 0, 0, -1}, {1, 0, 0, 3}, {0, 1, 0, 2}});
  CHECK(bad(read_graphml, "<graphml><graph><node id='a'><graph/></node></graph></graphml>")[0].code ==
        Code::not_in_version);
  CHECK(bad(read_graphml, "<graphml><graph edgedefault='direct'><node id='a'/></graph></graphml>")[0].suggestion ==
        "directed");
}

TEST_CASE("what is missing is named once") {
  CHECK(place(bad(read_edge_list, "{}")[0]) == "net:1:1  missing-key");
  CHECK(bad(read_edge_list, one_link(R"("latency": 0)"))[0].message ==
        "a link without \"bandwidth\", and the file has no default");
  CHECK(bad(read_edge_list, one_link(R"("bandwidth": 1)"))[0].message ==
        "a link without \"latency\", and the file has no default");
  CHECK(bad(read_edge_list, R"({"links": []})")[0].message == "a network needs at least one chip");
  CHECK(bad(read_edge_list, one_link(R"("bandwidth": 1, "latency": 0, "half_duplex": true, "both_ways": false)"))[0]
            .code == Code::conflict);
  CHECK(good(read_edge_list, R"({"nodes": [{"name": "alone"}], "links": []})").chips == 1);
}

TEST_CASE("text that is not JSON is refused where it breaks") {
  const Diagnostic d = bad(read_edge_list, "{\"links\": [\n  {\"from\": 1,, }]}")[0];
  CHECK(place(d) == "net:2:14  syntax");
  for (const char* text :
       {"", "[", "{\"links\": [{", "nul", "\"x\"", "[]", "1", "{\"links\": 3}", "{\"links\": {}}", "{\"links\": [[1]]}",
        "{\"nodes\": [1], \"links\": []}", "{\"links\": [{\"from\": {\"a\": [1]}}]}"}) {
    CAPTURE(text);
    bad(read_edge_list, text);
  }
  std::string deep = "{\"links\": [{\"from\": ";
  for (int i = 0; i < 100000; ++i) deep += "[";
  CHECK(bad(read_edge_list, deep).back().code == Code::nesting);
}

TEST_CASE("a file full of faults stops at twenty") {
  std::string text = R"({"links": [)";
  for (int i = 0; i < 100000; ++i) text += R"({"from": null},)";
  CHECK(bad(read_edge_list, text + "{}]}").size() <= 21);
  std::string graph = "<graphml><graph>";
  for (int i = 0; i < 100000; ++i) graph += "<node/>";
  CHECK(bad(read_graphml, graph + "</graph></graphml>").size() <= 21);
}

TEST_CASE("more nodes than the bound are refused when they are seen") {
  // A star of one more than a million: each link brings a node.
  std::string text = R"({"bandwidth": 1, "latency": 0, "links": [)";
  for (std::int64_t i = 1; i <= max_file_nodes; ++i)
    text += (i > 1 ? ",{\"from\":0,\"to\":" : "{\"from\":0,\"to\":") + std::to_string(i) + "}";
  const std::vector<Diagnostic> all = bad(read_edge_list, text + "]}");
  REQUIRE(all.size() == 1);
  CHECK(all[0].code == Code::too_large);
  CHECK(all[0].message == "a network has at most 1048576 nodes");
}

TEST_CASE("GraphML is read with keys, defaults and directions") {
  const Topology t = good(read_graphml, R"(<?xml version="1.0" encoding="UTF-8"?>
<!-- as networkx writes it -->
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="kind" attr.type="string"><default>chip</default></key>
  <key id="d1" for="edge" attr.name="bandwidth" attr.type="string"><default>50 GB/s</default></key>
  <key id="d2" for="edge" attr.name="latency" attr.type="double"/>
  <key id="d3" for="node" attr.name="label"/>
  <graph edgedefault="undirected">
    <node id="s"><data key="d0">switch</data></node>
    <node id="a"><data key="d3">A &amp; &#66;</data></node>
    <node id="b"/>
    <edge source="a" target="s"><data key="d2"> 2e-6 </data></edge>
    <edge source="b" target="s"><data key="d1"><![CDATA[1e9]]></data><data key="d2">1 us</data></edge>
    <edge source="a" target="b" directed="true"><data key="d2">0</data></edge>
  </graph>
</graphml>)");
  CHECK(t.names == std::vector<std::string>{"a", "b", "s"});
  CHECK(t.chips == 2);
  CHECK(t.links == std::vector<Link>{{0, 2, 0, 1}, {2, 0, 0, 0}, {1, 2, 1, 3}, {2, 1, 1, 2}, {0, 1, 2, -1}});
  CHECK(t.classes[0].bandwidth == BytesPerSecond(50e9));
  CHECK(t.classes[0].latency == Seconds(2e-6));
  CHECK(t.classes[1].bandwidth == BytesPerSecond(1e9));
}

TEST_CASE("faults of GraphML have the place of their element") {
  const std::vector<Diagnostic> all = bad(read_graphml, R"(<graphml>
<key id="bw" for="edge" attr.name="bandwith"/>
<key id="l" for="edge" attr.name="latency"><default>0</default></key>
<key id="b" for="edge" attr.name="bandwidth"><default>1</default></key>
<graph edgedefault="directed">
 <node id="left"/><node id="left"/><node/>
 <edge source="left" target="lefft"/>
 <edge source="left" target="left"/>
 <edge source="left"><data key="b">fast</data></edge>
 <hyperedge/>
</graph></graphml>)");
  std::vector<std::string> places;
  for (const Diagnostic& d : all) places.push_back(place(d));
  CHECK(places == std::vector<std::string>{
                      "net:2:1 /key unknown-key",
                      "net:6:19 /graph/node/1 duplicate-key",
                      "net:6:36 /graph/node/2 missing-key",
                      "net:7:2 /graph/edge/0 unknown-name",
                      "net:8:2 /graph/edge/1 bad-value",
                      "net:9:2 /graph/edge/2/bandwidth bad-value",
                      "net:10:2 /hyperedge not-in-version",
                  });
  CHECK(all[0].suggestion == "bandwidth");
  CHECK(all[3].suggestion == "left");
}

TEST_CASE("broken XML is refused where it breaks") {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"", "no element"},
      {"<graphml>", "the text ends inside"},
      {"<graphml></graph>", "closes nothing"},
      {"<graphml><graph></graphml>", "</graph> is expected"},
      {"<graphml a=1/>", "quotes"},
      {"<graphml a='1' a='2'/>", "twice"},
      {"<graphml a='&bomb;'/>", "entity"},
      {"<graphml a='&#xD800;'/>", "entity"},
      {"<!DOCTYPE g [<!ENTITY a 'b'>]><graphml/>", "DOCTYPE"},
      {"<!-- ", "a comment"},
      {"<graphml/><graphml/>", "second root"},
      {"<graphml/>x", "outside"},
      {"<graphml", "without its '>'"},
      {"<graphml/>", "there is none here"},
  };
  for (const auto& pair : texts) {
    CAPTURE(pair.first);
    const std::vector<Diagnostic> all = bad(read_graphml, pair.first);
    CHECK(all[0].message.find(pair.second) != std::string::npos);
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "<g>";
  CHECK(bad(read_graphml, deep)[0].message.find("nested") != std::string::npos);
}

TEST_CASE("a file cut short anywhere is refused, and one with any byte changed is read or refused") {
  const std::string json = R"({"nodes": [{"name": "a"}, {"name": "s\u00e9", "kind": "switch"}], "latency": "1 us",
    "links": [{"from": "a", "to": "s\u00e9", "bandwidth": 1e9, "both_ways": true}]})";
  const std::string xml = R"(<?xml version="1.0"?><graphml><key id="b" for="edge" attr.name="bandwidth"/>
    <key id="l" attr.name="latency"><default>0</default></key><!-- c --><graph edgedefault="undirected"><node id="a&amp;"/>
    <node id='b'/><edge source="a&#38;" target="b"><data key="b"><![CDATA[1e9]]></data></edge></graph></graphml>)";
  Random random(7);
  for (const auto& [read, text] : {std::pair(Read(read_edge_list), json), std::pair(Read(read_graphml), xml)}) {
    CHECK(good(read, text).chips >= 1);
    for (std::size_t n = 0; n < text.size(); ++n) {
      DiagnosticSink sink;
      CHECK_FALSE(read(std::string_view(text).substr(0, n), "net", sink).has_value());
      CHECK(sink.has_errors());
    }
    for (int i = 0; i < 20000; ++i) {
      std::string changed = text;
      changed[random.below(changed.size())] = static_cast<char>(random.below(256));
      DiagnosticSink sink;
      const bool fine = read(changed, "net", sink).has_value();
      REQUIRE(fine != sink.has_errors());
    }
  }
}

TEST_CASE("a file is told apart by its first character, and one that is not there is an io fault") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tpusim_readers_test";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder / name) << text;
    return (folder / name).string();
  };
  DiagnosticSink sink;
  CHECK(read_topology_file(write("a.json", ring_file(4)), sink)->chips == 4);
  CHECK(read_topology_file(write("b.graphml", "\n <graphml><graph><node id='x'/></graph></graphml>"), sink)->chips ==
        1);
  CHECK(sink.all().empty());
  CHECK_FALSE(read_topology_file((folder / "none").string(), sink).has_value());
  CHECK_FALSE(read_topology_file(folder.string(), sink).has_value());
  REQUIRE(sink.all().size() == 2);
  CHECK(sink.all()[0].code == Code::io);
  CHECK(sink.all()[0].message == "cannot be read: No such file or directory");
  CHECK(sink.all()[1].code == Code::io);
  std::filesystem::remove_all(folder);
}
