// Small jobs to plant faults in, and planning them with a wrong part.
#pragma once

#include <string>
#include <vector>

#include "sim/session/verification.hpp"

namespace tpusim::tests {

enum class Style { llama, gpt2, palm };

// f64, every axis at least 2 where it is there; a machine of one ring per mesh axis.
session::JobSpec small_job(Style style, std::vector<strategies::RequestedAxis> mesh);
fabric::Fabric rings(const session::JobSpec& spec);

// The plan of a job whose blocks are differentiated by `vjp`, or partitioned by `rule_of`: make_plan with another
// derivative or rule.
session::Planned plan_with(const session::JobSpec& spec, const fabric::Fabric& fabric, ir::Vjp vjp,
                           ir::ShardingRuleOf rule_of);

result::Verification prove(const session::JobSpec& spec, const session::Planned& planned, const fabric::Fabric& fabric,
                           const session::Proof& proof = {});

// The details of what failed, joined.
std::string failures(const result::Verification& verification);

}  // namespace tpusim::tests
