// Common code of both linkers: the registration of an object, and the report of its functions without call frame
// information.
#pragma once

#include <llvm/Support/Error.h>

#include <string>

#include "jitunwind/adapters/llvm_orc/orc_options.h"
#include "jitunwind/builders/object_registration.h"

namespace jitunwind {

/// Error: a sentence with object, place and reason. Does not throw.
llvm::Expected<ObjectRegistration> register_orc_object(const ObjectCode& code, const std::string& name,
                                                       const OrcOptions& options) noexcept;

llvm::Error orc_error(const std::string& what);

}  // namespace jitunwind
