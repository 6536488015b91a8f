// Data parallelism: every replica has its share of the batch; the gradients are partial sums over the replicas.
#include "sim/strategies/draft.hpp"

namespace tpusim::strategies {

void data_shard(Draft& draft) {
  draft.split({Table::activations}, Axis::batch, draft.sub_axis("data", 0), "data");
}

}  // namespace tpusim::strategies
