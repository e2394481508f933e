// The functions of uwx.h. They check arguments and do nothing else.
#include <cstdlib>
#include <functional>
#include <new>

#include "jitunwind/sdk/uwx/environment_p.h"
#include "jitunwind/sdk/uwx/names/file_cache_p.h"
#include "jitunwind/unwind_core/arch/arch.h"

namespace jitunwind::uwx {
namespace {

constinit Allocator allocator_of_clients{&std::malloc, &std::free};

/// Rejects environments that are NULL. `work`: a member of Environment, or a function of one.
template <class Work, class... Arguments>
int with(uwx_env* env, Work work, Arguments... arguments) noexcept {
  return env ? std::invoke(work, env->environment, arguments...) : UWX_ERR_NOENV;
}

template <class T>
void give(T* into, T value) noexcept {
  if (into) *into = value;
}

}  // namespace

Allocator current_allocator() noexcept { return allocator_of_clients; }

}  // namespace jitunwind::uwx

extern "C" {

using namespace jitunwind::uwx;

int uwx_register_alloc_cb(alloc_cb allocate, free_cb release) {
  allocator_of_clients = {allocate ? allocate : &std::malloc, release ? release : &std::free};
  return UWX_OK;
}

uwx_env* uwx_init() {
  const Allocator allocator = current_allocator();
  void* const memory = jitunwind::host_arch() ? allocator.allocate(sizeof(uwx_env)) : nullptr;
  return memory ? new (memory) uwx_env(allocator) : nullptr;
}

int uwx_free(uwx_env* env) {
  return with(env, [&](Environment& e) {
    const Allocator allocator = e.allocator();
    env->~uwx_env();
    allocator.release(env);
    return UWX_OK;
  });
}

int uwx_set_remote(uwx_env* env, int is_big_endian_target) {
  return with(env, &Environment::set_remote, is_big_endian_target != 0);
}

int uwx_set_target(uwx_env* env, int elf_machine) {
  return with(env, &Environment::set_target, static_cast<unsigned>(elf_machine));
}

int uwx_set_nofr(uwx_env* env) {
  return with(env, [](Environment& e) {
    e.leave_vectors_out();
    return UWX_OK;
  });
}

int uwx_register_callbacks(uwx_env* env, std::intptr_t tok, copyin_cb copyin, lookupip_cb lookupip) {
  return with(env, &Environment::set_callbacks, Callbacks{copyin, lookupip, tok});
}

int uwx_init_context(uwx_env* env, std::uint64_t ip, std::uint64_t sp, std::uint64_t, std::uint64_t) {
  return with(env, [&](Environment& e) { return e.begin(ip, sp); });
}

int uwx_set_reg(uwx_env* env, int regid, std::uint64_t val) {
  return with(env, &Environment::set_register, regid, val);
}

int uwx_set_fr(uwx_env* env, int regid, std::uint64_t* val) {
  return with(env, [&](Environment& e) {
    return val && (regid & ~0xff) == UWX_REG_FR(0) ? e.set_register(regid, val[0]) : UWX_ERR_BADREGID;
  });
}

int uwx_step(uwx_env* env) { return with(env, &Environment::step); }

int uwx_step_inline(uwx_env* env, int inline_context) { return with(env, &Environment::step_inline, inline_context); }

int uwx_get_reg(uwx_env* env, int regid, std::uint64_t* valp) {
  return with(env, [&](Environment& e) { return valp ? e.get_register(regid, valp) : UWX_ERR_BADREGID; });
}

int uwx_get_nat(uwx_env* env, int regid, int* natp) {
  return with(env, [&](Environment& e) {
    const bool is_general = (regid & ~0xff) == UWX_REG_GR(0);
    return natp && is_general ? e.get_nat(regid, *natp) : UWX_ERR_BADREGID;
  });
}

int uwx_get_spill_loc(uwx_env* env, int regid, std::uint64_t* dispp) {
  return with(env, [&](Environment& e) { return dispp ? e.get_location(regid, *dispp) : UWX_ERR_BADREGID; });
}

int uwx_get_abi_context_code(uwx_env* env) { return with(env, &Environment::context_code); }

int uwx_get_module_info(uwx_env* env, char** modp, std::uint64_t* text_base) {
  return with(env, [&](Environment& e) {
    const int status = e.find_module();
    give(modp, e.names().module());
    give(text_base, std::uint64_t{e.names().text_base()});
    return status;
  });
}

int uwx_get_funcstart(uwx_env* env, std::uint64_t* funcstart) {
  return with(env, [&](Environment& e) {
    const int status = e.find_function();
    give(funcstart, std::uint64_t{e.names().function()});
    return status;
  });
}

int uwx_get_sym_info(uwx_env* env, char** modp, char** symp, std::uint64_t* offsetp) {
  return with(env, [&](Environment& e) {
    const int status = e.find_symbol();
    give(modp, e.names().module());
    give(symp, e.names().symbol());
    give(offsetp, e.cursor() ? e.names().offset(e.cursor()->pc()) : std::uint64_t{0});
    return status;
  });
}

int uwx_get_source_info(uwx_env* env, char** ifuncp, char** srcfilep, int* linenump, int* inline_contextp) {
  return with(env, [&](Environment& e) {
    const int status = e.find_source();
    const FrameNames::Source& source = e.names().source();
    give(ifuncp, source.inlined);
    give(srcfilep, source.file);
    give(linenump, source.line);
    give(inline_contextp, source.context);
    return status;
  });
}
}

// uwx_find_symbol and its relatives: names and source of a file, without a walk.

namespace jitunwind::uwx {
namespace {

/// The request, and the places for its results.
struct Wanted {
  std::uint64_t relip = 0, relfuncstart = 0;
  int inline_context = 0;
  char** function = nullptr;
  std::uint64_t* offset = nullptr;
  char** inlined = nullptr;
  char** file = nullptr;
  int* line = nullptr;
  int* context = nullptr;

  bool wants_source() const noexcept { return inlined || file || line || context; }
  void clear() const noexcept {
    for (char** const text : {function, inlined, file})
      if (text) *text = nullptr;
    if (offset) *offset = 0;
    for (int* const number : {line, context})
      if (number) *number = 0;
  }
};

/// Copies strings into the pool. A string that does not fit is recorded here, apart from the pool's own errors.
class Copies {
 public:
  explicit Copies(StringPool& pool) noexcept : pool_(pool) {}
  void copy(const char* text, char** into) noexcept {
    if (!into || !text) return;
    *into = pool_.keep(std::string_view(text));
    lacks_memory_ = lacks_memory_ || !*into;
  }
  void take(char* text, char** into) noexcept {
    if (into) *into = text;
  }
  std::span<char> room(std::size_t size) noexcept {
    const auto found = pool_.room(size);
    lacks_memory_ = lacks_memory_ || found.empty();
    return found;
  }
  bool lacks_memory() const noexcept { return lacks_memory_; }

 private:
  StringPool& pool_;
  bool lacks_memory_ = false;
};

bool find_function(const SymbolFile& symbols, Addr at, const Wanted& wanted, Copies& copies) noexcept {
  ProcedureName name;
  Found found = symbols.find(at, {}, name);
  if ((!found || !*found) && wanted.relfuncstart != 0)
    found = symbols.find(symbols.first_address() + wanted.relfuncstart, {}, name);
  if (!found || !*found) return false;
  if (wanted.offset) *wanted.offset = at - name.start;
  if (!wanted.function) return true;
  const auto into = copies.room(name.length + 1);
  if (!into.empty() && symbols.find(name.start, into, name)) copies.take(into.data(), wanted.function);
  return true;
}

bool find_source(FileCache::File& file, Addr at, const Wanted& wanted, Copies& copies) noexcept {
  const SourcePosition found = file.position(at, wanted.inline_context);
  copies.copy(found.inlined, wanted.inlined);
  copies.copy(found.file, wanted.file);
  if (wanted.line) *wanted.line = found.line;
  if (wanted.context) *wanted.context = found.context;
  return found.file || found.inlined;
}

int find(Environment& environment, FileCache& files, const char* path, const Wanted& wanted) noexcept {
  const auto file = files.find(path);
  if (!file) return file.error().code == ErrorCode::out_of_memory ? UWX_ERR_NOMEM : UWX_ERR_NOSYM;
  const Addr at = (*file)->symbols.first_address() + wanted.relip;
  Copies copies(environment.pool());
  bool found = find_function((*file)->symbols, at, wanted, copies);
  if (wanted.wants_source()) found = find_source(**file, at, wanted, copies) || found;
  if (copies.lacks_memory()) return UWX_ERR_NOMEM;
  return found ? UWX_OK : UWX_ERR_NOSYM;
}

int find(uwx_env* env, uwx_symbol_cache** cachep, const char* path, const Wanted& wanted) noexcept {
  if (!env) return UWX_ERR_NOENV;
  Environment& environment = env->environment;
  wanted.clear();
  if (!cachep) {
    FileCache once(environment.allocator());
    return find(environment, once, path, wanted);
  }
  if (!*cachep) {
    void* const memory = environment.allocator().allocate(sizeof(uwx_symbol_cache));
    if (!memory) return UWX_ERR_NOMEM;
    *cachep = new (memory) uwx_symbol_cache(environment.allocator());
  }
  return find(environment, (*cachep)->files, path, wanted);
}

}  // namespace
}  // namespace jitunwind::uwx

extern "C" {

using namespace jitunwind::uwx;

int uwx_find_symbol(uwx_env* env, uwx_symbol_cache** cachep, char* mod, std::uint64_t relip, char** funcp,
                    std::uint64_t* offsetp) {
  return find(env, cachep, mod, {.relip = relip, .function = funcp, .offset = offsetp});
}

int uwx_find_source_info(uwx_env* env, uwx_symbol_cache** cachep, char* mod, std::uint64_t relip,
                         std::uint64_t relfuncstart, int inline_context, char** ifuncp, char** funcp,
                         std::uint64_t* offsetp, char** srcfilep, int* linenump, int* inline_contextp) {
  return find(env, cachep, mod,
              {relip, relfuncstart, inline_context, funcp, offsetp, ifuncp, srcfilep, linenump, inline_contextp});
}

int uwx_release_symbol_cache(uwx_env* env, uwx_symbol_cache* cache) {
  if (!env) return UWX_ERR_NOENV;
  if (!cache) return UWX_OK;
  const Allocator allocator = cache->files.allocator();
  cache->~uwx_symbol_cache();
  allocator.release(cache);
  return UWX_OK;
}
}
