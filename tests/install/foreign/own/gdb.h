#pragma once
struct HostGdb {};
