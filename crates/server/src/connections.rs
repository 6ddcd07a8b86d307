//! The connections of one worker, numbered.

use std::ops::{Index, IndexMut};

use crate::connection::Connection;

/// A table of connections; numbers are reused after a removal.
#[derive(Default)]
pub(crate) struct Connections {
    slots: Vec<Option<Connection>>,
    free: Vec<usize>,
}

impl Connections {
    pub(crate) fn insert(&mut self, connection: Connection) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.slots[number] = Some(connection);
                number
            }
            None => {
                self.slots.push(Some(connection));
                self.slots.len() - 1
            }
        }
    }

    pub(crate) fn remove(&mut self, number: usize) -> Option<Connection> {
        let removed = self.slots.get_mut(number)?.take();
        if removed.is_some() {
            self.free.push(number);
        }
        removed
    }

    pub(crate) fn contains(&self, number: usize) -> bool {
        matches!(self.slots.get(number), Some(Some(_)))
    }

    /// The numbers in use.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.slots.iter().enumerate().filter(|(_, slot)| slot.is_some()).map(|(number, _)| number)
    }
}

impl Index<usize> for Connections {
    type Output = Connection;

    /// # Panics
    /// When the number is not in use: the worker removes connections only between rounds.
    #[inline]
    fn index(&self, number: usize) -> &Connection {
        self.slots[number].as_ref().expect("a connection in use")
    }
}

impl IndexMut<usize> for Connections {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Connection {
        self.slots[number].as_mut().expect("a connection in use")
    }
}
