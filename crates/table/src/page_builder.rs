//! [`PageBuilder`]: packs items into pages. Also estimates how many pages they will need.

use alluvium_base::checksum::checksum64;

use crate::page::{CARRIES, GOES_ON, HEADER_BYTES, Layout, PAGE_BYTES, PAGE_LOSS_MAX};

/// A position between two items of the page being filled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    pub items: usize,
    pub body_len: usize,
}

/// Number of pages that `items` items of `item_bytes` encoded bytes in total will need, including the loss at page
/// ends.
pub fn pages_expected(items: u64, item_bytes: u64) -> u64 {
    if items == 0 {
        return 0;
    }
    let with_tags = item_bytes + items;
    let lost_max = with_tags.div_ceil(items).min(PAGE_LOSS_MAX as u64);
    with_tags.div_ceil((PAGE_BYTES - HEADER_BYTES) as u64 - lost_max / 2).max(1)
}

/// Items to be written to pages: those of one page, and the item that did not fit or that continues in the next page.
#[derive(Debug, Default)]
pub(crate) struct PageBuilder {
    /// The rest of the last item of the page before.
    carried: Vec<u8>,
    tags: Vec<u8>,
    body: Vec<u8>,
    /// Length of every item so far; 0 when they differ.
    uniform_len: u16,
}

impl PageBuilder {
    /// Bytes of a page with the items held; more than a page if the last item continues.
    #[inline]
    fn used_bytes(&self) -> usize {
        HEADER_BYTES + self.carried.len() + self.tags.len() + self.body.len()
    }

    /// Whether an item of `encoded_len` bytes fits in addition to those held.
    #[inline]
    pub fn fits(&self, encoded_len: usize) -> bool {
        self.used_bytes() + 1 + encoded_len <= PAGE_BYTES
    }

    /// Whether an item that does not fit should begin here rather than in the next page: if the page ended after its
    /// first `items` items of `body_len` bytes, too much would be lost.
    ///
    /// Not for small items: they lose little, and a lookup of a continued item reads two pages.
    #[inline]
    pub fn takes_head(&self, encoded_len: usize, items: usize, body_len: usize) -> bool {
        let ends_at = HEADER_BYTES + self.carried.len() + items + body_len;
        encoded_len >= PAGE_LOSS_MAX
            && ends_at + PAGE_LOSS_MAX < PAGE_BYTES
            && self.used_bytes() + 1 < PAGE_BYTES
    }

    /// Whether the last item continues in the next page.
    #[inline]
    pub fn is_overfull(&self) -> bool {
        self.used_bytes() > PAGE_BYTES
    }

    /// Whether the last item of the previous sealed page continues in this one.
    #[inline]
    pub fn goes_on(&self) -> bool {
        !self.carried.is_empty()
    }

    /// Appends an encoded item.
    #[inline]
    pub fn push(&mut self, tag: u8, encoded: &[u8]) {
        if self.tags.is_empty() {
            self.uniform_len = encoded.len() as u16;
        } else if usize::from(self.uniform_len) != encoded.len() {
            self.uniform_len = 0;
        }
        self.tags.push(tag);
        self.body.extend_from_slice(encoded);
    }

    /// Number of items held.
    #[inline]
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    /// Encoded bytes of the items held.
    #[inline]
    pub fn body_len(&self) -> usize {
        self.body.len()
    }

    /// Writes the first `items` items of `body_len` bytes as a page into `out` and keeps the rest for the next page.
    /// Returns how many bytes of the page are used.
    ///
    /// # Panics
    /// If `out` is not a page long, or these items do not fit in one, apart from the end of the last one held.
    pub fn seal(
        &mut self,
        items: usize,
        body_len: usize,
        layout: Layout,
        seed: u64,
        out: &mut [u8],
    ) -> usize {
        let items_start = HEADER_BYTES + items + self.carried.len();
        let used = (items_start + body_len).min(PAGE_BYTES);
        let goes_on = items_start + body_len > PAGE_BYTES;
        assert!(out.len() == PAGE_BYTES && items_start <= used, "a page of {used} bytes");
        assert!(!goes_on || items == self.tags.len(), "only the last item continues");
        let (mut flags, mut len) = (0, if goes_on { 0 } else { self.uniform_len });
        if goes_on {
            flags |= GOES_ON;
        }
        if !self.carried.is_empty() {
            flags |= CARRIES;
            len = self.carried.len() as u16;
        }
        out[8..10].copy_from_slice(&(items as u16).to_le_bytes());
        out[10..12].copy_from_slice(&(used as u16).to_le_bytes());
        out[12] = layout as u8;
        out[13] = flags;
        out[14..16].copy_from_slice(&len.to_le_bytes());
        out[HEADER_BYTES..HEADER_BYTES + items].copy_from_slice(&self.tags[..items]);
        out[HEADER_BYTES + items..items_start].copy_from_slice(&self.carried);
        let here = used - items_start;
        out[items_start..used].copy_from_slice(&self.body[..here]);
        out[used..].fill(0);
        let checksum = checksum64(&out[8..], seed);
        out[..8].copy_from_slice(&checksum.to_le_bytes());
        self.carried.clear();
        self.carried.extend_from_slice(&self.body[here..body_len]);
        self.tags.drain(..items);
        self.body.drain(..body_len);
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn page_estimates_are_close(items in 1u64..5000, item_bytes in 20u64..255) {
            let estimate = pages_expected(items, items * item_bytes);
            let fit = (PAGE_BYTES - HEADER_BYTES) as u64 / (item_bytes + 1);
            let actual = items.div_ceil(fit);
            prop_assert!(estimate <= actual + actual / 20 + 1 && actual <= estimate + estimate / 20 + 1,
                "{estimate} expected, {actual} needed");
        }
    }
}
