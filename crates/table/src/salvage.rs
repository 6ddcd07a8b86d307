//! Reads what is left of a damaged table: checks its pages one by one and returns the items of the sound ones.
//!
//! Each page has its own checksum, seeded with the file and the page's number, so the content of a sound page is what
//! was written there, whatever happened to the rest of the file. If the directory is lost as well, the tags in front of
//! the items tell to which keyspace they belong: a tag is eight bits of the hash of the key under the keyspace's secret
//! hash key.

use std::sync::Arc;

use alluvium_base::{KeyHash, KeyHasher, KeyspaceId, TableId};
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};

use crate::error::{Error, Result};
use crate::frame::{FILE_HEADER_BYTES, Identity, decode_header};
use crate::item::EncodedItem;
use crate::page::{Layout, PAGE_BYTES, Page, page_seed, page_tag};
use crate::section::Section;

/// Pages per read.
const READ_PAGES: u64 = 256;
/// Number of retries of a failed read before its page counts as lost.
const READ_RETRIES: usize = 2;

/// Counts of the pages of a section or a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SalvagedPages {
    /// Pages whose items were returned.
    pub sound: u64,
    /// Pages that fail their check or cannot be read.
    pub lost: u64,
    /// Items returned.
    pub items: u64,
}

/// An item of a salvaged page.
#[derive(Clone, Copy, Debug)]
pub struct SalvagedItem<'a> {
    /// Its keyspace.
    pub keyspace: KeyspaceId,
    /// The layout of its section.
    pub layout: Layout,
    /// The hash of its key.
    pub hash: KeyHash,
    /// The item.
    pub item: EncodedItem<'a>,
}

impl Section {
    /// Calls `visit` with the items of all sound pages.
    pub fn salvage(&self, mut visit: impl FnMut(SalvagedItem<'_>)) -> SalvagedPages {
        let mut pages = SalvagedPages::default();
        let range = self.range();
        let first = self.page_offset(0) / PAGE_BYTES as u64;
        let mut begun = None;
        for_each_page(&**self.file(), first, u64::from(self.page_count()), |number, bytes| {
            let page = bytes.and_then(|bytes| self.check_page((number - first) as u32, bytes).ok());
            let owner = Owner { keyspace: self.keyspace(), layout: self.layout(), hasher: self.hasher() };
            let found = page.and_then(|page| Some((page, items_of(&page, owner)?)));
            let Some((page, items)) = found else {
                pages.lost += 1;
                begun = None;
                return;
            };
            pages.sound += 1;
            if let Some(joined) = begun.take().and_then(|begun: Begun| begun.joined(number, &page)) {
                pages.items += 1;
                let item = joined.item().filter(|item| range.contains(item.hash.0));
                item.into_iter().for_each(&mut visit);
            }
            begun = Begun::on(number, &page, owner);
            pages.items += items.len() as u64;
            items.iter().filter(|item| range.contains(item.hash.0)).for_each(|item| visit(*item));
        });
        pages
    }

    /// Calls `visit` for each page with the hashes of the items that begin there, and whether the last of them
    /// continues in the next page. Returns whether all pages are sound; damaged ones are skipped.
    pub(super) fn salvage_hashes(&self, mut visit: impl FnMut(&[KeyHash], bool)) -> bool {
        let owner = Owner { keyspace: self.keyspace(), layout: self.layout(), hasher: self.hasher() };
        let first = self.page_offset(0) / PAGE_BYTES as u64;
        let mut waiting: Option<(Vec<KeyHash>, Begun)> = None;
        let mut is_sound = true;
        for_each_page(&**self.file(), first, u64::from(self.page_count()), |number, bytes| {
            let page = bytes.and_then(|bytes| self.check_page((number - first) as u32, bytes).ok());
            let Some((page, items)) = page.and_then(|page| Some((page, items_of(&page, owner)?))) else {
                is_sound = false;
                return;
            };
            if let Some((mut hashes, begun)) = waiting.take() {
                let joined = begun.joined(number, &page).and_then(|begun| Some(begun.item()?.hash));
                is_sound &= joined.is_some();
                hashes.extend(joined);
                visit(&hashes, true);
            }
            let hashes: Vec<KeyHash> = items.iter().map(|item| item.hash).collect();
            match Begun::on(number, &page, owner) {
                Some(begun) => waiting = Some((hashes, begun)),
                None => visit(&hashes, false),
            }
        });
        is_sound && waiting.is_none()
    }

    /// Whether all pages are zeros: their space was given back, since nothing in it counts any more.
    pub fn is_given_back(&self) -> bool {
        let mut zeros = self.page_count() > 0;
        let first = self.page_offset(0) / PAGE_BYTES as u64;
        for_each_page(&**self.file(), first, u64::from(self.page_count()), |_, bytes| {
            zeros &= bytes.is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0));
        });
        zeros
    }
}

/// Calls `visit` with the items of all sound pages of the table file `name`, whose directory cannot be read.
/// `keyspaces` are those whose items it may contain. Counts lost pages only up to the last sound one: indexes and
/// directory follow it.
///
/// # Errors
/// [`Error::Io`] if the file cannot be opened.
pub fn salvage_file(
    storage: &dyn Storage,
    name: &str,
    file_number: TableId,
    keyspaces: &[(KeyspaceId, KeyHasher)],
    mut visit: impl FnMut(SalvagedItem<'_>),
) -> Result<SalvagedPages> {
    let file: Arc<dyn File> = storage.open(name, OpenMode::Read).map_err(Error::io("open", name))?;
    let len = file.len().map_err(Error::io("read the length of", name))?;
    let seed = Identity::new(file_number).seed;
    let mut pages = SalvagedPages::default();
    let mut unsound = 0;
    // Pages of a section are contiguous, so a page that fits several keyspaces belongs to that of the page before.
    let mut last_owner: Option<Owner> = None;
    let mut begun: Option<Begun> = None;
    for_each_page(&*file, 1, (len / PAGE_BYTES as u64).saturating_sub(1), |number, bytes| {
        let Some(bytes) = bytes else {
            unsound += 1;
            return;
        };
        let check = |layout| Page::check(bytes, page_seed(seed, number), layout).ok();
        if check(Layout::Names).is_some() {
            // Names of prefixes are not items: they are derived from the items again.
            begun = None;
            return;
        }
        let layouts = [Layout::Hash, Layout::Sorted, Layout::Bucketed].into_iter();
        let page = layouts.filter_map(|layout| Some((layout, check(layout)?))).next();
        let owned = page.and_then(|(layout, page)| {
            let owners = keyspaces.iter().map(|&(keyspace, hasher)| Owner { keyspace, layout, hasher });
            let fits = |owner: Owner| Some((owner, page, items_of(&page, owner)?));
            let owners: Vec<_> = owners.filter_map(fits).collect();
            let continued = owners.iter().position(|(owner, ..)| Some(*owner) == last_owner);
            match owners.len() {
                0 => None,
                1 => owners.into_iter().next(),
                _ => owners.into_iter().nth(continued?),
            }
        });
        let Some((owner, page, items)) = owned else {
            unsound += u64::from(bytes.iter().any(|&byte| byte != 0));
            begun = None;
            return;
        };
        last_owner = Some(owner);
        if let Some(joined) = begun.take().and_then(|begun: Begun| begun.joined(number, &page)) {
            pages.items += 1;
            joined.item().into_iter().for_each(&mut visit);
        }
        begun = Begun::on(number, &page, owner);
        pages.lost += std::mem::take(&mut unsound);
        pages.sound += 1;
        pages.items += items.len() as u64;
        items.iter().for_each(|item| visit(*item));
    });
    Ok(pages)
}

/// Whether a table whose trailer names another major version really has one, which its header then names too. Otherwise
/// the trailer is damaged.
pub fn is_of_other_version(storage: &dyn Storage, name: &str) -> bool {
    let mut header = [0; FILE_HEADER_BYTES];
    let read = storage.open(name, OpenMode::Read).and_then(|file| file.read_at(&mut header, 0));
    let is_other = |error: &Error| matches!(error, Error::NewerFormat { .. } | Error::OlderFormat { .. });
    read.is_ok() && decode_header(&header, name).is_err_and(|error| is_other(&error))
}

/// The keyspace, layout and hasher of the items on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    keyspace: KeyspaceId,
    layout: Layout,
    hasher: KeyHasher,
}

impl Owner {
    /// The item, if the tag belongs to its key in this keyspace.
    fn own<'a>(&self, tag: u8, item: EncodedItem<'a>) -> Option<SalvagedItem<'a>> {
        let Self { keyspace, layout, hasher } = *self;
        let hash = hasher.hash(item.item.key);
        (page_tag(hash) == tag).then_some(SalvagedItem { keyspace, layout, hash, item })
    }
}

/// The items of a page, if it has any and every tag belongs to its item's key.
fn items_of<'a>(page: &Page<'a>, owner: Owner) -> Option<Vec<SalvagedItem<'a>>> {
    let items = page.encoded_items().ok()?;
    let salvaged: Option<Vec<_>> = items.into_iter().map(|(tag, item)| owner.own(tag, item)).collect();
    // A bucket may be empty.
    let may_be_empty = !page.carried().is_empty() || owner.layout == Layout::Bucketed;
    salvaged.filter(|items| !items.is_empty() || may_be_empty)
}

/// The known part of an item that continues in the next page.
struct Begun {
    owner: Owner,
    tag: u8,
    bytes: Vec<u8>,
    /// The page in which it continues.
    next_page: u64,
}

impl Begun {
    /// The item at the end of the page with the number `number`.
    fn on(number: u64, page: &Page<'_>, owner: Owner) -> Option<Self> {
        let (tag, bytes) = page.begun().ok()??;
        Some(Self { owner, tag, bytes: bytes.to_vec(), next_page: number + 1 })
    }

    /// The whole item, if the page with the number `number` has the rest.
    fn joined(mut self, number: u64, page: &Page<'_>) -> Option<Self> {
        self.bytes.extend_from_slice(page.carried());
        (self.next_page == number && self.item().is_some()).then_some(self)
    }

    /// The item, once it is complete.
    fn item(&self) -> Option<SalvagedItem<'_>> {
        let item = EncodedItem::decode(&self.bytes).filter(|item| item.bytes.len() == self.bytes.len())?;
        self.owner.own(self.tag, item)
    }
}

/// Calls `visit` with the number and the bytes of each of `count` pages from `first` on, or `None` for pages that
/// cannot be read.
fn for_each_page(file: &dyn File, first: u64, count: u64, mut visit: impl FnMut(u64, Option<&[u8]>)) {
    let mut buffer = AlignedBuffer::new();
    let end = first.saturating_add(count);
    let mut number = first;
    while number < end {
        let wanted = READ_PAGES.min(end - number);
        buffer.resize_unspecified(wanted as usize * PAGE_BYTES);
        match read_pages(file, &mut buffer, number) {
            Some(pages) => {
                buffer.chunks_exact(PAGE_BYTES).take(pages).zip(number..).for_each(|(bytes, number)| {
                    visit(number, Some(bytes));
                });
                // Pages after the end of a truncated file.
                (number + pages as u64..number + wanted).for_each(|number| visit(number, None));
            }
            // One bad sector fails the whole read: find the pages around it.
            None => {
                for number in number..number + wanted {
                    buffer.resize_unspecified(PAGE_BYTES);
                    let sound = read_pages(file, &mut buffer, number) == Some(1);
                    visit(number, sound.then_some(&buffer[..]));
                }
            }
        }
        number += wanted;
    }
}

/// Reads pages into `buffer` from page `number` on. Returns the number of whole pages, or `None` if all retries fail.
fn read_pages(file: &dyn File, buffer: &mut [u8], number: u64) -> Option<usize> {
    let offset = number.checked_mul(PAGE_BYTES as u64)?;
    (0..=READ_RETRIES).find_map(|_| file.read_at(buffer, offset).ok()).map(|read| read / PAGE_BYTES)
}
