// The naive loops of the ir tests, for whole blocks of models.
#include "tests/unit/ir/naive_support.cpp"
