//! Random operations on a cache.

use proptest::prelude::*;

/// An operation; numbers of keys, lengths of values, flags, milliseconds.
#[derive(Clone, Debug)]
pub enum Operation {
    Set(u16, usize),
    SetWith(u16, usize, u32, Option<u16>),
    Get(u16),
    GetMany(Vec<u16>),
    SetMany(Vec<(u16, usize)>),
    Remove(u16),
    Add(u16, usize),
    Replace(u16, usize),
    Swap(u16, u16),
    IfUnchanged(u16, usize),
    Increment(u16, i64),
    Touch(u16, Option<u16>),
    Wait(u16),
    Sweep,
    Resize(usize),
    Clear,
}

/// Operations on items of up to 5000 bytes.
pub fn operations() -> impl Strategy<Value = Vec<Operation>> {
    // A few keys often, many rarely.
    let key = prop_oneof![0_u16..8, 0_u16..600];
    let len = prop_oneof![Just(8_usize), 0_usize..40, 0_usize..1200, 4000_usize..5000];
    operations_on(key.boxed(), len.boxed(), 100..300)
}

/// Operations on items most of which fit in cells for values of `len` bytes.
pub fn operations_in_cells(len: usize) -> impl Strategy<Value = Vec<Operation>> {
    let key = prop_oneof![0_u16..8, 0_u16..5000];
    let len = prop_oneof![8 => 0..=len, 1 => 0..len + 12, 1 => 0_usize..200];
    operations_on(key.boxed(), len.boxed(), 100..140)
}

/// Operations on items that go to the compressed zone and come back.
pub fn operations_in_zone() -> impl Strategy<Value = Vec<Operation>> {
    let key = prop_oneof![1 => 0_u16..8, 4 => 0_u16..900];
    let len = prop_oneof![2 => 0_usize..100, 4 => 0_usize..1200, 1 => 3000_usize..5000];
    operations_on(key.boxed(), len.boxed(), 530..900)
}

fn operations_on(
    key: BoxedStrategy<u16>,
    len: BoxedStrategy<usize>,
    kibibytes: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<Operation>> {
    use Operation::*;
    let time = proptest::option::of(0_u16..1000);
    let one = prop_oneof![
        12 => (key.clone(), len.clone()).prop_map(|(key, len)| Set(key, len)),
        4 => (key.clone(), len.clone(), 0_u32..3, time.clone()).prop_map(|(k, l, f, t)| SetWith(k, l, f, t)),
        10 => key.clone().prop_map(Get),
        2 => proptest::collection::vec(key.clone(), 0..70).prop_map(GetMany),
        3 => proptest::collection::vec((key.clone(), len.clone()), 0..70).prop_map(SetMany),
        3 => key.clone().prop_map(Remove),
        1 => (key.clone(), len.clone()).prop_map(|(key, len)| Add(key, len)),
        1 => (key.clone(), len.clone()).prop_map(|(key, len)| Replace(key, len)),
        1 => (key.clone(), key.clone()).prop_map(|(key, other)| Swap(key, other)),
        1 => (key.clone(), len).prop_map(|(key, len)| IfUnchanged(key, len)),
        2 => (key.clone(), -5_i64..500).prop_map(|(key, by)| Increment(key, by)),
        1 => (key, time).prop_map(|(key, time)| Touch(key, time)),
        2 => (0_u16..300).prop_map(Wait),
        1 => Just(Sweep),
        1 => kibibytes.prop_map(Resize),
        1 => Just(Clear),
    ];
    proptest::collection::vec(one, 1..400)
}
