// CIEs and FDEs: where they are, and what their fields say.
#include "jitunwind/unwind_core/rows/dwarf_constants_internal.h"
#include "jitunwind/unwind_core/sources/cfi/cfi.h"

namespace jitunwind {
namespace {

using namespace dwarf;
using Format = CfiContext::Format;

std::uint64_t wrap(std::uint64_t value, const Arch& arch) noexcept {
  return arch.word_size == 4 ? value & 0xffffffffu : value;
}

inline std::uint64_t read_format(ByteReader& reader, std::uint8_t format, const Arch& arch) noexcept {
  switch (format) {
    case pe_absptr:
      return reader.unsigned_of(arch.word_size);
    case pe_signed:
      return static_cast<std::uint64_t>(reader.signed_of(arch.word_size));
    case pe_uleb128:
      return reader.uleb();
    case pe_sleb128:
      return static_cast<std::uint64_t>(reader.sleb());
    case pe_udata2:
      return reader.u16();
    case pe_udata4:
      return reader.u32();
    case pe_udata8:
    case pe_sdata8:
      return reader.u64();
    case pe_sdata2:
      return static_cast<std::uint64_t>(reader.signed_of(2));
    case pe_sdata4:
      return static_cast<std::uint64_t>(reader.signed_of(4));
    default:
      reader.fail(ErrorCode::bad_encoding);
      return 0;
  }
}

/// A length: the same format, without a base, and unsigned whatever the format (LSB 5.0 core, 10.6.1.2, "PC Range").
std::uint64_t read_range(ByteReader& reader, std::uint8_t encoding, const Arch& arch) noexcept {
  const auto format = static_cast<std::uint8_t>(encoding & pe_format_mask);
  if (encoding == pe_aligned) return read_format(reader, pe_absptr, arch);
  if (format == pe_sleb128) {
    const std::int64_t value = reader.sleb();
    if (value < 0) reader.fail(ErrorCode::bad_structure);
    return static_cast<std::uint64_t>(value);
  }
  return read_format(reader, format & ~pe_signed, arch);
}

/// One CIE, FDE or terminator: the fields that all have.
struct Entry {
  Addr address = 0;
  std::uint64_t size = 0;  // 4: terminator of .eh_frame
  std::uint64_t id = 0;    // CIE id or pointer
  Addr id_address = 0;
  bool is_cie = false;
  bool is_terminator = false;
  SectionBytes body{};  // behind the id
};

/// Length in both forms (DWARF 5, 7.4). The id has 4 bytes in .eh_frame whatever the form (LSB 5.0 core, 10.6.1; LLVM
/// and gimli read it so, readelf does not), in .debug_frame as many as the form.
Status read_entry(CfiBytes& bytes, const CfiContext& context, Addr at, Entry& out) noexcept {
  const bool big_endian = context.arch.big_endian;
  const auto head = bytes.view(at, 4);
  if (!head) return head.error();
  std::uint64_t length = ByteReader(*head, big_endian).u32();
  std::size_t length_size = 4;
  if (length == 0) {
    out = {.address = at, .size = 4, .is_terminator = true};
    return Done{};
  }
  if (length == 0xffffffffu) {
    const auto wide = bytes.view(at + 4, 8);
    if (!wide) return wide.error();
    length = ByteReader(*wide, big_endian).u64();
    length_size = 12;
  } else if (length >= 0xfffffff0u) {
    return Error{ErrorCode::bad_structure, at, "reserved length of a CIE or FDE"};
  }
  if (length > ~std::uint64_t{0} - length_size) return Error{ErrorCode::truncated, at, "CIE or FDE"};

  out.address = at;
  out.size = length + length_size;
  const auto all = bytes.view(at, out.size);
  if (!all && callback_result(all.error()) != 0) return all.error();
  if (!all) return Error{all.error().code, at, "CIE or FDE is longer than what can be read"};
  const std::size_t id_size = context.format == Format::debug_frame && length_size == 12 ? 8 : 4;
  out.id_address = at + length_size;
  ByteReader reader(all->subspan(length_size), big_endian, out.id_address);
  out.id = reader.unsigned_of(id_size);
  if (!reader.ok()) return reader.error("id of a CIE or FDE");
  const std::uint64_t debug_id = id_size == 8 ? ~std::uint64_t{0} : 0xffffffffu;
  out.is_cie = out.id == (context.format == Format::eh_frame ? 0 : debug_id);
  out.body.address = reader.address();
  out.body.bytes = reader.rest();
  out.is_terminator = false;
  return Done{};
}

/// Finds the CIE of an FDE. The FDE's field counts from the section's start in .debug_frame.
Addr cie_address(const Entry& fde, const CfiContext& context) noexcept {
  if (context.format == Format::debug_frame) return context.section + fde.id;
  return cie_before(fde.id_address, static_cast<std::uint32_t>(fde.id));
}

/// Letters behind the "z". A letter that is not known ends what can be read, and the data is skipped by its length.
/// FDEs could only be misread if "R", "L" or "P" follow it.
void read_augmentation(std::string_view letters, ByteReader data, const CfiContext& context, Cie& cie,
                       ByteReader& reader) noexcept {
  for (std::size_t i = 0; i < letters.size() && data.ok(); ++i) {
    switch (letters[i]) {
      case 'R':
        cie.pointer_encoding = data.u8();
        break;
      case 'L':
        cie.lsda_encoding = data.u8();
        break;
      case 'P': {
        const std::uint8_t encoding = data.u8();
        cie.personality = read_encoded(data, encoding, context, 0);
        break;
      }
      case 'S':
        cie.signal_frame = true;
        break;
      case 'B':
        cie.signed_with_b_key = true;
        break;
      default:
        if (letters.find_first_of("RLP", i) != letters.npos) reader.fail(ErrorCode::bad_augmentation);
        return;
    }
  }
  if (!data.ok()) reader.fail(data.error("").code);
}

Status parse_cie(const Entry& entry, const CfiContext& context, Cie& cie) noexcept {
  const Arch& arch = context.arch;
  cie = {.address = entry.address, .size = entry.size};
  ByteReader reader(entry.body.bytes, arch.big_endian, entry.body.address);
  cie.version = reader.u8();
  if (reader.ok() && cie.version != 1 && cie.version != 3 && cie.version != 4)
    return Error{ErrorCode::unsupported_version, entry.address, "version of a CIE"};
  std::string_view augmentation = reader.c_string();
  if (cie.version == 4) {
    const std::uint8_t address_size = reader.u8();
    const std::uint8_t segment_size = reader.u8();
    if (reader.ok() && (address_size != arch.word_size || segment_size != 0))
      return Error{ErrorCode::bad_structure, entry.address, "address or segment selector size of a CIE"};
  }
  // Before gcc 3: the address of exception data follows (LSB 5.0 core, 10.6.1.1.1).
  if (augmentation.starts_with("eh")) {
    reader.skip(arch.word_size);
    augmentation.remove_prefix(2);
  }
  cie.has_augmentation_data = augmentation.starts_with('z');
  if (!cie.has_augmentation_data && !augmentation.empty())
    return Error{ErrorCode::bad_augmentation, entry.address, "augmentation of a CIE"};
  cie.code_alignment = reader.uleb();
  cie.data_alignment = reader.sleb();
  const std::uint64_t return_address = cie.version == 1 ? reader.u8() : reader.uleb();
  if (return_address >= k_no_reg) return Error{ErrorCode::bad_register, entry.address, "return address column"};
  cie.return_address = static_cast<RegNum>(return_address);
  if (cie.has_augmentation_data) {
    const std::uint64_t size = reader.uleb();
    const Addr at = reader.address();
    const ByteReader data(reader.bytes(size), arch.big_endian, at);
    std::string_view letters = augmentation;
    letters.remove_prefix(1);
    read_augmentation(letters, data, context, cie, reader);
  }
  if (!reader.ok()) return reader.error("CIE");
  cie.instructions.address = reader.address();
  cie.instructions.bytes = reader.rest();
  return Done{};
}

Status read_cie(CfiBytes& bytes, const CfiContext& context, Addr at, Cie& out) noexcept {
  Entry entry;
  if (const Status read = read_entry(bytes, context, at, entry); !read) return read;
  if (!entry.is_cie) return Error{ErrorCode::bad_structure, at, "what an FDE names as its CIE is none"};
  return parse_cie(entry, context, out);
}

/// All but its CIE, which is expected in `fde`.
Status parse_fde(const Entry& entry, const CfiContext& context, Fde& fde) noexcept {
  const Cie& cie = fde.cie;
  fde.address = entry.address;
  fde.size = entry.size;
  fde.lsda = {};
  ByteReader reader(entry.body.bytes, context.arch.big_endian, entry.body.address);
  if (cie.pointer_encoding == pe_omit)
    return Error{ErrorCode::bad_encoding, entry.address, "FDE without address of its code"};
  EncodedPointer begin = read_encoded(reader, cie.pointer_encoding, context, 0);
  if (begin.value == 0 && context.text_begins_code && (cie.pointer_encoding & pe_application_mask) == pe_textrel)
    begin.value = context.text_base;
  const std::uint64_t size = read_range(reader, cie.pointer_encoding, context.arch);
  if (reader.ok() && begin.indirect)
    return Error{ErrorCode::bad_encoding, entry.address, "address of an FDE's code is indirect"};
  fde.range = {begin.value, begin.value + size};
  const Addr limit = context.arch.word_size == 4 ? Addr{1} << 32 : ~Addr{0};
  if (reader.ok() && (begin.value > limit || size > limit - begin.value))
    return Error{ErrorCode::bad_structure, entry.address, "FDE reaches behind the end of the address space"};
  if (cie.has_augmentation_data) {
    const std::uint64_t data_size = reader.uleb();
    const Addr at = reader.address();
    ByteReader data(reader.bytes(data_size), context.arch.big_endian, at);
    if (reader.ok() && cie.lsda_encoding != pe_omit)
      fde.lsda = read_encoded(data, cie.lsda_encoding, context, begin.value);
    if (!data.ok()) reader.fail(data.error("").code);
  }
  if (!reader.ok()) return reader.error("FDE");
  fde.instructions.address = reader.address();
  fde.instructions.bytes = reader.rest();
  return Done{};
}

Status read_fde_into(CfiBytes& bytes, const CfiContext& context, Addr at, Fde& out) noexcept {
  Entry entry;
  if (const Status read = read_entry(bytes, context, at, entry); !read) return read;
  if (entry.is_cie || entry.is_terminator) return Error{ErrorCode::bad_structure, at, "no FDE at this address"};
  if (const Status cie = read_cie(bytes, context, cie_address(entry, context), out.cie); !cie) return cie;
  return parse_fde(entry, context, out);
}

}  // namespace

Result<std::span<const std::byte>> SectionView::view_elsewhere(Addr at, std::uint64_t size) noexcept {
  if (at - with_cies_.address < with_cies_.bytes.size()) return SectionView(with_cies_).view(at, size);
  return Error{ErrorCode::truncated, at, "outside of the section"};
}

Result<std::span<const std::byte>> MemoryView::view_elsewhere(Addr at, std::uint64_t size) noexcept {
  if (size > ~Addr{0} - at) return Error{ErrorCode::unreadable_memory, at, "call frame information"};
  if (size > k_max_cfi_entry) return Error{ErrorCode::too_deep, at, "call frame information is too large"};
  const auto count = static_cast<std::size_t>(size);
  if (const std::byte* direct = memory_.view(at, count, window_)) return std::span(direct, count);
  if (buffer_.data() == nullptr) return unreadable(window_, at, "call frame information");
  if (count > buffer_.size()) return Error{ErrorCode::too_deep, at, "call frame information is larger than its buffer"};
  const std::span<std::byte> copy = buffer_.first(count);
  if (memory_.read(at, copy, window_) != count) return unreadable(window_, at, "call frame information");
  buffer_ = buffer_.subspan(count);
  return std::span<const std::byte>(copy);
}

EncodedPointer read_encoded(ByteReader& reader, std::uint8_t encoding, const CfiContext& context,
                            Addr function) noexcept {
  if (encoding == pe_omit) return {};
  if (encoding == pe_aligned) {
    reader.skip(-reader.address() & (context.arch.word_size - 1u));
    return {reader.unsigned_of(context.arch.word_size), false};
  }
  const Addr at = reader.address();
  if (encoding == (pe_pcrel | pe_sdata4) && context.format == Format::eh_frame) [[likely]] {  // most of them
    const auto distance = static_cast<std::uint64_t>(reader.signed_of(4));
    return {distance == 0 ? 0 : wrap(at + distance, context.arch), false};
  }
  std::uint64_t value = read_format(reader, encoding & pe_format_mask, context.arch);
  if (value == 0 || !reader.ok()) return {};
  const auto relative_to = [&](Addr base) {
    if (base == 0) reader.fail(ErrorCode::bad_encoding);
    value += base;
  };
  switch (encoding & pe_application_mask) {
    case pe_absptr:
      value += context.load_bias;
      break;
    case pe_pcrel:  // .debug_frame is not loaded: its own place means nothing
      if (context.format == Format::debug_frame) reader.fail(ErrorCode::bad_encoding);
      value += at;
      break;
    case pe_textrel:
      relative_to(context.text_base);
      break;
    case pe_datarel:
      relative_to(context.data_base);
      break;
    case pe_funcrel:
      relative_to(function);
      break;
    default:
      reader.fail(ErrorCode::bad_encoding);
      break;
  }
  return {wrap(value, context.arch), (encoding & pe_indirect) != 0};
}

Result<Addr> resolve(const EncodedPointer& pointer, const Arch& arch, const Memory& memory,
                     MemoryWindow& window) noexcept {
  if (!pointer.indirect) return pointer.value;
  return read_word(memory, window, pointer.value, arch, "indirect pointer of a CIE or FDE");
}

Result<Fde> read_fde(CfiBytes& bytes, const CfiContext& context, Addr at) noexcept {
  Fde fde;
  if (const Status read = read_fde_into(bytes, context, at, fde); !read) return read.error();
  return fde;
}

Found read_fde_for(Addr pc, CfiBytes& bytes, const CfiContext& context, Addr at, Fde& out) noexcept {
  if (const Status read = read_fde_into(bytes, context, at, out); !read) return read.error();
  return out.range.contains(pc);
}

Result<bool> FdeScan::next(Fde& out) noexcept {
  while (!entries_.empty()) {
    Entry entry;
    if (const Status read = read_entry(bytes_, context_, entries_.begin, entry); !read) {
      entries_ = {};  // without a length there is no next one
      return read.error();
    }
    entries_.begin += entry.size;
    if (entry.is_terminator && context_.format == Format::eh_frame) break;
    if (entry.is_cie && !parse_cie(entry, context_, cie_)) cie_ = {};  // an FDE that names it says so
    if (entry.is_cie || entry.is_terminator) continue;

    const Addr at = cie_address(entry, context_);
    if (cie_.size == 0 || cie_.address != at) {
      if (const Status read = read_cie(bytes_, context_, at, cie_); !read) {
        cie_ = {};
        return read.error();
      }
    }
    out.cie = cie_;
    if (const Status parsed = parse_fde(entry, context_, out); !parsed) return parsed.error();
    return true;
  }
  entries_ = {};
  return false;
}

Status read_procedure(const Fde& fde, const Arch& arch, const Memory& memory, MemoryWindow& window,
                      ProcedureInfo& out) noexcept {
  const auto handler = resolve(fde.cie.personality, arch, memory, window);
  if (!handler) return handler.error();
  const auto lsda = resolve(fde.lsda, arch, memory, window);
  if (!lsda) return lsda.error();
  out.range = fde.range;
  out.handler = *handler;
  out.lsda = *lsda;
  out.format = 1;  // UNW_INFO_FORMAT_TABLE
  out.unwind_info = fde.address;
  out.unwind_info_size = fde.size;
  return Done{};
}

}  // namespace jitunwind
