//! Transactions: the changes of several threads to several keys add up.

use alluvium::{Db, Durability, Error, Keyspace};

const ACCOUNTS: u64 = 20;
const OPENING_BALANCE: u64 = 1_000;

fn balance(value: Option<Vec<u8>>) -> u64 {
    u64::from_le_bytes(value.expect("every account is open").try_into().unwrap())
}

fn open(path: &std::path::Path) -> (Db, Keyspace, Keyspace) {
    let db = Db::builder(path).durability(Durability::Buffered).open().unwrap();
    let [one, other] = ["one", "other"].map(|name| db.keyspace(name).unwrap());
    (db, one, other)
}

#[test]
fn money_is_neither_made_nor_lost_whoever_moves_it() {
    let directory = tempfile::tempdir().unwrap();
    let (db, one, other) = open(directory.path());
    for account in 0..ACCOUNTS {
        let bank = if account.is_multiple_of(2) { &one } else { &other };
        bank.insert(account.to_le_bytes(), OPENING_BALANCE.to_le_bytes()).unwrap();
    }
    let bank_of = |account: u64| if account.is_multiple_of(2) { &one } else { &other };
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let db = &db;
            scope.spawn(move || {
                for step in 0..1_500u64 {
                    let from = (thread * 7 + step * 3) % ACCOUNTS;
                    let to = (from + 1 + step % (ACCOUNTS - 1)) % ACCOUNTS;
                    db.transaction(|transaction| {
                        let source = balance(transaction.get(bank_of(from), from.to_le_bytes())?);
                        let target = balance(transaction.get(bank_of(to), to.to_le_bytes())?);
                        let amount = source.min(step % 50);
                        transaction.insert(
                            bank_of(from),
                            from.to_le_bytes(),
                            (source - amount).to_le_bytes(),
                        );
                        transaction.insert(bank_of(to), to.to_le_bytes(), (target + amount).to_le_bytes());
                        Ok(())
                    })
                    .unwrap();
                }
            });
        }
        scope.spawn(|| {
            // Freezes in between make no difference.
            for _ in 0..20 {
                db.flush().unwrap();
            }
        });
        for _ in 0..50 {
            let total: u64 = db
                .transaction(|transaction| {
                    (0..ACCOUNTS)
                        .map(|account| transaction.get(bank_of(account), account.to_le_bytes()).map(balance))
                        .sum()
                })
                .unwrap();
            assert_eq!(total, ACCOUNTS * OPENING_BALANCE);
        }
    });
}

#[test]
fn a_transaction_sees_what_it_wrote_and_leaves_nothing_when_it_fails() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items, _) = open(directory.path());
    items.insert("kept", "before").unwrap();
    let failed = db.transaction(|transaction| {
        transaction.insert(&items, "new", "value");
        transaction.remove(&items, "kept");
        assert_eq!(transaction.get(&items, "new")?.as_deref(), Some(&b"value"[..]));
        assert_eq!(transaction.get(&items, "kept")?, None);
        Err::<(), _>(Error::Closed)
    });
    assert!(failed.is_err());
    assert_eq!(items.get("new").unwrap(), None);
    assert_eq!(items.get("kept").unwrap().as_deref(), Some(&b"before"[..]));
    let mut runs = 0;
    db.transaction(|transaction| {
        runs += 1;
        let value = transaction.get(&items, "kept")?.expect("it is there");
        if runs == 1 {
            // Another writer is faster, once.
            items.insert("kept", "changed").unwrap();
        }
        transaction.insert(&items, "copy", value);
        Ok(())
    })
    .unwrap();
    assert_eq!((runs, items.get("copy").unwrap()), (2, Some(b"changed".to_vec())));
}

#[test]
fn a_watch_notices_every_write_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items, others) = open(directory.path());
    items.insert("other", "value").unwrap();
    db.flush().unwrap();
    let is_unchanged = |change: &dyn Fn()| {
        items.insert("key", "value").unwrap();
        let watch = items.watch("key").unwrap();
        change();
        db.transaction(|transaction| transaction.is_unchanged(&items, "key", &watch)).unwrap()
    };
    assert!(is_unchanged(&|| {}));
    assert!(is_unchanged(&|| items.insert("other", "changed").unwrap()));
    assert!(is_unchanged(&|| others.insert("key", "changed").unwrap()));
    assert!(!is_unchanged(&|| items.insert("key", "value").unwrap()));
    assert!(!is_unchanged(&|| items.remove("key").unwrap()));
    assert!(!is_unchanged(&|| {
        items.insert("key", "changed").unwrap();
        items.insert("key", "value").unwrap();
    }));
    assert!(!is_unchanged(&|| {
        items.clear().unwrap();
        items.insert("key", "value").unwrap();
    }));
    // An absent key stays absent, whether its keyspace is cleared or not.
    let watch = items.watch("absent").unwrap();
    let remains =
        || db.transaction(|transaction| transaction.is_unchanged(&items, "absent", &watch)).unwrap();
    assert!(remains());
    items.clear().unwrap();
    assert!(remains());
    items.insert("absent", "value").unwrap();
    assert!(!remains());
    // The key of another keyspace is another one, also if neither is in the log.
    items.insert("key", "value").unwrap();
    others.insert("key", "value").unwrap();
    db.flush().unwrap();
    let watches = ["key", "none"].map(|key| items.watch(key).unwrap());
    let is_unchanged = |key: &str, watch| {
        db.transaction(|transaction| transaction.is_unchanged(&others, key, watch)).unwrap()
    };
    assert!(!is_unchanged("key", &watches[0]));
    assert!(is_unchanged("none", &watches[1]));
}

#[test]
fn a_write_after_the_check_of_a_watch_repeats_the_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items, _) = open(directory.path());
    let watch = items.watch("key").unwrap();
    let mut found = Vec::new();
    db.transaction(|transaction| {
        found.push(transaction.is_unchanged(&items, "key", &watch)?);
        if found.len() == 1 {
            items.insert("key", "value").unwrap();
        }
        transaction.insert(&items, "copy", "value");
        Ok(())
    })
    .unwrap();
    assert_eq!(found, [true, false]);
}

#[test]
fn readers_see_all_writes_of_a_batch_or_none_and_no_overwritten_one() {
    const KEYS: u32 = 30;
    let directory = tempfile::tempdir().unwrap();
    let (db, items, _) = open(directory.path());
    let number = |key: u32| {
        let value = items.get(key.to_le_bytes()).unwrap();
        value.map_or(0, |value| u32::from_le_bytes(value.try_into().unwrap()))
    };
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                    let first = number(0);
                    let last = number(KEYS - 1);
                    assert!(first % 2 == 0 && first <= last, "first {first}, then {last}");
                    let both = db.transaction(|transaction| {
                        let keys = [0, KEYS - 1].map(u32::to_le_bytes);
                        transaction.multi_get_short(&items, &keys, 100)
                    });
                    let both = both.unwrap();
                    assert_eq!(both[0], both[1]);
                }
            });
        }
        for round in 1..3_000u32 {
            let mut batch = db.batch();
            for value in [2 * round - 1, 2 * round] {
                (0..KEYS).for_each(|key| batch.insert(&items, key.to_le_bytes(), value.to_le_bytes()));
            }
            batch.commit().unwrap();
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
