// A hand-built training step: stages of layers, microbatches, and every kind of dependence that a plan can hold. Shapes
// and durations come from the caller, so that tests can draw them at random.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "tests/support/step_builder.hpp"

namespace tpusim::testing {

enum class GradientMode { none, all_reduce_in_place, reduce_scatter, every_microbatch };

struct PipelineShape {
  std::int32_t stages = 1, layers = 1;  // layers of one stage
  std::int64_t microbatches = 1;
  std::int64_t data = 2;        // size of the data axis
  bool data_major = false;      // mesh (data, pipeline), else (pipeline, data)
  bool gpipe = false;           // else 1F1B
  bool unequal = false;         // every stage has kernels of its own
  bool gather = false;          // parameters are gathered one call ahead
  bool await = false;           // the compute stream waits for each gradient reduction
  bool tied = false;            // first and last site share a gradient (two stages or more)
  bool two_links = false;       // gathers and gradients use different links
  bool early_gradient = false;  // the gradient is made some kernels before the call ends
  GradientMode gradients = GradientMode::none;
  std::function<Seconds()> compute, transfer;  // durations, in the order of construction
};

class PipelineProgram {
 public:
  static plan::StepProgram build(const PipelineShape& shape) { return PipelineProgram(shape).run(); }

 private:
  struct Unit {
    ir::Phase phase;
    std::int64_t microbatch;
  };
  struct Segment {
    std::vector<Unit> body;
    std::int64_t repeat;
  };
  // What the kernels of a block are.
  struct Block {
    bool opens = false, closes = false;  // the model's first, last site
    std::int32_t f1, f2, b1, b2, first_gradient, more_gradient, update, gather_f = -1, reduce = -1, add = -1,
                                                                        add_first = -1;
    std::int32_t tied_first = -1, tied_more = -1, tied_update = -1;
    BufferId w, wg, h, t, u, g, gr, d, lg, lr;
  };

  explicit PipelineProgram(const PipelineShape& shape)
      : s_(shape),
        b_(shape.data_major
               ? std::vector<std::pair<std::string, std::int64_t>>{{"data", shape.data}, {"pipeline", shape.stages}}
               : std::vector<std::pair<std::string, std::int64_t>>{{"pipeline", shape.stages}, {"data", shape.data}}) {}

  plan::StepProgram run() {
    const std::int32_t link = b_.resource("link");
    gather_link_ = gradient_link_ = link;
    if (s_.two_links) gradient_link_ = b_.resource("link2");
    data_axis_ = s_.data_major ? 0 : 1;
    x_ = b_.buffer("x", plan::Scope::microbatch);
    dx_ = b_.buffer("dx", plan::Scope::microbatch);
    for (std::int32_t st = 0; st + 1 < s_.stages; ++st) {
      down_.push_back(b_.permute(st, st + 1, ref(x_), ref(x_, -1), b_.resource("down"), s_.transfer()));
      up_.push_back(b_.permute(st + 1, st, ref(dx_, -1), ref(dx_), b_.resource("up"), s_.transfer()));
    }
    tied_ = s_.tied && s_.stages > 1;
    if (tied_) {
      gt_ = b_.buffer("tied", plan::Scope::step);
      sum_ = b_.stage_reduce(ref(gt_), {0, s_.stages - 1}, b_.resource("sums"), s_.transfer());
    }
    for (std::int32_t st = 0; st < s_.stages; ++st)
      for (std::int32_t l = 0; l < s_.layers; ++l) b_.p.sites.push_back({block_of(st, l), st});
    b_.p.microbatches = s_.microbatches;
    for (std::int32_t st = 0; st < s_.stages; ++st) expand(st);
    make_templates(b_, parts_);
    return b_.done();
  }

  std::int32_t block_of(std::int32_t stage, std::int32_t layer) {
    const bool opens = stage == 0 && layer == 0, closes = stage == s_.stages - 1 && layer == s_.layers - 1;
    const std::tuple<std::int32_t, bool, bool> key{s_.unequal ? stage : 0, opens, closes};
    const auto found = block_index_.find(key);
    if (found != block_index_.end()) return found->second;
    Block b;
    b.opens = opens;
    b.closes = closes;
    b.w = b_.buffer("w", plan::Scope::site, true);
    b.wg = b_.buffer("wg", plan::Scope::call);
    b.h = b_.buffer("h", plan::Scope::microbatch);
    b.t = b_.buffer("t", plan::Scope::call);
    b.u = b_.buffer("u", plan::Scope::call);
    b.g = b_.buffer("g", plan::Scope::site);
    b.gr = b_.buffer("gr", plan::Scope::site);
    b.d = b_.buffer("d", plan::Scope::microbatch, true);
    b.lg = b_.buffer("lg", plan::Scope::call);
    b.lr = b_.buffer("lr", plan::Scope::call);
    const BufferRef weight = ref(s_.gather ? b.wg : b.w), in = opens ? ref(b.d) : ref(x_, -1),
                    out = closes ? ref(x_) : ref(dx_);
    b.f1 = b_.kernel("f1", s_.compute(), {in, weight}, {ref(b.t)});
    b.f2 = b_.kernel("f2", s_.compute(), {ref(b.t)}, {ref(x_), ref(b.h)});
    b.b1 = b_.kernel("b1", s_.compute(), {out, ref(b.h)}, {ref(b.u)});
    b.b2 = b_.kernel("b2", s_.compute(), {ref(b.u), weight},
                     opens ? std::vector<BufferRef>{} : std::vector<BufferRef>{ref(dx_, -1)});
    const bool every = s_.gradients == GradientMode::every_microbatch;
    b.first_gradient = b_.kernel("g", s_.compute(), {ref(b.u)}, {ref(every ? b.lg : b.g)});
    b.more_gradient = every ? b.first_gradient : b_.kernel("g+", s_.compute(), {ref(b.u), ref(b.g)}, {ref(b.g)});
    if (s_.gather)
      b.gather_f = b_.collective(plan::CollectiveKind::all_gather, "w", data_axis_, gather_link_, s_.transfer(),
                                 {ref(b.w)}, {ref(b.wg)});
    BufferRef final_gradient = ref(b.g);
    switch (s_.gradients) {
      case GradientMode::none:
        break;
      case GradientMode::all_reduce_in_place:
        b.reduce = b_.collective(plan::CollectiveKind::all_reduce, "g", data_axis_, gradient_link_, s_.transfer(),
                                 {ref(b.g)}, {ref(b.g)});
        break;
      case GradientMode::reduce_scatter:
        b.reduce = b_.collective(plan::CollectiveKind::reduce_scatter, "g", data_axis_, gradient_link_, s_.transfer(),
                                 {ref(b.g)}, {ref(b.gr)});
        final_gradient = ref(b.gr);
        break;
      case GradientMode::every_microbatch:
        b.reduce = b_.collective(plan::CollectiveKind::reduce_scatter, "g", data_axis_, gradient_link_, s_.transfer(),
                                 {ref(b.lg)}, {ref(b.lr)});
        b.add_first = b_.kernel("set", s_.compute(), {ref(b.lr)}, {ref(b.g)});
        b.add = b_.kernel("add", s_.compute(), {ref(b.lr), ref(b.g)}, {ref(b.g)});
        break;
    }
    b.update = b_.kernel("update", s_.compute(), {final_gradient, ref(b.w)}, {ref(b.w)});
    if (tied_ && (opens || closes)) {
      b.tied_first = b_.kernel("t", s_.compute(), {ref(b.u)}, {ref(gt_)});
      b.tied_more = b_.kernel("t+", s_.compute(), {ref(b.u), ref(gt_)}, {ref(gt_)});
      b.tied_update = b_.kernel("tied update", s_.compute(), {ref(gt_)}, {});
    }
    blocks_.push_back(b);
    return block_index_[key] = static_cast<std::int32_t>(blocks_.size() - 1);
  }

  CallParts parts_of(const plan::CallKind& k) {
    const Block& b = blocks_[static_cast<std::size_t>(k.block)];
    const bool receives = (k.stage_edge & 1) != 0, sends = (k.stage_edge & 2) != 0;
    CallParts out;
    const auto kernel = [](std::int32_t body) { return Ins(InstrKind::kernel, body); };
    const auto gather = [&] {
      if (s_.gather) out.prefetch.push_back(Ins(InstrKind::collective, b.gather_f).makes({ref(b.wg)}));
    };
    const std::vector<BufferRef> gathered = s_.gather ? std::vector<BufferRef>{ref(b.wg)} : std::vector<BufferRef>{};
    if (k.phase == ir::Phase::forward) {
      if (receives)
        out.prefetch.push_back(
            Ins(InstrKind::receive, down_[static_cast<std::size_t>(k.stage) - 1]).makes({ref(x_, -1)}));
      gather();
      std::vector<BufferRef> over = gathered;
      if (!b.opens) over.push_back(ref(x_, -1));
      out.main.push_back(kernel(b.f1).makes({ref(b.t)}).frees(over));
      out.main.push_back(kernel(b.f2).makes({ref(x_), ref(b.h)}).frees({ref(b.t)}));
      if (sends) {
        out.main.push_back(Ins(InstrKind::send, down_[static_cast<std::size_t>(k.stage)]));
        out.deferred.push_back(Ins(InstrKind::done, -1).frees({ref(x_)}));
      }
    } else if (k.phase == ir::Phase::backward) {
      backward(k, b, receives, sends, gathered, out, gather);
    } else {
      if (b.tied_update >= 0) {
        out.main.push_back(Ins(InstrKind::stage_reduce, sum_));
        out.main.push_back(kernel(b.tied_update).frees({ref(gt_)}));
      }
      std::vector<BufferRef> over = {ref(b.g)};
      if (s_.gradients == GradientMode::reduce_scatter) over.push_back(ref(b.gr));
      out.main.push_back(kernel(b.update).frees(over));
    }
    return out;
  }

  template <class Gather>
  void backward(const plan::CallKind& k, const Block& b, bool receives, bool sends,
                const std::vector<BufferRef>& gathered, CallParts& out, Gather gather) {
    const auto kernel = [](std::int32_t body) { return Ins(InstrKind::kernel, body); };
    const bool every = s_.gradients == GradientMode::every_microbatch;
    if (receives)
      out.prefetch.push_back(Ins(InstrKind::receive, up_[static_cast<std::size_t>(k.stage)]).makes({ref(dx_)}));
    gather();
    out.main.push_back(kernel(b.b1).makes({ref(b.u)}).frees({ref(b.h), b.closes ? ref(x_) : ref(dx_)}));
    Ins gradient = kernel(k.first ? b.first_gradient : b.more_gradient);
    Ins input =
        kernel(b.b2).makes(b.opens ? std::vector<BufferRef>{} : std::vector<BufferRef>{ref(dx_, -1)}).frees(gathered);
    (s_.early_gradient ? input : gradient).frees({ref(b.u)});  // by the one that comes later
    if (every)
      gradient.makes({ref(b.lg)});
    else if (k.first)
      gradient.makes({ref(b.g)});
    if (b.tied_first >= 0) out.main.push_back(k.first ? kernel(b.tied_first).makes({ref(gt_)}) : kernel(b.tied_more));
    if (s_.early_gradient) out.main.push_back(gradient);
    out.main.push_back(input);
    if (sends) {
      out.main.push_back(Ins(InstrKind::send, up_[static_cast<std::size_t>(k.stage) - 1]));
      out.deferred.push_back(Ins(InstrKind::done, -1).frees({ref(dx_, -1)}));
    }
    if (!s_.early_gradient) out.main.push_back(gradient);
    if (every) {
      out.deferred.push_back(Ins(InstrKind::collective, b.reduce).makes({ref(b.lr)}));
      Ins add = kernel(k.first ? b.add_first : b.add).frees({ref(b.lr), ref(b.lg)});
      if (k.first) add.makes({ref(b.g)});
      out.deferred.push_back(add);
    } else if (k.last && b.reduce >= 0) {
      Ins reduce(InstrKind::collective, b.reduce);
      if (s_.gradients == GradientMode::reduce_scatter) reduce.makes({ref(b.gr)});
      const auto at = static_cast<std::int32_t>(out.deferred.size());
      out.deferred.push_back(reduce);
      if (s_.await) out.deferred.push_back(Ins(InstrKind::done, at));
    }
  }

  std::int32_t kind_of(std::int32_t site, ir::Phase phase, bool first, bool last) {
    const plan::Site& s = b_.p.sites[static_cast<std::size_t>(site)];
    plan::CallKind k;
    k.block = s.block;
    k.phase = phase;
    k.first = first;
    k.last = last;
    if (phase != ir::Phase::update) {
      const bool opens = site > 0 && b_.p.sites[static_cast<std::size_t>(site) - 1].stage != s.stage;
      const bool closes = site + 1 < static_cast<std::int32_t>(b_.p.sites.size()) &&
                          b_.p.sites[static_cast<std::size_t>(site) + 1].stage != s.stage;
      const bool forward = phase == ir::Phase::forward;
      k.stage_edge =
          static_cast<std::int8_t>(((forward ? opens : closes) ? 1 : 0) + ((forward ? closes : opens) ? 2 : 0));
      if (k.stage_edge != 0) k.stage = s.stage;
    }
    const std::size_t before = b_.p.call_kinds.size();
    const std::int32_t index = b_.kind(k);
    if (b_.p.call_kinds.size() > before) parts_.push_back(parts_of(k));
    return index;
  }

  std::vector<Segment> order(std::int32_t stage) const {
    const std::int64_t m = s_.microbatches;
    const Unit f0{ir::Phase::forward, 0};
    std::vector<Segment> out;
    if (s_.gpipe) {
      out = {{{f0}, m}, {{{ir::Phase::backward, 0}}, m}};
    } else {
      const std::int64_t warm = std::min<std::int64_t>(s_.stages - 1 - stage, m);
      out = {{{f0}, warm},
             {{{ir::Phase::forward, warm}, {ir::Phase::backward, 0}}, m - warm},
             {{{ir::Phase::backward, m - warm}}, warm}};
    }
    out.push_back({{{ir::Phase::update, -1}}, 1});
    return out;
  }

  // Repeats with the first or the last backward become segments of their own.
  void expand(std::int32_t stage) {
    const std::int64_t m = s_.microbatches;
    for (const Segment& segment : order(stage)) {
      if (segment.repeat <= 0) continue;
      std::set<std::int64_t> cuts = {0, segment.repeat};
      for (const Unit& u : segment.body)
        if (u.phase == ir::Phase::backward)
          for (std::int64_t r : {-u.microbatch, m - 1 - u.microbatch})
            if (r >= 0 && r < segment.repeat) cuts.insert({r, r + 1});
      for (auto from = cuts.begin(), to = std::next(from); to != cuts.end(); ++from, ++to) {
        plan::Segment done;
        done.repeat = *to - *from;
        for (const Unit& u : segment.body) add_calls(stage, u, *from, done.body);
        b_.p.schedules[static_cast<std::size_t>(stage)].segments.push_back(done);
      }
    }
  }

  void add_calls(std::int32_t stage, const Unit& u, std::int64_t shift, std::vector<plan::Call>& out) {
    const std::int32_t begin = stage * s_.layers, end = begin + s_.layers;
    const bool back = u.phase == ir::Phase::backward, update = u.phase == ir::Phase::update;
    const std::int64_t microbatch = update ? -1 : u.microbatch + shift;
    for (std::int32_t i = begin; i < end; ++i) {
      const std::int32_t site = back ? begin + end - 1 - i : i;
      out.push_back({site, kind_of(site, u.phase, back && microbatch == 0, back && microbatch == s_.microbatches - 1),
                     microbatch});
    }
  }

  const PipelineShape& s_;
  StepBuilder b_;
  int data_axis_ = 0;
  std::int32_t gather_link_ = 0, gradient_link_ = 0, sum_ = -1;
  bool tied_ = false;
  BufferId x_, dx_, gt_;
  std::vector<std::int32_t> down_, up_;
  std::vector<Block> blocks_;
  std::map<std::tuple<std::int32_t, bool, bool>, std::int32_t> block_index_;
  std::vector<CallParts> parts_;
};

}  // namespace tpusim::testing
