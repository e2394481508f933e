#include "jitunwind/unwind_core/image/copied_parts_p.h"

#include <unistd.h>

namespace jitunwind {

std::span<std::byte> CopiedParts::room(std::size_t size) noexcept {
  constexpr std::size_t k_unit = 16;
  const std::size_t padded = (size + k_unit - 1) / k_unit * k_unit;
  if (padded <= small_.size() / 4 && padded <= small_.size() - small_used_) {
    const std::span<std::byte> found = std::span(small_).subspan(small_used_, size);
    small_used_ += padded;
    return found;
  }
  if (large_count_ == large_.size()) return {};
  KeptBlock& block = large_[large_count_];
  block = KeptBlock::whole(size);
  if (block.empty()) return {};
  ++large_count_;
  return block.bytes();
}

std::span<const std::byte> CopiedParts::part(std::uint64_t offset, std::uint64_t size) noexcept {
  if (size == 0 || offset > size_ || size > size_ - offset) return {};
  for (const Part& known : std::span(parts_).first(count_))
    if (offset >= known.offset && offset - known.offset <= known.bytes.size() &&
        size <= known.bytes.size() - (offset - known.offset))
      return known.bytes.subspan(static_cast<std::size_t>(offset - known.offset), static_cast<std::size_t>(size));
  if (count_ == parts_.size() || size > k_most_bytes - copied_) return {};
  const auto into = room(static_cast<std::size_t>(size));
  if (into.empty() || read(offset, into) != into.size()) return {};
  copied_ += size;
  parts_[count_++] = {offset, into};
  return into;
}

std::uint64_t CopiedParts::offset_of(std::span<const std::byte> part) const noexcept {
  std::uint64_t found = 0;
  for (const Part& known : std::span(parts_).first(count_))
    if (part.data() >= known.bytes.data() && part.data() < known.bytes.data() + known.bytes.size())
      found = known.offset + static_cast<std::uint64_t>(part.data() - known.bytes.data());
  return found;
}

KeptBlock CopiedParts::take(std::span<const std::byte> part) noexcept {
  for (KeptBlock& block : large_)
    if (!block.empty() && block.bytes().data() == part.data() && block.bytes().size() == part.size())
      return std::move(block);
  return {};
}

FileParts::FileParts(const FilePath& file, std::span<char> real_path, std::uint64_t begin) noexcept
    : file_(open(file)), begin_(begin) {
  const ErrnoKeeper keeper;
  if (!file_.is_open()) return;
  const auto identity = identify_file(file_.number(), real_path);
  if (!identity) return;
  identity_ = *identity;
  if (begin < identity_.size) set_size(identity_.size - begin);
}

std::size_t FileParts::read(std::uint64_t offset, std::span<std::byte> into) noexcept {
  const ErrnoKeeper keeper;
  std::size_t done = 0;
  while (done < into.size()) {
    const long got = read_at(file_.number(), into.data() + done, into.size() - done, begin_ + offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t MemoryParts::read(std::uint64_t offset, std::span<std::byte> into) noexcept {
  return memory_.read(begin_ + offset, into, window_);
}

}  // namespace jitunwind
