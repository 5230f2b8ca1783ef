// SPDX-License-Identifier: Apache-2.0
// Compressed streams and archives that are no file of their own: a single compressed file, and what lies in
// other files (pickles, caches, programs with an archive behind them) without their saying so.
#include <zlib.h>

#include "analyzer/input/files/container_walk.h"
#include "analyzer/input/files/file_kind.h"
#include "kshim/image/byte_pairs.h"

namespace kshim::input {
namespace {

using namespace std::string_view_literals;

/// What zlib's own format holds, checksum included: libarchive does not read it.
class ZlibStream {
 public:
  explicit ZlibStream(Bytes packed) : rest_(packed), good_(::inflateInit(&stream_) == Z_OK) {}
  ZlibStream(const ZlibStream&) = delete;
  ZlibStream& operator=(const ZlibStream&) = delete;
  ~ZlibStream() { ::inflateEnd(&stream_); }
  /// Compressed bytes so far.
  std::uint64_t done() const { return stream_.total_in; }
  bool ended() const { return ended_; }

  Bytes next() {
    stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
    stream_.avail_out = static_cast<uInt>(block_.size());
    while (good_ && !ended_ && stream_.avail_out != 0) {
      if (stream_.avail_in == 0) {
        const Bytes part = rest_.first(std::min<std::size_t>(rest_.size(), 1U << 30));
        rest_ = rest_.subspan(part.size());
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));  // NOLINT: only read
        stream_.avail_in = static_cast<uInt>(part.size());
      }
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      ended_ = result == Z_STREAM_END;
      good_ = result == Z_OK || ended_;
    }
    return Bytes(block_).first(block_.size() - stream_.avail_out);
  }

 private:
  Bytes rest_;
  z_stream stream_{};
  bool good_;
  bool ended_ = false;
  std::array<std::byte, 16U << 10> block_{};
};

/// Whether the end record of a zip's directory is in the last bytes.
bool has_zip_directory(Bytes bytes) {
  constexpr std::size_t kRecord = 22 + 0xffff;  // with the longest comment
  return text_of(bytes.last(std::min(bytes.size(), kRecord))).find("PK\5\6"sv) != std::string_view::npos;
}

enum class Sign : std::uint8_t { none, zlib, packed, zip };

/// How those below begin: zlib at each of its levels, the others.
constexpr std::array<image::BytePair, 9> kSigns = {{{0x78, 0x01},
                                                    {0x78, 0x5e},
                                                    {0x78, 0x9c},
                                                    {0x78, 0xda},
                                                    {0x1f, 0x8b},
                                                    {'B', 'Z'},
                                                    {0xfd, '7'},
                                                    {0x28, 0xb5},
                                                    {'P', 'K'}}};

Sign sign_at(Bytes bytes) {
  const std::string_view text = text_of(bytes);
  if (text.size() < 8) return Sign::none;
  const auto byte = [&](std::size_t at) { return std::to_integer<unsigned>(bytes[at]); };
  switch (byte(0)) {
    case 0x78: {  // a window of 32 KiB; both bytes together are a multiple of 31; no type of block is 3
      const bool zlib = (byte(0) * 256 + byte(1)) % 31 == 0 && (byte(1) & 0x20U) == 0 && (byte(2) & 6U) != 6;
      return zlib ? Sign::zlib : Sign::none;
    }
    case 0x1f:
      return text.substr(1).starts_with("\x8b\x08") && byte(3) < 0x20 ? Sign::packed : Sign::none;
    case 0x42:
      return text.starts_with("BZh") && text.substr(4).starts_with("1AY&") ? Sign::packed : Sign::none;
    case 0xfd:
    case 0x28:
      return is_compressed(bytes) ? Sign::packed : Sign::none;
    case 0x50:
      return text.starts_with("PK\3\4") ? Sign::zip : Sign::none;
    default:
      return Sign::none;
  }
}

class EmbeddedWalk {
 public:
  EmbeddedWalk(Walk& walk, Bytes bytes, const ContainerPlace& place)
      : walk_(walk),
        bytes_(bytes),
        place_(place),
        buffer_(walk.visitor.member_memory),
        work_(kLeastWork + bytes.size() * kWorkPerByte) {}

  void run(std::uint64_t from) {
    for (std::uint64_t at = from; work_ != 0 && !walk_.stopped();) {
      at = image::find_pair<kSigns>(
          bytes_, at, [&](std::size_t place) { return sign_at(bytes_.subspan(place)) != Sign::none; });
      if (at >= bytes_.size()) break;
      at = look_at(at);
    }
  }

 private:
  // Of streams in other bytes nobody knows how many there are, and most of what looks like the start of one
  // is none: what they inflate to is limited by the size of the bytes.
  static constexpr std::uint64_t kLeastWork = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kWorkPerByte = 16;
  static constexpr std::uint64_t kAttempt = 256;

  /// Where to go on.
  std::uint64_t look_at(std::uint64_t at) {
    const Bytes rest = bytes_.subspan(static_cast<std::size_t>(at));
    switch (sign_at(rest)) {
      case Sign::none:
        return at + 1;
      case Sign::zlib: {
        ZlibStream zlib(rest);
        const bool whole = stream(
            at, [&] { return zlib.next(); }, [&] { return zlib.ended(); });
        return whole ? at + zlib.done() : at + 2;
      }
      case Sign::packed: {
        Stream packed(Stream::Format::raw, rest);
        if (packed.next_entry() != Stream::Step::entry || !packed.compressed()) return spend(0), at + 4;
        stream(
            at, [&] { return packed.next(walk_.budget); }, [&] { return !packed.failed(); });
        return at + 4;
      }
      case Sign::zip:
        if (!directory_) directory_ = has_zip_directory(bytes_);
        if (!*directory_) return at + 4;
        walk_.container(ContainerKind::zip, bytes_,
                        {fmt::format("{}@{}!", place_.prefix, at), place_.depth + 1});
        return bytes_.size();  // its directory is the last thing
    }
    return at + 1;
  }

  bool spend(std::uint64_t bytes) {
    bytes += kAttempt;
    const bool enough = work_ >= bytes;
    work_ = enough ? work_ - bytes : 0;
    return enough;
  }

  using Next = std::function<Bytes()>;

  /// Whether all of the stream was read: of one that holds nothing of interest, only its beginning is. One
  /// that does not end well only looked like one.
  bool stream(std::uint64_t at, const Next& next, const std::function<bool()>& good) {
    buffer_.clear();
    if (!pull(next, kFirstBytes) || buffer_.size() == 0) return false;
    const Bytes first = buffer_.bytes().first(std::min(buffer_.size(), kFirstBytes));
    const bool wanted = container_kind(first, {}) != ContainerKind::none || !walk_.visitor.wants_content ||
                        walk_.visitor.wants_content(place_.prefix, first);
    if (!wanted || !pull(next, SIZE_MAX) || !good()) return false;
    member(at, buffer_.bytes());
    return true;
  }

  bool pull(const Next& next, std::size_t until) {
    while (buffer_.size() < until) {
      const Bytes block = next();
      if (block.empty()) break;
      if (!spend(block.size()) || block.size() > walk_.limits.member_bytes - buffer_.size() ||
          !buffer_.append(block))
        return false;
    }
    return true;
  }

  void member(std::uint64_t at, Bytes bytes) {
    if (!walk_.count_member(place_)) return;
    const std::string name = fmt::format("@{}", at);
    walk_.member(place_, {name, bytes.size(), at}, bytes);
  }

  Walk& walk_;
  Bytes bytes_;
  const ContainerPlace& place_;
  Buffer buffer_;
  std::optional<bool> directory_;  ///< whether a zip ends the bytes
  std::uint64_t work_;
};

}  // namespace

void walk_embedded(Walk& walk, Bytes bytes, std::uint64_t from, const ContainerPlace& place) {
  EmbeddedWalk(walk, bytes, place).run(from);
}

}  // namespace kshim::input
