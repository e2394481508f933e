// FDEs that procedures of one shape share.
#pragma once

#include <cstddef>
#include <span>

#include "jitunwind/dyn_info/libunwind-dynamic.h"
#include "jitunwind/dyn_info/registry/derived_records_internal.h"
#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// An unpublished record that begins with `key`, and the FDE of the code from 0 to `end`. `info` is a procedure that
/// begins at 0 and may end later. Null: some of that code has no row, the FDE is too long, or there is no memory.
/// Signal-safe.
DerivedRecord* encode_shape(const unw_dyn_info_t& info, Addr end, std::span<const std::byte> key) noexcept;

}  // namespace jitunwind
