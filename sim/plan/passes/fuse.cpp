// Pass 3: fusion. Ops that work entry by entry, and reductions, are joined with their producers into one kernel while
// the group stays convex (nothing outside the group lies on a path between two of its members), greedily in program
// order, at most 24 ops to a kernel.
//
// Dots, flash attention, lookups and collectives stand alone, but a rename joins whatever kernel makes its operand, and
// a view (rename, slice) that only one kernel reads joins that kernel: an alias costs nothing. Phases are never joined,
// and what a parameter's gather needs stays apart, so that it can be prefetched.
//
// Three sorts of collectives share buckets (buckets.cpp) in the order of the program, which is that of need for what is
// gathered and that of production for gradients: gathers of parameters, of updated parameters, reductions of gradients.
#include <algorithm>
#include <bit>

#include "sim/base/check.hpp"
#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {
namespace {

constexpr std::size_t kLargestKernel = 24;

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}
bool is_view(const ir::OpKind& kind) {
  return std::holds_alternative<ir::Rename>(kind) || std::holds_alternative<ir::Slice>(kind);
}

class Fuser {
 public:
  Fuser(const ir::Program& program, const std::vector<ir::OpId>& ops, const Binding& binding, std::int64_t bucket_bytes)
      : program_(program),
        ops_(ops),
        binding_(binding),
        bucket_bytes_(bucket_bytes),
        words_((ops.size() + 63) / 64),
        cluster_of_(ops.size()),
        group_(ops.size()) {}
  std::vector<std::vector<ir::OpId>> run();

 private:
  struct Cluster {
    std::vector<std::int32_t> ops;  // positions in ops_
    std::vector<std::uint64_t> ancestors;
    bool alive = true, fusible = false, view = false, kernel = false;
  };
  const ir::Op& op(std::size_t i) const { return program_.op(ops_[i]); }
  bool has(const std::vector<std::uint64_t>& set, std::size_t i) const { return (set[i / 64] >> (i % 64) & 1) != 0; }
  static void put(std::vector<std::uint64_t>& set, std::size_t i) { set[i / 64] |= std::uint64_t{1} << (i % 64); }
  void find_producers();
  void find_gathered_parameters();
  void add(std::size_t i);
  bool may_join(std::size_t p, std::size_t s) const;
  bool only_reader(std::size_t p, std::size_t s) const;
  void join(std::size_t p, std::size_t s);
  int sort_of(std::size_t i) const;
  void fill_buckets(const std::vector<std::uint8_t>& wanted);
  std::vector<std::uint8_t> needed() const;
  std::vector<std::vector<ir::OpId>> in_order(const std::vector<std::uint8_t>& wanted) const;

  const ir::Program& program_;
  const std::vector<ir::OpId>& ops_;
  const Binding& binding_;
  std::int64_t bucket_bytes_;
  std::size_t words_;
  std::vector<std::int32_t> made_by_;       // by value: position of its op in the list, or -1
  std::vector<std::int32_t> reader_count_;  // by value
  std::vector<Cluster> clusters_;           // by position of the op that founded it
  std::vector<std::size_t> cluster_of_;
  std::vector<std::uint8_t> group_;  // 1: a parameter's way to its gather
};

void Fuser::find_producers() {
  made_by_.assign(program_.values.size(), -1);
  reader_count_.assign(program_.values.size(), 0);
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    for (ir::ValueId v : op(i).results) made_by_[at(v.index)] = static_cast<std::int32_t>(i);
    for (ir::ValueId v : op(i).operands) ++reader_count_[at(v.index)];
  }
}

void Fuser::find_gathered_parameters() {
  std::vector<std::uint8_t> parameters_only(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    bool only = !op(i).operands.empty();
    for (ir::ValueId v : op(i).operands) {
      const std::int32_t p = made_by_[at(v.index)];
      only = only && (p >= 0 ? parameters_only[at(p)] != 0 : binding_.parameter[at(v.index)] != 0);
    }
    parameters_only[i] = only ? 1 : 0;
  }
  for (std::size_t i = ops_.size(); i-- > 0;) {
    if (parameters_only[i] == 0) continue;
    if (std::holds_alternative<ir::AllGather>(op(i).kind)) group_[i] = 1;
    if (group_[i] == 0) continue;
    for (ir::ValueId v : op(i).operands)
      if (const std::int32_t p = made_by_[at(v.index)]; p >= 0) group_[at(p)] = 1;
  }
}

// Whether every reader of what cluster p makes is in cluster s.
bool Fuser::only_reader(std::size_t p, std::size_t s) const {
  for (std::int32_t i : clusters_[p].ops)
    for (ir::ValueId v : op(at(i)).results) {
      if (binding_.keep[at(v.index)] != 0) return false;
      std::int32_t inside = 0;
      for (std::size_t c : {p, s})
        for (std::int32_t j : clusters_[c].ops)
          for (ir::ValueId u : op(at(j)).operands) inside += u == v ? 1 : 0;
      if (inside != reader_count_[at(v.index)]) return false;
    }
  return true;
}

bool Fuser::may_join(std::size_t p, std::size_t s) const {
  const Cluster& from = clusters_[p];
  const Cluster& to = clusters_[s];
  if (!from.kernel || !to.kernel || from.ops.size() + to.ops.size() > kLargestKernel) return false;
  const std::size_t a = at(from.ops[0]), b = at(to.ops.back());
  if (op(a).phase != op(b).phase || group_[a] != group_[b]) return false;
  const bool rename = to.ops.size() == 1 && std::holds_alternative<ir::Rename>(op(b).kind);
  if (!(from.fusible && to.fusible) && !rename && !(from.view && only_reader(p, s))) return false;
  // A slice waits for its reader, unless nobody else reads what it slices.
  if (to.ops.size() == 1 && std::holds_alternative<ir::Slice>(op(b).kind) && !only_reader(p, s)) return false;
  for (std::size_t w = 0; w < words_; ++w)
    for (std::uint64_t between = to.ancestors[w]; between != 0; between &= between - 1)
      if (has(clusters_[w * 64 + static_cast<std::size_t>(std::countr_zero(between))].ancestors, p)) return false;
  return true;
}

void Fuser::join(std::size_t p, std::size_t s) {
  Cluster& from = clusters_[p];
  Cluster& to = clusters_[s];
  to.ops.insert(to.ops.end(), from.ops.begin(), from.ops.end());
  std::sort(to.ops.begin(), to.ops.end());
  for (std::int32_t i : from.ops) cluster_of_[at(i)] = s;
  to.fusible = to.fusible && from.fusible;
  to.view = to.view && from.view;
  for (std::size_t w = 0; w < words_; ++w) to.ancestors[w] |= from.ancestors[w];
  to.ancestors[p / 64] &= ~(std::uint64_t{1} << (p % 64));
  from.alive = false;
  for (Cluster& c : clusters_) {
    if (!c.alive || (!has(c.ancestors, p) && !has(c.ancestors, s))) continue;
    c.ancestors[p / 64] &= ~(std::uint64_t{1} << (p % 64));
    put(c.ancestors, s);
    for (std::size_t w = 0; w < words_; ++w) c.ancestors[w] |= to.ancestors[w];
  }
}

void Fuser::add(std::size_t i) {
  Cluster c;
  c.ops.push_back(static_cast<std::int32_t>(i));
  c.ancestors.assign(words_, 0);
  c.kernel = !is_collective(op(i).kind);
  c.fusible = is_elementwise_like(op(i).kind);
  c.view = is_view(op(i).kind);
  std::vector<std::size_t> producers;
  for (ir::ValueId v : op(i).operands) {
    const std::int32_t p = made_by_[at(v.index)];
    if (p < 0) continue;
    const std::size_t from = cluster_of_[at(p)];
    if (std::find(producers.begin(), producers.end(), from) != producers.end()) continue;
    producers.push_back(from);
    put(c.ancestors, from);
    for (std::size_t w = 0; w < words_; ++w) c.ancestors[w] |= clusters_[from].ancestors[w];
  }
  cluster_of_[i] = i;
  clusters_.push_back(std::move(c));
  // The latest first: once it has joined, it no longer stands between an earlier one and this op.
  std::sort(producers.begin(), producers.end(),
            [this](std::size_t a, std::size_t b) { return clusters_[a].ops.back() > clusters_[b].ops.back(); });
  for (std::size_t p : producers)
    if (may_join(p, i)) join(p, i);
}

// 0: a collective that stays alone, else one of the three sorts that share buckets.
int Fuser::sort_of(std::size_t i) const {
  if (!is_collective(op(i).kind)) return 0;
  if (group_[i] != 0) return 1;
  if (op(i).phase == ir::Phase::update) return std::holds_alternative<ir::AllGather>(op(i).kind) ? 2 : 0;
  return binding_.gradient[at(op(i).results[0].index)] != 0 ? 3 : 0;
}

void Fuser::fill_buckets(const std::vector<std::uint8_t>& wanted) {
  std::vector<Buckets> buckets(4, Buckets(program_, bucket_bytes_));
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const int sort = sort_of(i);
    if (sort == 0 || wanted[cluster_of_[i]] == 0) continue;
    Buckets& mine = buckets[static_cast<std::size_t>(sort)];
    const std::vector<ir::OpId>& shared = mine.ops(mine.put(ops_[i]));
    if (shared.size() == 1) continue;
    const std::size_t p = cluster_of_[at(made_by_[at(program_.op(shared[0]).results[0].index)])], s = cluster_of_[i];
    if (!has(clusters_[p].ancestors, s) && !has(clusters_[s].ancestors, p)) join(p, s);
  }
}

// By cluster: whether anything that it makes is needed.
std::vector<std::uint8_t> Fuser::needed() const {
  std::vector<std::uint8_t> wanted(program_.values.size());
  std::vector<std::uint8_t> out(clusters_.size());
  std::vector<std::uint8_t> op_needed(ops_.size());
  for (std::size_t i = ops_.size(); i-- > 0;) {
    for (ir::ValueId v : op(i).results)
      op_needed[i] |= static_cast<std::uint8_t>(binding_.keep[at(v.index)] | wanted[at(v.index)]);
    if (op_needed[i] == 0) continue;
    out[cluster_of_[i]] = 1;
    for (ir::ValueId v : op(i).operands) wanted[at(v.index)] = 1;
  }
  return out;
}

// The clusters in an order in which each comes after those it reads from, and one that overwrites an instance after
// those that read what was there; where that leaves a choice, the one whose first op is earliest.
std::vector<std::vector<ir::OpId>> Fuser::in_order(const std::vector<std::uint8_t>& wanted) const {
  std::vector<std::size_t> left;
  for (std::size_t c = 0; c < clusters_.size(); ++c)
    if (clusters_[c].alive && wanted[c] != 0) left.push_back(c);
  std::sort(left.begin(), left.end(),
            [this](std::size_t a, std::size_t b) { return clusters_[a].ops[0] < clusters_[b].ops[0]; });

  std::vector<std::uint64_t> before(clusters_.size() * words_);
  for (std::size_t c : left)
    std::copy(clusters_[c].ancestors.begin(), clusters_[c].ancestors.end(), &before[c * words_]);
  std::vector<std::pair<std::size_t, ir::ValueId>> reads;  // (cluster, value), of values that have a home
  for (std::size_t c : left)
    for (std::int32_t i : clusters_[c].ops)
      for (ir::ValueId v : op(at(i)).operands)
        if (binding_.bound[at(v.index)].buffer.valid()) reads.emplace_back(c, v);
  for (std::size_t c : left)
    for (std::int32_t i : clusters_[c].ops)
      for (ir::ValueId v : op(at(i)).results) {
        if (binding_.in_place[at(v.index)] == 0) continue;
        const BufferRef home = binding_.bound[at(v.index)];
        for (const auto& [r, u] : reads)
          if (binding_.bound[at(u.index)] == home && r != c && u != v && made_by_[at(u.index)] < i &&
              !has(clusters_[r].ancestors, c))
            before[c * words_ + r / 64] |= std::uint64_t{1} << (r % 64);
      }
  std::vector<std::vector<ir::OpId>> out;
  std::vector<std::uint64_t> open(words_);
  for (std::size_t c : left) put(open, c);
  while (!left.empty()) {
    std::size_t k = 0;
    const auto waits = [&](std::size_t c) {
      for (std::size_t w = 0; w < words_; ++w)
        if ((before[c * words_ + w] & open[w]) != 0) return true;
      return false;
    };
    while (k < left.size() && waits(left[k])) ++k;
    TPUSIM_CHECK(k < left.size(), "fused kernels wait for each other");
    const std::size_t c = left[k];
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(k));
    open[c / 64] &= ~(std::uint64_t{1} << (c % 64));
    out.emplace_back();
    for (std::int32_t i : clusters_[c].ops) out.back().push_back(ops_[at(i)]);
  }
  return out;
}

std::vector<std::vector<ir::OpId>> Fuser::run() {
  find_producers();
  find_gathered_parameters();
  clusters_.reserve(ops_.size());
  for (std::size_t i = 0; i < ops_.size(); ++i) add(i);
  const std::vector<std::uint8_t> wanted = needed();
  fill_buckets(wanted);
  return in_order(wanted);
}

}  // namespace

bool is_collective(const ir::OpKind& kind) {
  return std::holds_alternative<ir::AllGather>(kind) || std::holds_alternative<ir::ReduceScatter>(kind) ||
         std::holds_alternative<ir::AllReduce>(kind);
}

bool on_matrix_unit(const ir::OpKind& kind) {
  return std::holds_alternative<ir::Dot>(kind) || std::holds_alternative<ir::Flash>(kind) ||
         std::holds_alternative<ir::FlashGrad>(kind);
}

bool is_elementwise_like(const ir::OpKind& kind) {
  return !is_collective(kind) && !on_matrix_unit(kind) && !std::holds_alternative<ir::Lookup>(kind) &&
         !std::holds_alternative<ir::LookupGrad>(kind);
}

std::vector<std::vector<ir::OpId>> fuse(const ir::Program& program, const std::vector<ir::OpId>& ops,
                                        const Binding& binding, std::int64_t bucket_bytes) {
  return Fuser(program, ops, binding, bucket_bytes).run();
}

}  // namespace tpusim::plan::passes
