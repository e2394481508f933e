#pragma once
// The host's own, which has nothing to do with jitunwind's.
struct HostInstruction {};
