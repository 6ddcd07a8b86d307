"""Spark builds two versions in shards, with failures that it retries, and a server swaps them under running gets.

    python crates/python/examples/spark_build.py --alluvium target/release/alluvium --rows 10000000

The package must be installed with its extra "spark". The first attempts of two tasks of each build fail in the middle:
one raises an exception, the other one is killed. All answers are checked; the last line is the verdict.
"""

import os
import signal
import sys
import tempfile

from alluvium_db import spark as alluvium_spark
from pyspark import TaskContext
from pyspark.sql import SparkSession, functions
from serving import Show, say

#: Rows after which the first attempt of a task fails.
FAILS_AFTER_ROWS = 1000


def failing_once(marks):
    """A function that passes batches on, but fails in the first attempts of two tasks, and leaves a file for each."""

    def pass_on(batches):
        context, rows = TaskContext.get(), 0
        for batch in batches:
            yield batch
            rows += batch.num_rows
            if context.attemptNumber() == 0 and rows >= FAILS_AFTER_ROWS and context.partitionId() in (1, 2):
                open(os.path.join(marks, str(context.partitionId())), "w").close()
                if context.partitionId() == 1:
                    raise RuntimeError("injected failure")
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_on


def table(spark, rows, version):
    """The items of a version: see ``serving``."""
    digits = functions.col("id").cast("string").cast("binary")
    value = functions.concat(
        functions.lit(b"v%03d" % version),
        functions.unhex(functions.lpad(functions.hex("id"), 16, "0")),
        functions.unhex(functions.sha2(digits, 512)),
        functions.unhex(functions.substring(functions.sha2(digits, 256), 1, 48)),
    )
    numbers = spark.range(0, rows, 1, 16)
    return numbers.select(functions.unhex(functions.md5(digits)).alias("key"), value.alias("value"))


def checksum(df):
    """The number of rows and the sum of their hashes."""
    total = functions.sum(functions.xxhash64("key", "value").cast("decimal(38,0)"))
    return df.agg(functions.count("*"), total).first()


def main():
    """Runs the show."""
    show = Show(__doc__)
    # Otherwise workers are run by the first Python that is found.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    session = SparkSession.builder.master("local[2,4]").appName("alluvium").config("spark.ui.enabled", "false")
    session = session.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    session = session.config("spark.ui.showConsoleProgress", "false")
    spark = session.config("spark.driver.memory", "3g").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(alluvium_spark.AlluviumDataSource)
    say(f"Spark {spark.version}, {show.options.rows:,} rows, {show.options.shards} shards")
    job = {"shards": show.options.shards, "hash_key": show.hash_key}

    def build(version):
        placed = alluvium_spark.by_shard(table(spark, show.options.rows, version), **job)
        with tempfile.TemporaryDirectory() as marks:
            failing = placed.mapInArrow(failing_once(marks), placed.schema)
            failing.write.format("alluvium").options(**job).mode("overwrite").save(show.root)
            show.check(sorted(os.listdir(marks)) == ["1", "2"], "a task raised, another was killed; both were retried")

    def read():
        found = checksum(spark.read.format("alluvium").load(show.root))
        show.check(found == checksum(table(spark, show.options.rows, 2)), "read by Spark, the same as written")

    status = show.run(build, read)
    spark.stop()
    return status


if __name__ == "__main__":
    sys.exit(main())
