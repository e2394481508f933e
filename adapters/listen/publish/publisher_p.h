// The choice of pages to publish, of code that engines have announced: docs/listen.md "Published pages".
#pragma once

#include <cstdint>

#include "jitunwind/adapters/listen/listen.h"
#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// The thread that follows files and lists calls it every 10 ms. Looks a few times a second for code that is old
/// enough, and publishes it. Throws std::bad_alloc.
void publish_old_code();
/// Publishes code of any age at once. Returns the number of files that were made. Not signal-safe.
std::size_t publish_all_code();

/// The pages are about to be unmapped or replaced: files with any of them are withdrawn as a whole. Files' other pages
/// are published anew. Takes a lock only if there are such files: owners of heaps call it, too.
void withdraw_unmapped(const AddrRange& pages) noexcept;

void report_published(ListenStatus& out) noexcept;

}  // namespace jitunwind
