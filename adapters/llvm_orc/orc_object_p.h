// The common code of both linkers: the registration of an object, the report of its functions without call frame
// information, and its code in a code segment. LLVM's managers allocate memory for that as always, which then has other
// parts of the object alone.
#pragma once

#include <llvm/Support/Error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "jitunwind/adapters/code_segments/code_segments.h"
#include "jitunwind/adapters/llvm_orc/orc_options.h"
#include "jitunwind/builders/object_registration.h"
#include "jitunwind/unwind_core/address.h"

namespace jitunwind {

/// Error: a sentence with object, place and reason. Does not throw.
llvm::Expected<ObjectRegistration> register_orc_object(const ObjectCode& code, const std::string& name,
                                                       const OrcOptions& options) noexcept;

llvm::Error orc_error(const std::string& what);

/// A contiguous part of an object's code.
struct OrcCode {
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;         ///< a power of two
  std::uint64_t alignment_offset = 0;  ///< remainder of the address
  Addr start = 0;                      ///< set by OrcRoom: where it runs
  std::byte* writable = nullptr;       ///< set by OrcRoom
};

/// The destructor releases the room. One thread at a time.
class OrcRoom {
 public:
  OrcRoom() noexcept = default;
  OrcRoom(OrcRoom&& other) noexcept : segments_(std::exchange(other.segments_, nullptr)), code_(other.code_) {}
  OrcRoom& operator=(OrcRoom&& other) noexcept;
  ~OrcRoom() { release(); }

  /// Gives the parts their places, for at most so many functions. Empty: `segments` is null, or its status() says why:
  /// there is no memory, or `data`, to which code and its tables refer by 32 bits, is too far away.
  static OrcRoom allocate(CodeSegments* segments, std::span<OrcCode> parts, std::size_t functions,
                          std::span<const AddrRange> data);
  explicit operator bool() const noexcept { return segments_ != nullptr; }

  /// Publishes what is registered there.
  void publish() noexcept;
  /// Precondition: its registrations are cancelled.
  void release() noexcept;

 private:
  OrcRoom(CodeSegments* segments, AddrRange code) noexcept : segments_(segments), code_(code) {}

  CodeSegments* segments_ = nullptr;
  AddrRange code_;
};

}  // namespace jitunwind
