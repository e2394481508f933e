// Input: a core file, which also serves as its own program.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "jitunwind/unwind_core/targets/core_file_internal.h"
#include "jitunwind/unwind_core/targets/target_files_internal.h"
#include "tests/fuzz/walk_target.h"

using namespace jitunwind;

namespace {

/// A file that has no other path.
class InputFile {
 public:
  InputFile(const std::uint8_t* data, std::size_t size) : number_(::memfd_create("input", MFD_CLOEXEC)) {
    fuzz::check(::write(number_, data, size) == static_cast<ssize_t>(size), "the input fits a file");
  }
  ~InputFile() { ::close(number_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

void walk_threads(const CoreFile& core, const Arch& arch) {
  const TargetFiles files = TargetFiles::none();
  const FileBackedMemory backed(core.memory(), arch, core.mappings(), files);
  const fuzz::MeteredMemory memory(backed);
  const TargetSpace target(arch, memory, core.mappings(), files);
  std::size_t walked = 0;
  for (const CoreThread& thread : core.threads()) {
    fuzz::check(!fault_address(thread.siginfo, arch) || thread.siginfo.size() >= 12u + arch.word_size, "it is said");
    if (++walked > 4) break;
    auto registers = registers_from_prstatus(thread.registers, arch);
    if (!registers) continue;
    (void)add_fp_registers(thread.fp_registers, arch, *registers);
    thread.vector_words.add_to(arch, *registers);
    (void)fuzz::walk_target(target, *registers, walked % 2 != 0 ? Guesses::confirmed : Guesses::bold);
  }
  fuzz::check(memory.reads < (std::size_t{1} << 24), "the work is bounded");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const InputFile file(data, size);
  const auto core = CoreFile::open(file.path().c_str());
  if (!core) {
    fuzz::check(*core.error().what != 0, "an error says what");
    return 0;
  }
  const Arch* const arch = find_arch((*core)->machine(), (*core)->big_endian());
  if (!arch || (arch->word_size == 8) != (*core)->is_64()) return 0;
  fuzz::check(!(*core)->threads().empty(), "a core has a thread");
  walk_threads(**core, *arch);
  const auto parts = make_mapped<FileParts>(file.path().c_str());
  const auto image = ElfImage::parse(*parts);
  if (image && (*core)->add_program(*image, "/program")) walk_threads(**core, *arch);
  return 0;
}
