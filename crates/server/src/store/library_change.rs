/// What happens to a library of functions.
#[derive(Clone, Copy, Debug)]
pub struct LibraryChange<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its new source, `None` if it is removed.
    pub source: Option<&'a [u8]>,
}
