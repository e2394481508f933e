#include "jitunwind/sdk/target.h"
#include "jitunwind/sdk/targets/target_impl_p.h"

namespace jitunwind {

Target::Target(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Target::Target(Target&&) noexcept = default;
Target& Target::operator=(Target&&) noexcept = default;
Target::~Target() = default;

Result<Target, TargetError> Target::attach(pid_t process, Hold hold) { return Process::make(process, true, hold); }
Result<Target, TargetError> Target::of_traced(pid_t process) {
  return Process::make(process, false, Hold::while_attached);
}

Result<Target, TargetError> Target::open_core(const std::string& path, const TargetFolders& folders) {
  return Core::make(path, folders);
}
Result<Target, TargetError> Target::from_sample(Sample sample, const TargetFolders& folders) {
  return OfSample::make(std::move(sample), folders);
}

pid_t Target::process() const noexcept { return impl_->process(); }
const std::vector<TargetThread>& Target::threads() const noexcept { return impl_->threads(); }
Result<RegisterFile> Target::registers(const TargetThread& thread) const noexcept { return impl_->registers(thread); }
Result<Addr> Target::registered_list(std::size_t number) const noexcept {
  MemoryWindow window;
  return impl_->space().heads().list_head(number, window);
}
std::optional<SourceLine> Target::source_line(const Frame& frame) const {
  Module module;
  const Addr at = frame.address().lookup();
  return space().modules.find(at, module) ? std::nullopt : impl_->space().find_line(at);
}
std::vector<AddrRange> Target::jit_code() const { return impl_->space().jit_code(); }
const Arch& Target::arch() const noexcept { return impl_->space().arch(); }
const AddressSpace& Target::space() const noexcept { return impl_->space().space(); }
const Mappings& Target::mappings() const noexcept { return impl_->space().mappings(); }
void Target::let_go() noexcept { impl_->let_go(); }
std::uint64_t Target::stopped_nanoseconds() const noexcept { return impl_->stopped_nanoseconds(); }
Result<Done, TargetError> Target::renew() {
  if (auto failed = impl_->renew()) return std::move(*failed);
  return Done{};
}
Result<Done, TargetError> Target::renew(Sample sample) {
  if (auto failed = impl_->take_sample(std::move(sample))) return std::move(*failed);
  return Done{};
}

Walk Target::walk(const TargetThread& thread, Guesses guesses) const noexcept {
  const auto registers = impl_->registers(thread);
  Cursor cursor(space(), registers ? *registers : RegisterFile(), Cursor::Top::interrupted);
  cursor.set_guesses(guesses);
  return Walk(cursor);
}

}  // namespace jitunwind
