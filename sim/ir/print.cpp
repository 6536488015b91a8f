// A program as text, one op a line.
#include <fmt/format.h>

#include <array>

#include "sim/ir/ops.hpp"

namespace tpusim::ir {
namespace {

std::string axes_text(const MeshAxes& axes) {
  std::string out;
  for (const std::uint8_t a : axes) out += fmt::format("{}{}", out.empty() ? "" : ",", a);
  return out.empty() ? out : fmt::format(" over {}", out);
}

std::string names_text(const DimNames& names) {
  std::string out;
  for (const DimName n : names) out += (out.empty() ? "" : ",") + to_string(n);
  return out;
}

struct Attributes {
  std::string operator()(const Dot&) const { return ""; }
  std::string operator()(const Map& m) const {
    const bool has_number =
        m.kind == Elementwise::scale || m.kind == Elementwise::add_scalar || m.kind == Elementwise::minimum_scalar;
    return has_number ? fmt::format(" {}", m.a) : "";
  }
  std::string operator()(const Reduce& r) const { return " " + names_text(r.dims); }
  std::string operator()(const Rename& r) const { return fmt::format(" {}->{}", to_string(r.from), to_string(r.to)); }
  std::string operator()(const MaskPadding& m) const {
    return fmt::format(" {} fill {}{}", to_string(m.dim), m.fill, axes_text(m.axes));
  }
  std::string operator()(const MaskCausal& m) const {
    return fmt::format(" {} >= {} fill {}{}{}", to_string(m.query), to_string(m.key), m.fill, axes_text(m.query_axes),
                       axes_text(m.key_axes));
  }
  std::string operator()(const Rope& r) const {
    return fmt::format(" {} by {} theta {}{}", to_string(r.rotated), to_string(r.positions), r.theta,
                       axes_text(r.axes));
  }
  std::string operator()(const Lookup& l) const { return " " + to_string(l.rows) + axes_text(l.axes); }
  std::string operator()(const LookupGrad& l) const { return " " + to_string(l.rows.name) + axes_text(l.axes); }
  std::string operator()(const Pick& p) const { return " " + to_string(p.classes) + axes_text(p.axes); }
  std::string operator()(const PickGrad& p) const { return " " + to_string(p.classes.name) + axes_text(p.axes); }
  std::string operator()(const Flash& f) const {
    return fmt::format(" scale {}{} block {}{}", f.scale, f.causal ? " causal" : "", f.block, axes_text(f.query_axes));
  }
  std::string operator()(const FlashGrad& f) const {
    return fmt::format(" scale {}{} block {}{}", f.scale, f.causal ? " causal" : "", f.block, axes_text(f.query_axes));
  }
  std::string operator()(const Fill& f) const { return fmt::format(" {}", f.value); }
  std::string operator()(const Update& u) const { return fmt::format(" rate {}", u.learning_rate); }
  std::string operator()(const AllGather& a) const { return " " + to_string(a.dim) + axes_text(a.axes); }
  std::string operator()(const ReduceScatter& a) const { return " " + to_string(a.dim) + axes_text(a.axes); }
  std::string operator()(const AllReduce& a) const { return axes_text(a.axes); }
  std::string operator()(const Slice& a) const { return " " + to_string(a.dim) + axes_text(a.axes); }
};

std::string value_text(const Program& p, ValueId id) {
  return fmt::format("%{} {}: {}", id.index, p.value(id).label, to_string(p.value(id).type));
}

}  // namespace

std::string print(const Program& program) {
  static constexpr std::array<const char*, 4> kPhases = {"forward", "recompute", "backward", "update"};
  std::string out = fmt::format("program {}\n", program.name);
  const auto port = [&](const char* what, ValueId id) {
    if (id.valid()) out += fmt::format("  {} {}\n", what, value_text(program, id));
  };
  port("x_in", program.x_in);
  for (const Parameter& p : program.parameters) {
    port("parameter", p.value);
    if (!p.tie.empty()) out += fmt::format("    tied to {}\n", p.tie);
  }
  for (const DataInput& d : program.data) port("data", d.value);
  int phase = -1;
  for (const Op& op : program.ops) {
    if (static_cast<int>(op.phase) != phase) {
      phase = static_cast<int>(op.phase);
      out += fmt::format("{}\n", kPhases[static_cast<std::size_t>(phase)]);
    }
    out += "  ";
    for (std::size_t i = 0; i < op.results.size(); ++i) out += (i > 0 ? ", " : "") + value_text(program, op.results[i]);
    out += fmt::format(" = {}{}", op_name(op.kind), std::visit(Attributes{}, op.kind));
    for (std::size_t i = 0; i < op.operands.size(); ++i)
      out += fmt::format("{}%{}", i > 0 ? ", " : " ", op.operands[i].index);
    out += "\n";
  }
  port("x_out", program.x_out);
  port("loss", program.loss);
  port("dx_in", program.dx_in);
  for (const Parameter& p : program.parameters)
    if (p.gradient.valid()) out += fmt::format("  gradient of {} %{}\n", p.name, p.gradient.index);
  return out;
}

}  // namespace tpusim::ir
