// Compiled once as it stands, which must work, and once for each FAULT, which must not (run.sh). Each faulty line sits
// directly below its `#if FAULT == N`, so that the compiler's complaint can be matched with it.
#include "sim/base/strong_id.hpp"
#include "sim/base/units.hpp"

using namespace tpusim;

struct OpTag;
struct ValueTag;
using OpId = StrongId<OpTag>;
using ValueId = StrongId<ValueTag>;

double use() {
  const Bytes size(1024);
  const BytesPerSecond rate(2e9);
  Seconds time = size / rate;
  SimTime now = SimTime::from(time);
  OpId op(3);
#if FAULT == 1
  time = size;
#endif
#if FAULT == 2
  time = size * rate;
#endif
#if FAULT == 3
  time = 3.0;
#endif
#if FAULT == 4
  time += size;
#endif
#if FAULT == 5
  if (size < rate) time = Seconds(0);
#endif
#if FAULT == 6
  now = now + time;
#endif
#if FAULT == 7
  now = time;
#endif
#if FAULT == 8
  const double plain = size;
#endif
#if FAULT == 9
  op = ValueId(3);
#endif
#if FAULT == 10
  op = 3;
#endif
#if FAULT == 11
  time = Flops(1) / rate;
#endif
  return time.value() + now.seconds().value() + op.index;
}
