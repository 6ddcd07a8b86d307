//! A dictionary for zstd, digested for both directions, and the contexts of a thread.
//!
//! Frames are kept without their magic number and the dictionary's identifier, which are the same in all of them: of
//! some 12 bytes around a chunk's items 5 or 6 stay.

#[cfg(feature = "zstd")]
pub(crate) use with_zstd::{Coder, Learned};
#[cfg(not(feature = "zstd"))]
pub(crate) use without_zstd::{Coder, Learned};

#[cfg(feature = "zstd")]
mod with_zstd {
    use std::fmt;

    use zstd_safe::{CCtx, CDict, DCtx, DDict};

    /// The level that compresses fastest with a dictionary.
    const LEVEL: i32 = 1;

    const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();

    /// In a frame's descriptor: the identifier has four bytes, and there is no byte for a window.
    const DESCRIPTOR_BITS: u8 = 0b0010_0011;

    /// Of a frame, the magic number and the descriptor, and with the identifier.
    const DESCRIBED_BYTES: usize = 5;
    const HEAD_BYTES: usize = 9;

    /// See the module.
    pub(crate) struct Learned {
        encode: CDict<'static>,
        decode: DDict<'static>,
        identifier: [u8; 4],
    }

    impl fmt::Debug for Learned {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.debug_struct("Learned").field("identifier", &self.identifier).finish_non_exhaustive()
        }
    }

    impl Learned {
        /// A dictionary of up to `bytes_max` bytes that suits the samples, which have these lengths; `None` if they
        /// have too little in common.
        pub fn from_samples(samples: &[u8], sample_lens: &[usize], bytes_max: usize) -> Option<Self> {
            Self::of(&Self::train(samples, sample_lens, bytes_max)?)
        }

        /// The bytes of such a dictionary.
        pub fn train(samples: &[u8], sample_lens: &[usize], bytes_max: usize) -> Option<Vec<u8>> {
            let mut dictionary = vec![0; bytes_max];
            let len = zstd_safe::train_from_buffer(&mut dictionary[..], samples, sample_lens).ok()?;
            dictionary.truncate(len);
            Some(dictionary)
        }

        /// Digests the bytes of a dictionary; `None` if they are none.
        pub fn of(dictionary: &[u8]) -> Option<Self> {
            let identifier = zstd_safe::get_dict_id_from_dict(dictionary)?.get().to_le_bytes();
            let encode = CDict::try_create(dictionary, LEVEL)?;
            Some(Self { encode, decode: DDict::try_create(dictionary)?, identifier })
        }

        /// Bytes that both digests take.
        pub fn bytes(&self) -> usize {
            self.encode.sizeof() + self.decode.sizeof()
        }

        /// Maximum bytes of a dictionary of `dictionary` bytes.
        pub fn bytes_max(dictionary: usize) -> usize {
            DIGEST_BYTES_MAX + 2 * dictionary
        }
    }

    /// What digests take beside the dictionary: tables.
    const DIGEST_BYTES_MAX: usize = 128 << 10;

    /// Contexts, which are made when they are needed first.
    #[derive(Default)]
    pub(crate) struct Coder {
        encode: Option<CCtx<'static>>,
        decode: Option<DCtx<'static>>,
        frame: Vec<u8>,
    }

    impl fmt::Debug for Coder {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.debug_struct("Coder").finish_non_exhaustive()
        }
    }

    impl Coder {
        /// Appends `raw` to `out`, compressed; `None` if that fails, with `out` as before or longer.
        pub fn encode(&mut self, learned: &Learned, raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
            if self.encode.is_none() {
                self.encode = Some(CCtx::try_create()?);
            }
            let context = self.encode.as_mut()?;
            let bound = zstd_safe::compress_bound(raw.len());
            if self.frame.len() < bound {
                self.frame.resize(bound, 0);
            }
            let len = context.compress_using_cdict(&mut self.frame[..], raw, &learned.encode).ok()?;
            let (head, rest) = self.frame[..len].split_at_checked(HEAD_BYTES)?;
            let is_usual = head.starts_with(&MAGIC)
                && head[4] & DESCRIPTOR_BITS == DESCRIPTOR_BITS
                && head[DESCRIBED_BYTES..] == learned.identifier;
            if !is_usual {
                return None;
            }
            out.push(head[4]);
            out.extend_from_slice(rest);
            Some(())
        }

        /// Writes the items that were encoded as `bytes` to `out` from `start` on, and returns where they end; `None`
        /// if they were not encoded, or would be more than `bytes_max`.
        pub fn decode(
            &mut self,
            learned: &Learned,
            bytes: &[u8],
            bytes_max: usize,
            out: &mut Vec<u8>,
            start: usize,
        ) -> Option<usize> {
            if self.decode.is_none() {
                self.decode = Some(DCtx::try_create()?);
            }
            let context = self.decode.as_mut()?;
            let (&descriptor, rest) = bytes.split_first()?;
            self.frame.clear();
            for part in [&MAGIC[..], &[descriptor], &learned.identifier, rest] {
                self.frame.extend_from_slice(part);
            }
            let len = zstd_safe::get_frame_content_size(&self.frame).ok()??;
            let len = usize::try_from(len).ok().filter(|&len| len <= bytes_max)?;
            if out.len() < start + len {
                out.resize(start + len, 0);
            }
            let room = &mut out[start..start + len];
            let written = context.decompress_using_ddict(room, &self.frame, &learned.decode).ok()?;
            (written == len).then_some(start + len)
        }
    }
}

#[cfg(not(feature = "zstd"))]
mod without_zstd {
    /// There are none.
    #[derive(Debug)]
    pub(crate) enum Learned {}

    impl Learned {
        pub fn from_samples(_: &[u8], _: &[usize], _: usize) -> Option<Self> {
            None
        }

        pub fn train(_: &[u8], _: &[usize], _: usize) -> Option<Vec<u8>> {
            None
        }

        pub fn of(_: &[u8]) -> Option<Self> {
            None
        }

        pub fn bytes(&self) -> usize {
            match *self {}
        }

        pub fn bytes_max(_: usize) -> usize {
            0
        }
    }

    /// Codes nothing.
    #[derive(Debug, Default)]
    pub(crate) struct Coder {}

    impl Coder {
        pub fn encode(&mut self, learned: &Learned, _: &[u8], _: &mut Vec<u8>) -> Option<()> {
            match *learned {}
        }

        pub fn decode(
            &mut self,
            learned: &Learned,
            _: &[u8],
            _: usize,
            _: &mut Vec<u8>,
            _: usize,
        ) -> Option<usize> {
            match *learned {}
        }
    }
}
