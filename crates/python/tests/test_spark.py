"""The data source for Spark. Runs where PySpark is installed: ``cargo xtask python --connectors``."""

import os
import shutil
import signal
import sys

import pytest

import alluvium_db

pytest.importorskip("pyspark", minversion="4.0")
pytest.importorskip("pyarrow")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java", allow_module_level=True)

from pyspark import TaskContext  # noqa: E402
from pyspark.sql import SparkSession, functions  # noqa: E402

from alluvium_db import bulk  # noqa: E402
from alluvium_db import spark as alluvium_spark  # noqa: E402

HASH_KEY = "000102030405060708090a0b0c0d0e0f"
JOB = {"shards": 8, "hash_key": HASH_KEY}
ROWS = 10_000


@pytest.fixture(scope="module")
def spark():
    # Otherwise workers are run by the first Python that is found.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    session = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    session.dataSource.register(alluvium_spark.AlluviumDataSource)
    yield session
    session.stop()


def table(spark, rows=ROWS, text="value"):
    key = functions.concat(functions.lit("key"), functions.col("id"))
    return spark.range(0, rows, 1, 6).select(
        key.alias("key"), functions.concat(functions.lit(text), "id").cast("binary").alias("value")
    )


def expected(rows=ROWS, text="value"):
    return {b"key%d" % n: b"%s%d" % (text.encode(), n) for n in range(rows)}


def save(df, root, mode="overwrite", **options):
    df.write.format("alluvium").options(**JOB | options).mode(mode).save(str(root))


def content(path):
    with alluvium_db.open(path, read_only=True) as db:
        return dict(db.items())


def fails(text):
    return pytest.raises(Exception, match=text)


def left(root):
    return sorted(name for name in os.listdir(root) if not name.isdigit())


def test_failed_tasks_are_retried_and_rows_are_read_back(spark, tmp_path):
    def failing_once(batches):
        context, rows = TaskContext.get(), 0
        for batch in batches:
            yield batch
            rows += batch.num_rows
            if context.attemptNumber() == 0 and rows > 600:
                if context.partitionId() == 1:
                    raise RuntimeError("injected")
                if context.partitionId() == 2:
                    os.kill(os.getpid(), signal.SIGKILL)

    placed = alluvium_spark.by_shard(table(spark), **JOB)
    save(placed.mapInArrow(failing_once, placed.schema), tmp_path, job="nightly", checksums="true")
    found = alluvium_db.versions(tmp_path)
    assert [version["number"] for version in found] == [1] and left(tmp_path) == []
    assert (found[0]["job"], found[0]["items"], found[0]["shards"]) == ("nightly", ROWS, 8)
    assert len([name for name in os.listdir(tmp_path / "0001") if name.startswith("shard-")]) == 8
    assert content(tmp_path / "0001") == expected()

    read = spark.read.format("alluvium").load(str(tmp_path))
    assert read.schema.simpleString() == "struct<key:binary,value:binary>"
    assert {bytes(row.key): bytes(row.value) for row in read.collect()} == expected()
    assert read.rdd.getNumPartitions() == 8
    save(alluvium_spark.by_shard(table(spark, 10, "new"), **JOB), tmp_path)
    options = {"decode": "true", "key": "id", "value": "text"}
    read = spark.read.format("alluvium").options(**options).load(str(tmp_path))
    assert {row.id: row.text for row in read.collect()} == {f"key{n}": f"new{n}" for n in range(10)}
    assert read.filter("id = 'key7'").select("text").first().text == "new7"
    assert spark.read.format("alluvium").option("version", 1).load(str(tmp_path)).count() == ROWS
    assert spark.read.format("alluvium").load(str(tmp_path / "0001")).count() == ROWS
    named = spark.read.format("alluvium").schema("value string").load(str(tmp_path))
    assert sorted(row.value for row in named.collect()) == sorted(f"new{n}" for n in range(10))


def test_a_job_that_fails_leaves_nothing(spark, tmp_path):
    def failing(batches):
        for batch in batches:
            yield batch
            if TaskContext.get().partitionId() == 3:
                raise RuntimeError("injected")

    placed = alluvium_spark.by_shard(table(spark), **JOB)
    with fails("injected"):
        save(placed.mapInArrow(failing, placed.schema), tmp_path)
    assert os.listdir(tmp_path) == []
    save(placed, tmp_path)
    assert content(tmp_path / "0001") == expected()


def test_rows_that_are_not_placed_are_refused(spark, tmp_path):
    with fails("all rows of a shard must be placed in one task"):
        save(table(spark), tmp_path)
    with fails("all rows of a shard must be placed in one task"):
        save(alluvium_spark.by_shard(table(spark), shards=8, hash_key="f" * 32), tmp_path)
    with fails("all rows of a shard must be placed in one task"):
        save(alluvium_spark.by_shard(table(spark), shards=7, hash_key=HASH_KEY), tmp_path)
    assert os.listdir(tmp_path) == []
    # Several whole shards in a task are in order.
    save(table(spark).coalesce(1), tmp_path)
    save(alluvium_spark.by_shard(table(spark), **JOB).coalesce(3), tmp_path)
    assert content(tmp_path / "0002") == expected()


def test_modes_and_options(spark, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(f"{HASH_KEY}\n")
    root = tmp_path / "versions"
    options = {"shards": 8, "hash_key_file": str(secret), "keyspace": "other", "key": "id", "value": "text"}
    placed = alluvium_spark.by_shard(table(spark, 100).toDF("id", "text"), **options)
    placed.write.format("alluvium").options(**options).mode("append").save(str(root))
    assert spark.read.format("alluvium").load(str(root)).count() == 100
    with fails("rows are not added to it"):
        placed.write.format("alluvium").options(**options).mode("append").save(str(root))
    with fails("fingerprint|hash_key"):
        save(table(spark, 10), root, keyspace="other", hash_key="f" * 32)
    with fails("shard_count: expected 8, found 4"):
        save(table(spark, 10), root, keyspace="other", shards=4)
    for df, text in (
        (table(spark, 10).withColumn("more", functions.lit(1)), "give two columns"),
        (table(spark, 10).select("key"), "give two columns"),
        (spark.range(10).selectExpr("id as key", "id as value"), "of type binary or string"),
    ):
        with fails(text):
            save(df, root, keyspace="other")
    with fails("give the option shards"):
        table(spark, 10).write.format("alluvium").mode("append").save(str(tmp_path / "x"))
    with fails("hash_key"):
        table(spark, 10).write.format("alluvium").option("shards", 1).mode("append").save(str(tmp_path / "x"))
    with pytest.raises(TypeError, match="no option 'shard'"):
        alluvium_spark.by_shard(table(spark, 10), shard=3, **JOB)
    with fails("No such file"):
        spark.read.format("alluvium").load(str(tmp_path / "x")).count()
    assert left(root) == [] and len(alluvium_db.versions(root)) == 1


def test_null_empty_and_repeated_rows(spark, tmp_path):
    nulls = spark.createDataFrame([("a", "1"), (None, "2")], "key string, value string")
    with fails("must not be null"):
        save(nulls, tmp_path)
    with fails("must not be null"):
        save(alluvium_spark.by_shard(nulls, **JOB), tmp_path)
    with fails("must not be null"):
        save(nulls.selectExpr("'a' as key", "nullif(value, '2') as value"), tmp_path)
    assert os.listdir(tmp_path) == []
    save(alluvium_spark.by_shard(nulls.limit(0), **JOB), tmp_path)
    assert content(tmp_path / "0001") == {} and spark.read.format("alluvium").load(str(tmp_path)).count() == 0
    # The row with the greatest number counts.
    repeated = spark.range(0, ROWS, 1, 6).selectExpr("concat('key', id % 10) as key", "string(id) as value", "id")
    placed = alluvium_spark.by_shard(repeated, order_by="id", **JOB).drop("id")
    save(placed, tmp_path)
    assert content(tmp_path / "0002") == {b"key%d" % n: b"%d" % (ROWS - 10 + n) for n in range(10)}


def test_rows_one_by_one(spark, tmp_path):
    # As Spark 4.0 gives them.
    building = bulk.Building.start(tmp_path, **JOB)
    writer = alluvium_spark._RowWriter(building, "key", "value", False)
    message = writer.write(iter(table(spark, 25_000).collect()))
    writer.commit([message, None])
    assert content(tmp_path / "0001") == expected(25_000)
