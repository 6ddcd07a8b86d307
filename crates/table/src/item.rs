//! An item as stored bytes. The encoding is the same in log records and in table pages.
//!
//! ```text
//! header   1 byte   bits 0-1 kind (0 value, 1 tombstone, 2 reference), bit 2 flags present, bit 3 expiry present,
//!                   bit 4 link present, bit 5 link of five bytes, bit 6 link in the second slot, bit 7 zero
//! key length        varint
//! value length      varint; absent in a tombstone
//! link              4 or 5 bytes, little-endian; if present: only in log records of chained keyspaces, see [`Link`]
//! flags             4 bytes, little-endian; if present
//! expiry            8 bytes, little-endian, milliseconds since 1970; if present
//! key, value
//! ```
//!
//! Keys and values under 128 bytes have an overhead of three bytes. The value of a reference says where in a blob file
//! the item is stored; keys too long for a page are replaced by a digest. Code that only moves items needs to know
//! neither.

use alluvium_base::varint;

const KIND_MASK: u8 = 0b11;
const HAS_FLAGS: u8 = 1 << 2;
const HAS_EXPIRY: u8 = 1 << 3;
const HAS_LINK: u8 = 1 << 4;
const HAS_LONG_LINK: u8 = 1 << 5;
const IS_IN_SECOND: u8 = 1 << 6;
const LINK_BITS: u8 = HAS_LINK | HAS_LONG_LINK | IS_IN_SECOND;
const KNOWN_BITS: u8 = KIND_MASK | HAS_FLAGS | HAS_EXPIRY | LINK_BITS;

/// Bytes of the link in an item with this header byte.
#[inline]
fn link_bytes(header: u8) -> usize {
    match header & (HAS_LINK | HAS_LONG_LINK) {
        0 => 0,
        HAS_LINK => 4,
        _ => 5,
    }
}

/// What ties an item in the log to the older items of its chain (SkimpyStash, SIGMOD 2011, §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where the next older record of the chain is; 0 at the end of the chain.
    pub pointer: u64,
    /// Whether the pointer takes five bytes, not four.
    pub is_long: bool,
    /// Whether the chain is that of the key's second slot.
    pub is_in_second: bool,
}

impl Link {
    /// The link in an encoded item, if it has one.
    pub fn of(encoded: &[u8]) -> Option<Self> {
        let ItemLayout { header, link_start, .. } = ItemLayout::decode(encoded)?;
        let bytes =
            encoded.get(link_start..link_start + link_bytes(header)).filter(|bytes| !bytes.is_empty())?;
        let mut pointer = [0; 8];
        pointer[..bytes.len()].copy_from_slice(bytes);
        let pointer = u64::from_le_bytes(pointer);
        Some(Self { pointer, is_long: bytes.len() == 5, is_in_second: header & IS_IN_SECOND != 0 })
    }

    /// Bytes that it takes in an item.
    pub fn encoded_len(&self) -> usize {
        if self.is_long { 5 } else { 4 }
    }
}

/// What an item stores: a value, the absence of one, or a reference to one. On disk: do not renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A value.
    Value = 0,
    /// The absence of a value.
    Tombstone = 1,
    /// A value that is stored in a blob file.
    Reference = 2,
}

/// A borrowed item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// What it stores.
    pub kind: ItemKind,
    /// Not interpreted by the store; used by memcached clients.
    pub flags: u32,
    /// Milliseconds since 1970 from which on the item is absent.
    pub expires_at_ms: Option<u64>,
    /// The key, or a digest of a key too long for a page.
    pub key: &'a [u8],
    /// Empty for a tombstone; an encoded position in a blob file for a reference.
    pub value: &'a [u8],
}

impl<'a> Item<'a> {
    /// A plain value without flags and expiry.
    #[inline]
    pub fn value(key: &'a [u8], value: &'a [u8]) -> Self {
        Self { kind: ItemKind::Value, flags: 0, expires_at_ms: None, key, value }
    }

    /// The removal of `key`.
    #[inline]
    pub fn tombstone(key: &'a [u8]) -> Self {
        Self { kind: ItemKind::Tombstone, flags: 0, expires_at_ms: None, key, value: &[] }
    }

    /// Whether it is the removal of its key.
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.kind == ItemKind::Tombstone
    }

    /// Whether its value is stored in a blob file.
    #[inline]
    pub fn is_reference(&self) -> bool {
        self.kind == ItemKind::Reference
    }

    /// Bytes that [`Item::encode`] appends.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        let lengths = varint::encoded_len(self.key.len() as u64)
            + if self.is_tombstone() { 0 } else { varint::encoded_len(self.value.len() as u64) };
        1 + lengths
            + if self.flags != 0 { 4 } else { 0 }
            + if self.expires_at_ms.is_some() { 8 } else { 0 }
            + self.key.len()
            + self.value.len()
    }

    /// Appends the item to `out`.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_with(None, out);
    }

    /// Appends the item with a link to `out`. The pointer must fit in the bytes of the link.
    pub fn encode_linked(&self, link: Link, out: &mut Vec<u8>) {
        self.encode_with(Some(link), out);
    }

    #[inline]
    fn encode_with(&self, link: Option<Link>, out: &mut Vec<u8>) {
        debug_assert!(!self.is_tombstone() || self.value.is_empty());
        let mut header = self.kind as u8;
        if self.flags != 0 {
            header |= HAS_FLAGS;
        }
        if self.expires_at_ms.is_some() {
            header |= HAS_EXPIRY;
        }
        if let Some(Link { is_long, is_in_second, .. }) = link {
            header |= HAS_LINK;
            header |= if is_long { HAS_LONG_LINK } else { 0 };
            header |= if is_in_second { IS_IN_SECOND } else { 0 };
        }
        out.push(header);
        varint::write(self.key.len() as u64, out);
        if !self.is_tombstone() {
            varint::write(self.value.len() as u64, out);
        }
        if let Some(link) = link {
            debug_assert!(link.pointer >> (8 * link.encoded_len()) == 0);
            out.extend_from_slice(&link.pointer.to_le_bytes()[..link.encoded_len()]);
        }
        if self.flags != 0 {
            out.extend_from_slice(&self.flags.to_le_bytes());
        }
        if let Some(expiry) = self.expires_at_ms {
            out.extend_from_slice(&expiry.to_le_bytes());
        }
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }

    /// Reads an item from the front of `bytes`; returns it with its encoded length. Returns `None` if the bytes are not
    /// an item: an unknown header bit or kind, or an end before the encoded lengths.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let layout = ItemLayout::decode(bytes)?;
        let end = layout.encoded_len();
        let key = bytes.get(layout.key_start..layout.key_start + layout.key_len)?;
        let value = bytes.get(layout.key_start + layout.key_len..end)?;
        let flags = if layout.header & HAS_FLAGS != 0 {
            let at = layout.key_start - 4 - if layout.header & HAS_EXPIRY != 0 { 8 } else { 0 };
            u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)
        } else {
            0
        };
        let expires_at_ms = if layout.header & HAS_EXPIRY != 0 {
            let at = layout.key_start - 8;
            Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
        } else {
            None
        };
        let kind = match layout.header & KIND_MASK {
            0 => ItemKind::Value,
            1 => ItemKind::Tombstone,
            _ => ItemKind::Reference,
        };
        Some((Self { kind, flags, expires_at_ms, key, value }, end))
    }

    /// Number of bytes of the item at the front of `bytes`, from its header alone. Used to step through a page.
    #[inline]
    pub fn skip(bytes: &[u8]) -> Option<usize> {
        ItemLayout::decode(bytes).map(|layout| layout.encoded_len())
    }
}

/// An item with its encoding, so that it is copied from table to table without being encoded again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodedItem<'a> {
    /// The item.
    pub item: Item<'a>,
    /// Its encoding.
    pub bytes: &'a [u8],
}

impl<'a> EncodedItem<'a> {
    /// The item at the front of `bytes`, or `None` if there is none.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (item, len) = Item::decode(bytes)?;
        Some(Self { item, bytes: &bytes[..len] })
    }
}

/// Positions of the parts of an encoded item.
#[derive(Clone, Copy, Debug)]
struct ItemLayout {
    header: u8,
    /// Where the link is, if there is one.
    link_start: usize,
    key_start: usize,
    key_len: usize,
    value_len: usize,
}

impl ItemLayout {
    /// Returns `None` also for lengths that exceed those of any item, so that their sum cannot overflow.
    #[inline]
    fn decode(bytes: &[u8]) -> Option<Self> {
        // Nearly every item is a plain value with one-byte lengths.
        if let [0, key_len @ 0..=127, value_len @ 0..=127, ..] = *bytes {
            return Some(Self {
                header: 0,
                link_start: 3,
                key_start: 3,
                key_len: key_len.into(),
                value_len: value_len.into(),
            });
        }
        Self::decode_any(bytes)
    }

    fn decode_any(bytes: &[u8]) -> Option<Self> {
        const LEN_MAX: u64 = 1 << 32;
        let header = *bytes.first()?;
        if header & !KNOWN_BITS != 0 || header & KIND_MASK > ItemKind::Reference as u8 {
            return None;
        }
        if header & LINK_BITS != 0 && header & HAS_LINK == 0 {
            return None;
        }
        let mut position = 1;
        let (key_len, taken) = varint::read(bytes.get(position..)?)?;
        position += taken;
        let mut value_len = 0;
        if header & KIND_MASK != ItemKind::Tombstone as u8 {
            let (len, taken) = varint::read(bytes.get(position..)?)?;
            value_len = len;
            position += taken;
        }
        if key_len > LEN_MAX || value_len > LEN_MAX {
            return None;
        }
        let link_start = position;
        position += link_bytes(header);
        if header & HAS_FLAGS != 0 {
            position += 4;
        }
        if header & HAS_EXPIRY != 0 {
            position += 8;
        }
        Some(Self {
            header,
            link_start,
            key_start: position,
            key_len: key_len as usize,
            value_len: value_len as usize,
        })
    }

    #[inline]
    fn encoded_len(&self) -> usize {
        self.key_start + self.key_len + self.value_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            kind in prop::sample::select(vec![ItemKind::Value, ItemKind::Tombstone, ItemKind::Reference]),
            flags in prop_oneof![Just(0u32), any::<u32>()],
            expires_at_ms: Option<u64>,
            key in prop::collection::vec(any::<u8>(), 0..300),
            value in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let value = if kind == ItemKind::Tombstone { &[][..] } else { &value[..] };
            let item = Item { kind, flags, expires_at_ms, key: &key, value };
            let mut bytes = Vec::new();
            item.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), item.encoded_len());
            prop_assert_eq!(Item::skip(&bytes), Some(bytes.len()));
            prop_assert_eq!(Item::decode(&bytes), Some((item, bytes.len())));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Item::decode(&bytes[..cut]), None);
            }
            prop_assert_eq!(Link::of(&bytes), None);
        }

        #[test]
        fn a_link_changes_nothing_else(
            kind in prop::sample::select(vec![ItemKind::Value, ItemKind::Tombstone, ItemKind::Reference]),
            flags in prop_oneof![Just(0u32), any::<u32>()],
            expires_at_ms: Option<u64>,
            key in prop::collection::vec(any::<u8>(), 0..300),
            pointer: u64,
            is_long: bool,
            is_in_second: bool,
        ) {
            let value = if kind == ItemKind::Tombstone { &[][..] } else { &b"value"[..] };
            let item = Item { kind, flags, expires_at_ms, key: &key, value };
            let link = Link { pointer: pointer >> if is_long { 24 } else { 32 }, is_long, is_in_second };
            let mut bytes = Vec::new();
            item.encode_linked(link, &mut bytes);
            prop_assert_eq!(bytes.len(), item.encoded_len() + link.encoded_len());
            prop_assert_eq!(Item::skip(&bytes), Some(bytes.len()));
            prop_assert_eq!(Item::decode(&bytes), Some((item, bytes.len())));
            prop_assert_eq!(Link::of(&bytes), Some(link));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Item::decode(&bytes[..cut]), None);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Item::decode(&bytes);
            let _ = Item::skip(&bytes);
            let _ = Link::of(&bytes);
        }
    }
}
