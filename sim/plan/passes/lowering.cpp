#include "sim/plan/passes/lowering.hpp"

namespace tpusim::plan::passes {

BufferId Lowering::add_buffer(const Buffer& buffer, Role role) {
  const BufferId id(out.buffers.size());
  out.buffers.push_back(buffer);
  out.buffers.back().bytes = buffer.type.bytes();
  roles.push_back(role);
  return id;
}

BufferRef Lowering::home(std::int32_t program_index, ir::ValueId value) {
  BufferRef& ref = bindings[static_cast<std::size_t>(program_index)].bound[static_cast<std::size_t>(value.index)];
  if (!ref.buffer.valid()) {
    const ir::Value& v = program(program_index).value(value);
    Buffer buffer;
    buffer.label = v.label;
    buffer.type = v.type;
    buffer.category = v.table == ir::Table::gradients ? Category::gradients : Category::workspace;
    buffer.scope = Scope::call;
    const auto n = static_cast<std::int32_t>(blocks.size());
    buffer.block = program_index < 2 * n ? program_index % n : -1;
    buffer.value = value;
    ref = BufferRef{add_buffer(buffer, Role::temporary), 0};
  }
  return ref;
}

void Extension::settle(const spmd::PartitionSpec& spec, ir::OpId origin) {
  partitioned.specs.resize(partitioned.local.values.size(), spec);
  partitioned.origin.resize(partitioned.local.ops.size(), origin);
  partitioned.reason.resize(partitioned.local.ops.size());
}

}  // namespace tpusim::plan::passes
