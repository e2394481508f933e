#include "tests/exceptions/handlers/lsda_decoder.h"

#include <cstring>
#include <span>
#include <stdexcept>

namespace jitunwind::test {
namespace {

class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  std::size_t at() const { return at_; }
  std::uint8_t byte() {
    if (at_ >= bytes_.size()) throw std::out_of_range("behind the data");
    return bytes_[at_++];
  }
  std::uint64_t uleb() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const std::uint8_t b = byte();
      value |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return value;
    }
  }
  std::int64_t sleb() {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t b = 0;
    do {
      b = byte();
      value |= static_cast<std::uint64_t>(b & 0x7f) << shift;
      shift += 7;
    } while (b >= 0x80);
    if ((b & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }
  std::uint64_t word() {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(byte()) << 8 * i;
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_;
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  DecodedTable decode() {
    Reader in(bytes_, 0);
    if (in.byte() != 0xff) throw std::runtime_error("landing pad base is there");
    const std::uint8_t type_encoding = in.byte();
    if (type_encoding != 0xff && type_encoding != 0x00) throw std::runtime_error("types are not absolute");
    if (type_encoding == 0) {
      const std::uint64_t distance = in.uleb();
      type_base_ = in.at() + distance;
    }
    if (in.byte() != 0x01) throw std::runtime_error("call sites are not uleb128");
    const std::uint64_t length = in.uleb();
    actions_ = in.at() + length;
    while (in.at() < actions_) {
      DecodedSite site;
      site.begin = in.uleb();
      site.length = in.uleb();
      site.pad = in.uleb();
      if (const std::uint64_t action = in.uleb(); action != 0) site.selectors = chain(actions_ + action - 1);
      out_.sites.push_back(site);
    }
    if (in.at() != actions_) throw std::runtime_error("call sites do not end with their table");
    return out_;
  }

 private:
  std::vector<std::int64_t> chain(std::size_t at) {
    std::vector<std::int64_t> selectors;
    for (;;) {
      Reader in(bytes_, at);
      const std::int64_t selector = in.sleb();
      const std::size_t next = in.at();
      const std::int64_t distance = in.sleb();
      selectors.push_back(selector);
      look_at(selector);
      if (distance == 0) return selectors;
      at = static_cast<std::size_t>(static_cast<std::int64_t>(next) + distance);
    }
  }

  void look_at(std::int64_t selector) {
    if (selector > 0) {
      const std::uint64_t address = Reader(bytes_, type_base_ - 8 * static_cast<std::size_t>(selector)).word();
      const auto* const type = reinterpret_cast<const std::type_info*>(address);
      out_.types[selector] = type ? type->name() : "...";
    } else if (selector < 0) {
      Reader list(bytes_, type_base_ + static_cast<std::size_t>(-selector - 1));
      std::vector<std::uint64_t>& numbers = out_.lists[selector];
      numbers.clear();
      for (std::uint64_t n = list.uleb(); n != 0; n = list.uleb()) {
        numbers.push_back(n);
        look_at(static_cast<std::int64_t>(n));
      }
    }
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t type_base_ = 0;
  std::size_t actions_ = 0;
  DecodedTable out_;
};

}  // namespace

DecodedTable decode_lsda(const void* data, std::size_t size) {
  return Decoder({static_cast<const std::uint8_t*>(data), size}).decode();
}

std::string DecodedTable::text() const {
  std::string out;
  for (const DecodedSite& site : sites) {
    out += std::to_string(site.begin) + ".." + std::to_string(site.begin + site.length);
    if (site.pad != 0) out += " -> " + std::to_string(site.pad);
    for (const std::int64_t selector : site.selectors) {
      out += " [" + std::to_string(selector);
      if (selector > 0) out += " " + types.at(selector);
      if (selector < 0)
        for (const std::uint64_t n : lists.at(selector)) out += " " + types.at(static_cast<std::int64_t>(n));
      out += "]";
    }
    out += "\n";
  }
  return out;
}

}  // namespace jitunwind::test
