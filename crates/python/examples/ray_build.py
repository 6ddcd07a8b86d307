"""Ray builds two versions in shards, with a worker that is killed, and a server swaps them under running gets.

    python crates/python/examples/ray_build.py --alluvium target/release/alluvium --rows 10000000

The package must be installed with its extra "ray". The first attempt of one shard of each build writes half of it, and
is then killed. All answers are checked; the last line is the verdict.
"""

import functools
import os
import pathlib
import signal
import sys
import tempfile

import pyarrow as pa
import ray
from alluvium_db import bulk
from alluvium_db import ray as alluvium_ray
from serving import Show, items, say

#: Rows of a block that a task makes.
BLOCK_ROWS = 100_000


def make(numbers: pa.Table, version: int) -> pa.Table:
    """The items of some numbers."""
    return items(numbers.column("id").to_pylist(), version)


def write_or_die(table: pa.Table, building: bulk.Building, marker: str) -> pa.Table:
    """Writes a group; but the first time that it is shard 1, writes half of it, and kills its process."""
    if building.job.shard_of(table.column("key")[0].as_py()) == 1:
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            building.write([table.slice(0, len(table) // 2)])
            os.kill(os.getpid(), signal.SIGKILL)
    return alluvium_ray.write_shard(table, building)


def main():
    """Runs the show."""
    show = Show(__doc__)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    python_path = str(pathlib.Path(__file__).parent)
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        object_store_memory=4 << 30,
        runtime_env={"env_vars": {"PYTHONPATH": python_path}},
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
    say(f"Ray {ray.__version__}, {show.options.rows:,} rows, {show.options.shards} shards")

    def build(version):
        building = bulk.Building.start(show.root, shards=show.options.shards, hash_key=show.hash_key)
        try:
            numbers = ray.data.range(show.options.rows, override_num_blocks=max(1, show.options.rows // BLOCK_ROWS))
            table = numbers.map_batches(
                functools.partial(make, version=version), batch_format="pyarrow", batch_size=BLOCK_ROWS
            )
            marker = os.path.join(tempfile.mkdtemp(), "killed")
            task = functools.partial(write_or_die, building=building, marker=marker)
            results = alluvium_ray.by_shard(table, building.job).map_groups(task, batch_format="pyarrow").take_all()
            show.check(os.path.exists(marker), "a worker was killed, and its task was started anew")
            building.commit(alluvium_ray.written(results))
        except BaseException:
            building.abort()
            raise

    status = show.run(build)
    ray.shutdown()
    return status


if __name__ == "__main__":
    sys.exit(main())
