// .debug_frame of a module's file: read from the beginning, there is no table.
#include "jitunwind/unwind_core/sources/cfi/fde_source_p.h"
#include "jitunwind/unwind_core/sources/sources.h"

namespace jitunwind {
namespace {

class DebugFrameSource final : public FdeSource {
 public:
  constexpr DebugFrameSource() noexcept : FdeSource(RowOrigin::debug_frame) {}

 private:
  Found find_fde(Lookup& lookup, CfiContext& context, Fde& out) const noexcept override {
    const Module* module = lookup.module_with_file_sections();
    if (!module || module->debug_frame.empty()) return false;
    const SectionBytes& section = module->debug_frame;
    context.format = CfiContext::Format::debug_frame;
    context.section = section.address;
    context.load_bias = module->load_bias;
    SectionView bytes(section);
    const AddrRange entries{section.address, section.address + section.bytes.size()};
    return jitunwind::find_fde(FdeScan(bytes, context, entries), lookup.at.lookup(), out);
  }
};

constinit const DebugFrameSource k_debug_frame;

}  // namespace

[[gnu::hot]] const RowSource& debug_frame_source() noexcept { return k_debug_frame; }

}  // namespace jitunwind
