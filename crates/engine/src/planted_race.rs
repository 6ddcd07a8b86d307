//! [`PlantedRace`]: races that can be planted in the engine, to show that the threaded simulation detects them.

/// A race that can be planted in the engine. Each variant names the step that the code omits.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // `name` says it
pub enum PlantedRace {
    ClearWithoutEpoch,
    IngestWithoutEpoch,
    IngestWithoutBarrier,
    UpdateWithoutWitness,
    TransactionWithoutGuards,
    RelocateWithoutWitness,
    FindBeforeLock,
    BatchLocksOneAtATime,
    FreezeWithoutShards,
    SnapshotWithoutShards,
    ConvertTwiceAtOnce,
    MergeTwiceAtOnce,
    PublishBeforeManifest,
    ReaderWithoutPin,
    CollectBesideWriters,
    BlobFilesWithoutLock,
    FollowerTrustsLeader,
    RowsWithoutEra,
    RowsLeftBehind,
    GroupsBesideLog,
    HoldWhatIsGone,
    DropWithoutSync,
    DropFromSnapshots,
    DropBesideSnapshots,
}

impl PlantedRace {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::ClearWithoutEpoch,
        Self::IngestWithoutEpoch,
        Self::IngestWithoutBarrier,
        Self::UpdateWithoutWitness,
        Self::TransactionWithoutGuards,
        Self::RelocateWithoutWitness,
        Self::FindBeforeLock,
        Self::BatchLocksOneAtATime,
        Self::FreezeWithoutShards,
        Self::SnapshotWithoutShards,
        Self::ConvertTwiceAtOnce,
        Self::MergeTwiceAtOnce,
        Self::PublishBeforeManifest,
        Self::ReaderWithoutPin,
        Self::CollectBesideWriters,
        Self::BlobFilesWithoutLock,
        Self::FollowerTrustsLeader,
        Self::RowsWithoutEra,
        Self::RowsLeftBehind,
        Self::GroupsBesideLog,
        Self::HoldWhatIsGone,
        Self::DropWithoutSync,
        Self::DropFromSnapshots,
        Self::DropBesideSnapshots,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClearWithoutEpoch => "clear-without-epoch",
            Self::IngestWithoutEpoch => "ingest-without-epoch",
            Self::IngestWithoutBarrier => "ingest-without-barrier",
            Self::UpdateWithoutWitness => "update-without-witness",
            Self::TransactionWithoutGuards => "transaction-without-guards",
            Self::RelocateWithoutWitness => "relocate-without-witness",
            Self::FindBeforeLock => "find-before-lock",
            Self::BatchLocksOneAtATime => "batch-locks-one-at-a-time",
            Self::FreezeWithoutShards => "freeze-without-shards",
            Self::SnapshotWithoutShards => "snapshot-without-shards",
            Self::ConvertTwiceAtOnce => "convert-twice-at-once",
            Self::MergeTwiceAtOnce => "merge-twice-at-once",
            Self::PublishBeforeManifest => "publish-before-manifest",
            Self::ReaderWithoutPin => "reader-without-pin",
            Self::CollectBesideWriters => "collect-beside-writers",
            Self::BlobFilesWithoutLock => "blob-files-without-lock",
            Self::FollowerTrustsLeader => "follower-trusts-leader",
            Self::RowsWithoutEra => "rows-without-era",
            Self::RowsLeftBehind => "rows-left-behind",
            Self::GroupsBesideLog => "groups-beside-log",
            Self::HoldWhatIsGone => "hold-what-is-gone",
            Self::DropWithoutSync => "drop-without-sync",
            Self::DropFromSnapshots => "drop-from-snapshots",
            Self::DropBesideSnapshots => "drop-beside-snapshots",
        }
    }
}
