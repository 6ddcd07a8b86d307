// What applications do with ioredis. Usage: node ioredis.js PORT

import assert from 'node:assert/strict';
import Redis from 'ioredis';

const port = Number(process.argv[2]);
const redis = new Redis({ port });

async function pipelines() {
  const pipeline = redis.pipeline();
  for (let number = 0; number < 1_000; number++) pipeline.set(`key:${number}`, number).incr(`key:${number}`);
  const replies = await pipeline.exec();
  assert.equal(replies.length, 2_000);
  replies.forEach(([error, reply], position) => {
    assert.equal(error, null);
    assert.equal(reply, position % 2 === 0 ? 'OK' : (position - 1) / 2 + 1);
  });
  const automatic = new Redis({ port, enableAutoPipelining: true });
  const values = await Promise.all([1, 2, 3].map((number) => automatic.get(`key:${number}`)));
  assert.deepEqual(values, ['2', '3', '4']);
  automatic.disconnect();
}

async function transactions() {
  const replies = await redis.multi().set('a', '1').incr('a').hset('h', 'f', 'v').exec();
  assert.deepEqual(replies, [[null, 'OK'], [null, 2], [null, 1]]);
  const faulty = await redis.multi().set('t', 'text').incr('t').exec();
  assert.match(faulty[1][0].message, /not an integer/);
  await redis.watch('a');
  const other = new Redis({ port });
  await other.set('a', 'changed');
  assert.equal(await redis.multi().set('a', 'lost').exec(), null);
  assert.equal(await redis.get('a'), 'changed');
  other.disconnect();
}

async function scripts() {
  redis.defineCommand('double', {
    numberOfKeys: 1,
    lua: "local value = redis.call('GET', KEYS[1]) * 2 redis.call('SET', KEYS[1], value) return {value, ARGV[1]}",
  });
  await redis.set('n', 21);
  assert.deepEqual(await redis.double('n', 'argument'), [42, 'argument']);
  // Known to the server, by its digest.
  assert.deepEqual(await redis.pipeline().double('n', 'x').double('n', 'y').exec(), [
    [null, [84, 'x']],
    [null, [168, 'y']],
  ]);
  const digest = await redis.script('LOAD', 'return ARGV[1]');
  assert.equal(await redis.evalsha(digest, 0, 'argument'), 'argument');
  await assert.rejects(redis.evalsha('0'.repeat(40), 0), /NOSCRIPT/);
  assert.deepEqual(await redis.script('EXISTS', digest, '0'.repeat(40)), [1, 0]);
}

async function messages() {
  const subscriber = new Redis({ port });
  await subscriber.subscribe('news');
  await subscriber.psubscribe('n*');
  const found = [];
  const both = new Promise((resolve) => {
    const note = (...words) => found.push(words) === 2 && resolve();
    subscriber.on('message', (channel, text) => note(channel, text));
    subscriber.on('pmessage', (pattern, channel, text) => note(pattern, channel, text));
  });
  assert.equal(await redis.publish('news', 'hello'), 2);
  await both;
  assert.deepEqual(found.sort(), [['n*', 'news', 'hello'], ['news', 'hello']]);
  await subscriber.unsubscribe('news');
  await subscriber.punsubscribe('n*');
  assert.equal(await subscriber.get('key:1'), '2');
  subscriber.disconnect();
}

async function scans() {
  const keys = new Set();
  for await (const page of redis.scanStream({ match: 'key:*', count: 100 })) page.forEach((key) => keys.add(key));
  assert.equal(keys.size, 1_000);
  const fields = Object.fromEntries(Array.from({ length: 700 }, (_, number) => [`f${number}`, `v${number}`]));
  await redis.hset('fields', fields);
  const found = {};
  for await (const page of redis.hscanStream('fields')) {
    for (let at = 0; at < page.length; at += 2) found[page[at]] = page[at + 1];
  }
  assert.deepEqual(found, fields);
  assert.deepEqual(await redis.hgetall('fields'), fields);
  await redis.sadd('members', 1, 2, 3);
  assert.equal(await redis.scard('members'), 3);
}

async function values() {
  const bytes = Buffer.from([0, 255, 13, 10]);
  await redis.set('bytes', bytes, 'EX', 100);
  assert.deepEqual(await redis.getBuffer('bytes'), bytes);
  const seconds = await redis.ttl('bytes');
  assert.ok(seconds > 90 && seconds <= 100);
  assert.equal(await redis.set('bytes', 'x', 'NX'), null);
  const large = 'x'.repeat(5_000_000);
  await redis.set('large', large);
  assert.equal(await redis.get('large'), large);
  await assert.rejects(redis.hget('bytes', 'f'), /WRONGTYPE/);
}

try {
  await redis.flushall();
  for (const part of [pipelines, transactions, scripts, messages, scans, values]) await part();
  await redis.quit();
} catch (error) {
  console.error(error);
  process.exit(1);
}
