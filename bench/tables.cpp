#include "bench/tables.h"

namespace bench {

std::vector<TableOptions> tables(const Others& others) {
  const Contender backtrace{k_reference, "backtrace"};
  const Contender step{k_reference, "step"};
  const Contender uwx_step{k_reference, "uwx_step"};
  const Contender c_step{k_reference, "ju_cursor_step"};
  const Contender backtrace_quiet{k_reference, "backtrace, nothing changes"};
  const Contender step_quiet{k_reference, "step, nothing changes"};
  const Contender nongnu_backtrace{others.nongnu, "unw_backtrace"};
  const Contender libgcc_walk{others.libgcc, "_Unwind_Backtrace"};
  const Contender limit{k_limit, "frame pointers"};
  const Contender registry{k_reference, "register_procedure"};
  const Contender register_code{k_reference, "register_code"};
  const Contender c_register{k_reference, "ju_register"};
  const Contender header{k_reference, "jitunwind_jit.h"};
  const Contender bare_list{k_reference, "bare list"};
  const Contender own_throw{k_own_runtime, "jitunwind-eh"};
  const Contender our_throw{others.on_libgcc, "libgcc_s"};
  const Contender libgcc_throw{others.libgcc, "libgcc_s"};
  const Contender told{others.listening, "__register_frame"};
  const Contender listening_throw{others.listening, "libgcc_s"};
  const Contender published_throw{others.published, "libgcc_s"};
  const Contender published_walk{others.published, "_Unwind_Backtrace"};
  // A function that is passed for the first time and again: beside a program whose code libgcc_s is told of, and beside
  // few functions. Code that is published is passed as fast as code that is registered alone: by this library, and by
  // those who know nothing of it.
  const auto through = [&](const std::string& row, double our_at_most) {
    std::vector<Target> targets;
    for (const char* const count : {"1000", "100000"}) {
      const std::string published = row + "published/" + count, registered = row + "directives/" + count;
      const std::string told_row = row + "told/" + count;
      for (const std::string& described : {registered, row + "table/" + count}) {
        targets.push_back({our_throw, libgcc_throw, our_at_most, described, told_row});
        targets.push_back({own_throw, libgcc_throw, 0.3, described, told_row});
      }
      targets.push_back({listening_throw, libgcc_throw, 1, told_row});
      for (const Contender& way : {backtrace, step, our_throw, own_throw})
        targets.push_back({way, way, 1.1, published, registered});
      targets.push_back({published_throw, our_throw, 1, published, registered});
      targets.push_back({published_walk, libgcc_walk, 1, published, told_row});
    }
    for (const Contender& way : {backtrace, step, our_throw, own_throw})
      targets.push_back({way, way, 2, row + "directives/10{5,6}", row + "directives/10"});
    return targets;
  };
  const std::vector<Target> as_libgcc{{backtrace, libgcc_walk, 1}};
  // Targets of registering and cancelling. They are the same except for one more target each.
  const auto changes = [&](const Target& one_more, double told_at_most) {
    return std::vector<Target>{{registry, k_time, 50, ".*/sequential/10{0,4}"},
                               {registry, k_time, 90, ".*/random/10{0,4}"},
                               {registry, k_time, 70, ".*/sequential/1000000"},
                               {c_register, register_code, 1.1},
                               {header, c_register, 1.1},
                               {told, k_time, told_at_most},
                               one_more};
  };
  const auto with = [](std::vector<Target> targets, const std::vector<Target>& more) {
    targets.insert(targets.end(), more.begin(), more.end());
    return targets;
  };
  // The library costs the same in every form in which it comes into a process as it does when it is linked.
  const Contender linked{k_link_form, "linked"};
  const auto as_linked = [&](double at_most) {
    std::vector<Target> targets;
    for (const char* const form :
         {"behind libgcc_s", "preloaded", "dlopened", "plugin of a plugin", "archive in a plugin"})
      targets.push_back({{k_link_form, form}, linked, at_most});
    return targets;
  };
  const Contender described{k_large, "jitunwind"};
  const Contender nothing_preloaded{k_preloaded, "nothing"};
  const Contender nongnu_preloaded{k_preloaded, others.nongnu + " libunwind.so.8"};
  const Contender drop_in_preloaded{k_preloaded, "drop-in libunwind.so.8"};
  const Contender library_preloaded{k_preloaded, "libjitunwind.so"};
  const Contender engine_alone{k_engine, "alone"};
  const Contender standard_headers{k_compiler, "standard headers alone"};
  const Contender umbrella{k_compiler, "jitunwind jitunwind.h"};
  const Contender onlooker{k_onlooker, "jitunwind"};
  const Contender libdw{others.elfutils, "libdw"};
  return {
      {"Walk, ns a frame",
       "walk/",
       backtrace,
       {{backtrace, nongnu_backtrace, 0.6},
        {backtrace, limit, 5},
        {step, {others.nongnu, "unw_step"}, 0.05},
        {c_step, step, 1.1},
        {uwx_step, step, 3},
        {published_walk, libgcc_walk, 1.1, "walk/jit/.*"}}},
      {"Walk of another stack of the same functions each time, ns a frame",
       "unlike/",
       backtrace,
       {{backtrace, k_time, 4}, {backtrace, nongnu_backtrace, 0.6}}},
      {"Walk while another thread registers and cancels (or only computes: nothing changes), ns a frame",
       "contention/",
       backtrace,
       {{backtrace, backtrace_quiet, 1 / 0.9, "contention/other_pages"},
        {backtrace, backtrace_quiet, 1 / 0.4, "contention/neighbours"},
        {step, step_quiet, 1 / 0.9, "contention/other_pages"},
        {step, step_quiet, 1 / 0.4, "contention/neighbours"}}},
      {"First walk in a process, ns a frame", "first_walk/", backtrace, as_libgcc},
      {"New functions in a warm process, ns a frame", "new_functions/", backtrace, as_libgcc},
      {"First walk in a process, code scattered over three modules, ns a frame", "scattered_first/", backtrace,
       as_libgcc},
      {"Second walk of that stack, ns a frame", "scattered_second/", backtrace, as_libgcc},
      {"New functions there, ns a frame",
       "scattered_new/",
       backtrace,
       {{backtrace, libgcc_walk, 0.9}, {step, libgcc_walk, 0.9}}},
      {"Page faults of new functions there, in all", "scattered_new_faults/", backtrace},
      {"First throw in a process through that code, ns a frame",
       "scattered_throw/",
       own_throw,
       {{own_throw, libgcc_throw, 1}, {our_throw, libgcc_throw, 1}}},
      {"First throw in a process through functions with destructors, ns a throw",
       "cleaning_throw/",
       own_throw,
       {{own_throw, libgcc_throw, 1}}},
      {"First walk in a process with 499 libraries, each frame in another one, ns a frame", "first_walk_libraries/",
       backtrace, as_libgcc},
      {"Walk with 499 libraries, ns a frame", "walk_libraries/", backtrace, {{backtrace, libgcc_walk, 0.1}}},
      {"The same while another thread loads and unloads one more", "walk_while_loading/", backtrace, as_libgcc},
      {"Register, ns a procedure", "register/", registry,
       with(changes({registry, k_time, 400, ".*/random/1000000"}, 300),
            {{told, {others.libgcc, "__register_frame"}, 1, ".*/(sequential|random)/10{3,5}"}})},
      {"Cancel, ns a procedure", "cancel/", registry,
       with(changes({registry, bare_list, 1.4, ".*/alone/1000000"}, 250),
            {{told, {others.libgcc, "__register_frame"}, 1, ".*/[14]0000"},
             {told, {others.llvm, "__register_frame"}, 0.5, ".*/10000"},
             {told, {others.llvm, "__register_frame"}, 0.1, ".*/40000"}})},
      {"First lookup after N registrations, ns", "first_lookup/", registry},
      {"Lookup of registered procedures, N registered, ns",
       "lookup_jit/",
       registry,
       {{registry, registry, 1.4, ".*/10{4,}", "lookup_jit/1000"}}},
      {"Lookup of static code, N registered, ns",
       "lookup_static/",
       registry,
       {{registry, registry, 1.2, ".*/10{4,}", "lookup_static/1000"}}},
      {"Throw, kind of frames / depth / others registered, ns",
       "throw/",
       own_throw,
       {{own_throw, libgcc_throw, 1, ".*/1/.*"},
        {own_throw, libgcc_throw, 0.25, "throw/static/(10|50|200)/.*"},
        {own_throw, libgcc_throw, 0.4, "throw/destructors/(10|50|200)/.*"},
        {our_throw, libgcc_throw, 1.03},
        {published_throw, our_throw, 1, "throw/jit/.*"}}},
      {"First throw after N registrations, ns", "first_throw/", our_throw, {{listening_throw, k_time, 100'000}}},
      {"Walk or throw through one of N functions that were just registered, for the first time, ns", "through_new/",
       our_throw, through("through_new/", 1)},
      {"Through each of them once more, ns", "through_again/", our_throw, through("through_again/", 0.8)},
      {"Throw through one function made at run time while another thread does the same (or only computes), elapsed "
       "time, ns",
       "throw_beside/",
       our_throw,
       {{listening_throw, {others.listening, "libgcc_s, other computes"}, 1.3}}},
      {"In a debugger, command / procedures registered one by one, elapsed time, ns; how it knows them",
       "debugger/",
       {k_debugger, "GDB, nothing"}},
      {"A module of N functions: compiled, linked, found by name, ns; who is told of it",
       "add_module/",
       {k_lljit, "nobody"}},
      {"Of adding a module of N functions, what plugins take themselves, ns",
       "add_module_part/",
       {k_lljit, "all"},
       {{{k_lljit, "jitunwind"}, {k_lljit, "all"}, 0.01}}},
      {"First throw after N modules, ns", "first_throw_after/", {k_lljit, "jitunwind"}},
      {"Register one of N by the way of linking, ns", "link_register/", linked, as_linked(1.2)},
      {"Cancel one of N in order, ns", "link_cancel_in_order/", linked, as_linked(1.2)},
      {"Cancel one of N at random, ns", "link_cancel_random/", linked, as_linked(1.2)},
      {"First throw after N registrations, ns", "link_first_throw/", linked, as_linked(1.2)},
      {"Memory of one of N, bytes", "link_bytes/", linked, as_linked(1.1)},
      {"Describe a procedure of N instructions that change SP, ns an instruction", "build/", described},
      {"Describe, register and cancel a procedure like no other, ns",
       "own_description/",
       {k_large, "build"},
       {{{k_large, "marks"}, k_time, 400}, {{k_large, "marks_in_c"}, k_time, 400}}},
      {"Walk out of a function like no other, the first time and the next, ns",
       "own_look_up/",
       {k_large, "build"},
       {{{k_large, "build"}, k_time, 5000},
        {{k_large, "marks"}, k_time, 5000},
        {{k_large, "marks"}, {k_large, "build"}, 1.25}}},
      {"Register one, ns", "register_size/", described},
      {"Add code of N instructions, branches, call sites with two arguments on the stack, early returns; ns each",
       "add_code/",
       {k_large, "asmjit"},
       {{{k_large, "AsmjitRuntime"}, k_time, 3000, ".*/calls/10{3,}"}}},
      {"Write a function of 42 instructions by hand and add it, ns",
       "add_function/",
       {k_large, "asmjit"},
       {{{k_large, "AsmjitRuntime"}, {k_large, "asmjit"}, 1.5}}},
      {"Compile a function of N instructions and add it, ns",
       "compile_code/",
       {k_large, "asmjit"},
       {{{k_large, "AsmjitRuntime"}, {k_large, "asmjit"}, 1.1}}},
      {"Check an FDE of the C++ library, or only read its rows and instructions, ns",
       "check_fdes",
       {k_check, "read"},
       {{{k_check, "compared"}, k_time, 33'300}, {{k_check, "compared"}, {k_check, "read"}, 8}}},
      {"Register and cancel a procedure of seven instructions with JITUNWIND_CHECK, ns",
       "check_shape",
       {k_check, "unchecked"},
       {{{k_check, "registered"}, k_time, 20'000},
        {{k_check, "again"}, k_time, 2'000},
        {{k_check, "registered"}, {k_check, "unchecked"}, 150},
        {{k_check, "again"}, {k_check, "unchecked"}, 15}}},
      {"Publish one of N functions, ns; the difference is what committing adds to registering",
       "publish/",
       {k_published, "register_code"},
       {{{k_published, "difference"}, k_time, 150}, {{k_published, "commit"}, {k_published, "register_code"}, 3}}},
      {"Open a segment, ns of any thread, for each of its N functions",
       "open_segment/",
       {k_published, "a function's share"},
       {{{k_published, "a function's share"}, k_time, 100}}},
      {"Lay a file over 64 KiB of code with N functions, ns",
       "lay_over/",
       {k_published, "make"},
       {{{k_published, "replace"}, k_time, 300'000}}},
      {"Call one of N functions on pages of their own in a random order, ns; the kind of memory",
       "spread_calls/",
       {k_published, "anonymous"},
       {{{k_published, "segments"}, {k_published, "anonymous"}, 1.25},
        {{k_published, "segments"}, {k_published, "anonymous, huge pages"}, 2}}},
      {"Throw through a procedure with N rows, the first and another, ns a row",
       "throw_by_rows/",
       {k_large, "first"},
       {{{k_large, "first"}, k_time, 1000, ".*/10{2,}"}}},
      {"First throws from every 514 bytes of a procedure with N rows, ns a row",
       "throw_everywhere/",
       {k_large, "in_order"},
       {{{k_large, "in_order"}, k_time, 1000, ".*/10{3,}"}, {{k_large, "at_random"}, k_time, 1000, ".*/10{3,}"}}},
      {"Start of a program that does nothing, elapsed time, ns; what is preloaded", "start_up/", nothing_preloaded},
      {"What that adds, ns", "start_up_added/", nongnu_preloaded, {{drop_in_preloaded, k_time, 1e6}}},
      {"Page faults of such a start, in all",
       "start_up_faults/",
       nothing_preloaded,
       {{drop_in_preloaded, k_page_faults, 90}}},
      {"What that adds, page faults", "start_up_faults_added/", nongnu_preloaded},
      {"What libjitunwind.so adds to the libraries that it needs, elapsed time, ns",
       "start_up_own/",
       library_preloaded,
       {{library_preloaded, k_time, 300'000}}},
      {"What it adds, page faults",
       "start_up_own_faults/",
       library_preloaded,
       {{library_preloaded, k_page_faults, 40}}},
      {"Processor time of an engine's work, ns; what is listened to",
       "engine_time/",
       engine_alone,
       {{{k_engine, "silent dialects"}, engine_alone, 1.02}, {{k_engine, "every dialect"}, engine_alone, 1.02}}},
      {"Compiling a file that includes <jitunwind/jitunwind.h>, ns of processor time",
       "compile/",
       standard_headers,
       {{umbrella, standard_headers, 2}}},
      {"Walk of another process's stack, walked before, kind / depth, ns a frame",
       "target_walk/",
       onlooker,
       {{onlooker, k_time, 300}, {onlooker, libdw, 0.3}}},
      {"First walk of another process, depth, ns",
       "target_first_walk/",
       onlooker,
       {{onlooker, k_time, 4.2e6}, {onlooker, libdw, 1}}},
      {"The same with N procedures registered, walked before or not, ns",
       "target_registered/",
       onlooker,
       {{onlooker, onlooker, 1.4, "target_registered/again/20000", "target_registered/again/100"}}},
      {"The same of a process that has changed one of N procedures, and its stop, ns",
       "target_renewed/",
       onlooker,
       {{onlooker, onlooker, 1.4, "target_renewed/20000", "target_renewed/100"}}},
      {"How long a process with so many threads stands still to be copied, elapsed time, ns a thread",
       "target_stopped/",
       onlooker,
       {{onlooker, k_time, 1e6}}},
      {"Stacks of 50 threads in a process with N libraries, by a program, elapsed time, ns",
       "stacks_of_process/",
       {k_onlooker, "jitstack"},
       {{{k_onlooker, "jitstack"}, k_time, 1e8}, {{k_onlooker, "jitstack"}, {others.elfutils, "eu-stack"}, 1}}},
      {"Instructions of a walk, by callgrind", "instructions/walk/", backtrace},
      {"Instructions of registering, by callgrind", "instructions/register/", registry},
      {"Instructions of adding a module of N functions, by callgrind; who is told of it",
       "instructions/add_module/",
       {k_lljit, "nobody"},
       {{{k_lljit, "jitunwind"}, {k_lljit, "nobody"}, 1.01}}},
      {"Instructions of a throw at depth 50, by callgrind", "instructions/throw/", own_throw},
  };
}

std::vector<Plot> plots() {
  return {
      {"walk-static.svg", "Walk of C++ functions, ns a frame", "frames", "walk/static/"},
      {"walk-jit.svg", "Walk, every fourth frame made at run time, ns a frame", "frames", "walk/jit/"},
      {"register.svg", "Register one by one, ns a procedure", "procedures", "register/sequential/"},
      {"cancel.svg", "Cancel one by one, ns a procedure", "procedures", "cancel/sequential/"},
      {"lookup.svg", "Lookup of 64 procedures, ns", "procedures registered", "lookup_jit/"},
      {"first-throw.svg", "First throw after registering, ns", "procedures registered", "first_throw/"},
  };
}

}  // namespace bench
