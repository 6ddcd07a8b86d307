//! The atomics of `std`, with yield points at all operations but relaxed ones, which neither publish nor observe.

pub use std::sync::atomic::{Ordering, fence};

use super::task::yield_point;

fn step(order: Ordering) {
    if order != Ordering::Relaxed {
        yield_point();
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[doc = concat!("See [`std::sync::atomic::", stringify!($name), "`].")]
        #[derive(Debug, Default)]
        pub struct $name(std::sync::atomic::$name);

        impl $name {
            /// See `std`.
            pub const fn new(value: $value) -> Self {
                Self(std::sync::atomic::$name::new(value))
            }

            /// See `std`.
            pub fn load(&self, order: Ordering) -> $value {
                step(order);
                self.0.load(order)
            }

            /// See `std`.
            pub fn store(&self, value: $value, order: Ordering) {
                step(order);
                self.0.store(value, order);
            }

            /// See `std`.
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                step(order);
                self.0.swap(value, order)
            }

            /// See `std`.
            ///
            /// # Errors
            /// The value, when it is not `current`.
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step(success);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// See `std`. Never fails without a reason.
            ///
            /// # Errors
            /// The value, when it is not `current`.
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// See `std`.
            ///
            /// # Errors
            /// The value, when `change` returns `None`.
            pub fn fetch_update(
                &self,
                set: Ordering,
                fetch: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                step(set);
                self.0.fetch_update(set, fetch, change)
            }

            /// See `std`.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// See `std`.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }
        }

        impl From<$value> for $name {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

macro_rules! operations {
    ($name:ident, $value:ty, $($operation:ident),+) => {
        impl $name {
            $(
                /// See `std`.
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    step(order);
                    self.0.$operation(value, order)
                }
            )+
        }
    };
}

macro_rules! integer {
    ($name:ident, $value:ty) => {
        atomic!($name, $value);
        operations!(
            $name, $value, fetch_add, fetch_sub, fetch_max, fetch_min, fetch_and, fetch_or, fetch_xor
        );
    };
}

atomic!(AtomicBool, bool);
operations!(AtomicBool, bool, fetch_and, fetch_or, fetch_xor);
integer!(AtomicU8, u8);
integer!(AtomicU16, u16);
integer!(AtomicU32, u32);
integer!(AtomicU64, u64);
integer!(AtomicUsize, usize);
integer!(AtomicI32, i32);
integer!(AtomicI64, i64);
integer!(AtomicIsize, isize);
