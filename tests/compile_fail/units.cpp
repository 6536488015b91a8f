// Compiled once as it stands, which must work, and once with -DFAULTS, where the compiler must complain about each line
// directly below an `#if FAULTS` and about no other (run.sh).
#include "sim/base/units.hpp"

#include "sim/base/strong_id.hpp"

#ifndef FAULTS
#define FAULTS 0
#endif

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
#if FAULTS
  time = size;
#endif
#if FAULTS
  time = size * rate;
#endif
#if FAULTS
  time = 3.0;
#endif
#if FAULTS
  time += size;
#endif
#if FAULTS
  if (size < rate) time = Seconds(0);
#endif
#if FAULTS
  now = now + time;
#endif
#if FAULTS
  now = time;
#endif
#if FAULTS
  const double plain = size;
#endif
#if FAULTS
  op = ValueId(3);
#endif
#if FAULTS
  op = 3;
#endif
#if FAULTS
  time = Flops(1) / rate;
#endif
  return time.value() + now.seconds().value() + op.index;
}
