#pragma once
struct HostAsmjit {};
