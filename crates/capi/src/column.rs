//! Many keys or values in one argument, and many values in one result.

use std::ffi::c_void;

use crate::allocation::Allocation;
use crate::failure::Failure;
use crate::many::alluvium_values;
use crate::raw::Given;

impl Given {
    /// The parts of `bytes` from each of `count` + 1 offsets to the next.
    pub fn flat(
        &self,
        count: usize,
        bytes: *const c_void,
        offsets: *const u64,
        name: &str,
    ) -> Result<Vec<&[u8]>, Failure> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let wrong = || Failure::argument(&format!("the offsets of {name} do not ascend, or are too large"));
        let offsets = self.slice(offsets, count.checked_add(1).ok_or_else(wrong)?, name)?;
        let end = usize::try_from(offsets[count]).map_err(|_| wrong())?;
        if offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(wrong());
        }
        let bytes = self.bytes(bytes, end, name)?;
        // They ascend to the length of `bytes`, so all of them fit.
        Ok(offsets.windows(2).map(|pair| &bytes[pair[0] as usize..pair[1] as usize]).collect())
    }

    /// The bytes at each of `count` addresses.
    pub fn pointed(
        &self,
        count: usize,
        starts: *const *const c_void,
        lens: *const usize,
        name: &str,
    ) -> Result<Vec<&[u8]>, Failure> {
        let (starts, lens) = (self.slice(starts, count, name)?, self.slice(lens, count, name)?);
        starts.iter().zip(lens).map(|(&start, &len)| self.bytes(start, len, name)).collect()
    }
}

/// Adds the offsets of parts to memory, and returns their address.
pub fn push_offsets(memory: &mut Allocation, lens: impl Iterator<Item = usize>) -> *const u64 {
    let mut offset = 0_u64;
    let start = memory.push(&offset.to_ne_bytes());
    for len in lens {
        offset += len as u64;
        memory.push(&offset.to_ne_bytes());
    }
    start.cast()
}

impl alluvium_values {
    /// Values in one block of memory: offsets, presence, bytes.
    pub(crate) fn of(values: &[Option<Vec<u8>>]) -> Result<Self, Failure> {
        let lens = || values.iter().map(|value| value.as_ref().map_or(0, Vec::len));
        let count = values.len();
        let mut memory = Allocation::new((count + 1) * size_of::<u64>() + count + lens().sum::<usize>())?;
        let offsets = push_offsets(&mut memory, lens());
        let presence = memory.push(&values.iter().map(|value| value.is_some().into()).collect::<Vec<u8>>());
        let bytes = memory.push(&[]);
        for value in values.iter().flatten() {
            memory.push(value);
        }
        memory.give();
        Ok(Self { count, offsets, presence, bytes: bytes.cast() })
    }
}
