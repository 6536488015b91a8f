#include "sim/numeric/transport.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "sim/base/random.hpp"
#include "sim/numeric/shards.hpp"

namespace tpusim::numeric {
namespace {

// Member of the line through `member` along a grid axis whose coordinate there is `coordinate`.
std::int32_t on_line(const plan::CollectivePlan& plan, std::int32_t member, std::int32_t axis,
                     std::int32_t coordinate) {
  std::int64_t stride = 1;
  for (std::size_t i = plan.axes.size(); i-- > static_cast<std::size_t>(axis) + 1;) stride *= plan.axes[i].size;
  const std::int64_t size = plan.axes[static_cast<std::size_t>(axis)].size;
  return static_cast<std::int32_t>(member + (coordinate - member / stride % size) * stride);
}

// A reduce-scatter is the all-gather backwards, with senders and receivers exchanged.
std::vector<plan::LineStep> work_steps(const plan::CollectivePlan& plan, const plan::Phase::Work& work,
                                       plan::LineSteps steps_of) {
  std::vector<plan::LineStep> steps =
      steps_of(work.algorithm, plan.axes[static_cast<std::size_t>(work.axis)].size, work.pieces);
  if (!work.reduce || plan::reduces_in_place(work.algorithm)) return steps;
  std::reverse(steps.begin(), steps.end());
  for (plan::LineStep& step : steps)
    for (plan::Move& m : step) std::swap(m.from, m.to);
  return steps;
}

}  // namespace

Transport::Transport(const plan::CollectivePlan& plan, plan::LineSteps steps_of) : plan_(plan) {
  std::vector<std::int64_t> part_begin = {0};
  for (std::int64_t elements : plan.part_elements) part_begin.push_back(part_begin.back() + elements);
  TPUSIM_CHECK(part_begin.back() == plan.shard_elements, "the parts of a plan do not sum to its shard");
  for (std::size_t p = 0; p < plan.phases.size(); ++p) {
    const std::size_t begin = steps_.size();
    for (std::size_t w = 0; w < plan.phases[p].works.size(); ++w) {
      const plan::Phase::Work& work = plan.phases[p].works[w];
      const std::vector<plan::LineStep> steps = work_steps(plan, work, steps_of);
      if (steps_.size() < begin + steps.size()) steps_.resize(begin + steps.size());
      for (std::size_t s = 0; s < steps.size(); ++s) {
        add_step(p, w, part_begin[static_cast<std::size_t>(work.part)], steps[s], steps_[begin + s]);
      }
    }
  }
}

// The transfers of one step of a work on every line. `part_begin`: where the work's part begins in a slot.
void Transport::add_step(std::size_t phase, std::size_t number, std::int64_t part_begin, const plan::LineStep& moves,
                         Step& step) const {
  const plan::Phase::Work& work = plan_.phases[phase].works[number];
  const bool in_place = plan::reduces_in_place(work.algorithm);
  const std::int64_t part = plan_.part_elements[static_cast<std::size_t>(work.part)];
  const std::int64_t pieces = plan::pieces_of(work.algorithm, work.pieces);
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>, std::int32_t> targets;
  for (std::int32_t line = 0; line < plan_.members; ++line) {
    if (on_line(plan_, line, work.axis, 0) != line) continue;
    for (const plan::Move& m : moves) {
      Transfer transfer;
      transfer.from = on_line(plan_, line, work.axis, m.from);
      transfer.to = on_line(plan_, line, work.axis, m.to);
      transfer.add = in_place ? m.add : work.reduce;
      transfer.free = m.free;
      // Pieces of one chunk are different entries, but the halves of a ring meet in one order too.
      transfer.target =
          targets.try_emplace({line, m.to, m.chunk, in_place ? m.piece : 0}, static_cast<std::int32_t>(step.size()))
              .first->second;
      const plan::Piece piece = plan::piece_of(part, m.piece, pieces);
      for (std::int32_t slot : plan::chunk_slots(plan_, phase, number, line, m.chunk))
        transfer.ranges.push_back({slot * plan_.shard_elements + part_begin + piece.first, piece.count});
      step.push_back(std::move(transfer));
    }
  }
}

template <class T>
std::int64_t Transport::move(std::vector<std::vector<T>>& held, bool bf16, std::uint64_t seed) const {
  Random random(seed);
  std::int64_t moved = 0;
  std::vector<T> wire;
  const auto apply = [&](T& to, T from, bool add) {
    if (!add) {
      to = from;
    } else if (plan_.reduction == ir::Reduction::max) {
      to = from > to ? from : to;
    } else {
      to = static_cast<T>(to + from);
      if constexpr (std::is_same_v<T, float>)
        if (bf16) to = round_to_bf16(to);
    }
  };
  for (const Step& step : steps_) {
    std::vector<std::size_t> order(step.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<std::uint64_t> turn(step.size());
    for (std::uint64_t& t : turn) t = random.next();
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return turn[static_cast<std::size_t>(step[a].target)] < turn[static_cast<std::size_t>(step[b].target)];
    });
    wire.clear();
    for (std::size_t i : order)
      for (const Range& r : step[i].ranges) {
        const std::vector<T>& source = held[static_cast<std::size_t>(step[i].from)];
        wire.insert(wire.end(), source.begin() + r.first, source.begin() + r.first + r.count);
      }
    std::size_t next = 0;
    for (std::size_t i : order)
      for (const Range& r : step[i].ranges) {
        if (!step[i].free) moved += r.count;
        if (step[i].from == step[i].to) {  // through the switch and back
          next += static_cast<std::size_t>(r.count);
          continue;
        }
        std::vector<T>& target = held[static_cast<std::size_t>(step[i].to)];
        for (std::int64_t e = r.first; e < r.first + r.count; ++e)
          apply(target[static_cast<std::size_t>(e)], wire[next++], step[i].add);
      }
  }
  return moved;
}

namespace {

// Where a tensor's piece of slot `slot` lies in the tensor: what the collective's op says of its data.
struct Piece {
  plan::CollectiveKind kind = plan::CollectiveKind::all_reduce;
  ir::DimName dim;
};
Piece piece_of(const ir::OpKind& op, const plan::CollectivePlan& plan) {
  Piece piece;
  if (const auto* gather = std::get_if<ir::AllGather>(&op)) {
    piece = {plan::CollectiveKind::all_gather, gather->dim};
  } else if (const auto* scatter = std::get_if<ir::ReduceScatter>(&op)) {
    piece = {plan::CollectiveKind::reduce_scatter, scatter->dim};
  } else {
    const auto* all = std::get_if<ir::AllReduce>(&op);
    TPUSIM_CHECK(all != nullptr, "a plan for an op that is no collective");
    TPUSIM_CHECK(all->kind == plan.reduction, "a plan that reduces otherwise than its op");
  }
  TPUSIM_CHECK(piece.kind == plan.kind, "a plan of another kind than its op");
  return piece;
}

}  // namespace

template <class T>
std::int64_t Transport::run_as(const std::vector<ir::OpKind>& ops,
                               const std::vector<std::vector<const Tensor*>>& operands,
                               const std::vector<ir::TensorType>& types, std::uint64_t seed,
                               std::vector<std::vector<Tensor>>& results) const {
  const std::size_t members = static_cast<std::size_t>(plan_.members);
  const std::int64_t all = plan_.members * plan_.shard_elements;
  std::vector<std::vector<T>> held(members, std::vector<T>(static_cast<std::size_t>(all), T(0)));
  results.assign(members, {});
  std::vector<Piece> pieces;
  for (const ir::OpKind& op : ops) pieces.push_back(piece_of(op, plan_));
  // A member's own slot (all-gather), every slot (reduce-scatter), or the slots as one flat array (all-reduce).
  for (std::size_t m = 0; m < members; ++m) {
    std::int64_t at = 0;
    for (std::size_t t = 0; t < ops.size(); ++t) {
      const std::span<const T> x = operands[m][t]->data<T>();
      const std::int64_t size = operands[m][t]->size();
      const std::int64_t share = pieces[t].kind == plan::CollectiveKind::reduce_scatter ? size / plan_.members : size;
      TPUSIM_CHECK(at + share <= (plan_.kind == plan::CollectiveKind::all_reduce ? all : plan_.shard_elements),
                   "tensors that do not fit the collective's plan");
      if (pieces[t].kind == plan::CollectiveKind::reduce_scatter) {
        for (std::int64_t slot = 0; slot < plan_.members; ++slot)
          copy_shard<T>(operands[m][t]->shape(), pieces[t].dim, plan_.members, slot, x,
                        std::span<T>(held[m]).subspan(static_cast<std::size_t>(slot * plan_.shard_elements + at),
                                                      static_cast<std::size_t>(share)));
      } else {
        const std::int64_t first =
            plan_.kind == plan::CollectiveKind::all_gather ? static_cast<std::int64_t>(m) * plan_.shard_elements : 0;
        std::copy(x.begin(), x.end(), held[m].begin() + first + at);
      }
      at += share;
    }
  }
  const std::int64_t moved = move<T>(held, types[0].dtype == ir::DType::bf16, seed);
  for (std::size_t m = 0; m < members; ++m) {
    std::int64_t at = 0;
    for (std::size_t t = 0; t < ops.size(); ++t) {
      Tensor result(types[t]);
      const std::span<T> y = result.data<T>();
      const std::int64_t share =
          pieces[t].kind == plan::CollectiveKind::all_gather ? result.size() / plan_.members : result.size();
      if (pieces[t].kind == plan::CollectiveKind::all_gather) {
        for (std::int64_t slot = 0; slot < plan_.members; ++slot)
          paste_shard<T>(types[t].shape, pieces[t].dim, plan_.members, slot,
                         std::span<const T>(held[m]).subspan(static_cast<std::size_t>(slot * plan_.shard_elements + at),
                                                             static_cast<std::size_t>(share)),
                         y);
      } else {
        const std::int64_t first = plan_.kind == plan::CollectiveKind::reduce_scatter
                                       ? static_cast<std::int64_t>(m) * plan_.shard_elements
                                       : 0;
        std::copy_n(held[m].begin() + first + at, share, y.begin());
      }
      results[m].push_back(std::move(result));
      at += share;
    }
  }
  return moved * ir::bytes_of(types[0].dtype);
}

std::int64_t Transport::run(const std::vector<ir::OpKind>& ops, const std::vector<std::vector<const Tensor*>>& operands,
                            const std::vector<ir::TensorType>& types, std::uint64_t seed,
                            std::vector<std::vector<Tensor>>& results) const {
  TPUSIM_CHECK(!ops.empty() && types.size() == ops.size(), "a collective of no tensors");
  TPUSIM_CHECK(static_cast<std::int64_t>(operands.size()) == plan_.members, "a collective without all its members");
  for (const auto& tensors : operands) {
    TPUSIM_CHECK(tensors.size() == ops.size(), "a member of a collective lacks a tensor");
    for (const Tensor* tensor : tensors)
      TPUSIM_CHECK(tensor->dtype() == types[0].dtype, "a collective on tensors of several dtypes");
  }
  for (const ir::TensorType& type : types)
    TPUSIM_CHECK(type.dtype == types[0].dtype, "a collective on tensors of several dtypes");
  switch (types[0].dtype) {
    case ir::DType::f64:
      return run_as<double>(ops, operands, types, seed, results);
    case ir::DType::f32:
    case ir::DType::bf16:
      return run_as<float>(ops, operands, types, seed, results);
    case ir::DType::i32:
      return run_as<std::int32_t>(ops, operands, types, seed, results);
  }
  return 0;
}

}  // namespace tpusim::numeric
