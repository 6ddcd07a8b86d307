/// The sources of libraries of functions, each with its name in front.
pub type NamedSources = Vec<(Vec<u8>, Vec<u8>)>;

/// What happens to a library of functions.
#[derive(Clone, Copy, Debug)]
pub struct LibraryChange<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its new source, `None` if it is removed.
    pub source: Option<&'a [u8]>,
}
