//! [`Items`]: what requests do with the items of a store.

use std::time::{SystemTime, UNIX_EPOCH};

use alluvium_protocol::datagram::{Operation, Request, Status};

use crate::changes::Event;
use crate::store::{Attributes, Change, Database, StoreError};

/// The items that requests are about.
pub(crate) struct Items<'a> {
    pub(crate) database: &'a dyn Database,
    /// Notes what has happened to a key, after the write.
    pub(crate) changed: &'a mut dyn FnMut(&[u8], Event),
}

impl Items<'_> {
    /// Does what a request other than a get asks for.
    pub(super) fn execute(&mut self, request: &Request<'_>) -> Status {
        let outcome = match request.operation {
            Operation::Set => self.set(request),
            Operation::Add => self.add(request),
            Operation::Delete => self.delete(request.key),
            Operation::Touch => self.touch(request),
            // A get has a value to return: see `Batch`.
            Operation::Get | Operation::Probe => self.database.contains(request.key).map(present),
        };
        outcome.unwrap_or_else(|error| status_of(&error))
    }

    fn set(&mut self, request: &Request<'_>) -> Result<Status, StoreError> {
        self.database.insert_with(request.key, request.value, attributes(request))?;
        self.inserted(request);
        Ok(Status::Done)
    }

    fn add(&mut self, request: &Request<'_>) -> Result<Status, StoreError> {
        let mut status = Status::Done;
        self.database.update_any(request.key, &mut |found| {
            status = if found.is_some() { Status::Exists } else { Status::Done };
            match found {
                Some(_) => Change::Keep,
                None => Change::InsertWith(request.value.to_vec(), attributes(request)),
            }
        })?;
        if status == Status::Done {
            self.inserted(request);
        }
        Ok(status)
    }

    fn delete(&mut self, key: &[u8]) -> Result<Status, StoreError> {
        let mut is_present = false;
        self.database.update_any(key, &mut |found| {
            is_present = found.is_some();
            Change::Remove
        })?;
        if is_present {
            (self.changed)(key, Event::DEL);
        }
        Ok(present(is_present))
    }

    fn touch(&mut self, request: &Request<'_>) -> Result<Status, StoreError> {
        let expires_at_ms = attributes(request).expires_at_ms;
        let mut is_present = false;
        self.database.update_any(request.key, &mut |found| {
            is_present = found.is_some();
            Change::Expire(expires_at_ms)
        })?;
        if is_present {
            let event = if expires_at_ms.is_some() { Event::EXPIRE } else { Event::PERSIST };
            (self.changed)(request.key, event);
        }
        Ok(present(is_present))
    }

    /// Notes a new value, and the expiry that comes with it, as after `SET` with `EX`.
    fn inserted(&mut self, request: &Request<'_>) {
        (self.changed)(request.key, Event::SET);
        if request.expiry_s > 0 {
            (self.changed)(request.key, Event::EXPIRE);
        }
    }
}

fn present(is_present: bool) -> Status {
    if is_present { Status::Done } else { Status::Absent }
}

/// What is stored with the value of a request.
fn attributes(request: &Request<'_>) -> Attributes {
    let expires_at_ms = (request.expiry_s > 0).then(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (now.as_millis() as u64).saturating_add(u64::from(request.expiry_s) * 1000)
    });
    Attributes { flags: 0, expires_at_ms }
}

#[cold]
fn status_of(error: &StoreError) -> Status {
    match error.downcast_ref::<alluvium_cache::TooLarge>() {
        Some(_) => Status::TooLarge,
        None => Status::Failed,
    }
}
