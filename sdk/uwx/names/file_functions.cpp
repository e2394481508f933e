// uwx_find_symbol and its relatives: names and source of a file, without a walk.
#include <new>

#include "jitunwind/sdk/uwx/environment_p.h"
#include "jitunwind/sdk/uwx/names/file_cache_p.h"

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
