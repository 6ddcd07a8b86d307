// What applications do with node-redis, by both versions of the protocol. Usage: node node_redis.js PORT

import assert from 'node:assert/strict';
import { createClient, defineScript, WatchError } from 'redis';

const port = Number(process.argv[2]);

const double = defineScript({
  NUMBER_OF_KEYS: 1,
  SCRIPT: "local value = redis.call('GET', KEYS[1]) * 2 redis.call('SET', KEYS[1], value) return value",
  parseCommand(parser, key) {
    parser.pushKey(key);
  },
  transformReply: undefined,
});

async function connect(RESP) {
  const client = createClient({ socket: { port }, RESP, scripts: { double } });
  client.on('error', (error) => {
    throw error;
  });
  await client.connect();
  return client;
}

async function pipelines(client) {
  // What is asked for without waiting is sent together.
  const replies = await Promise.all(Array.from({ length: 1_000 }, (_, number) => client.set(`key:${number}`, `${number}`)));
  assert.ok(replies.every((reply) => reply === 'OK'));
  assert.deepEqual(await client.mGet(['key:1', 'none', 'key:999']), ['1', null, '999']);
  assert.deepEqual(await client.multi().get('key:1').get('key:2').execAsPipeline(), ['1', '2']);
}

async function transactions(client, other) {
  assert.deepEqual(await client.multi().set('a', '1').incr('a').hSet('h', 'f', 'v').exec(), ['OK', 2, 1]);
  await client.watch('a');
  await other.set('a', 'changed');
  await assert.rejects(client.multi().set('a', 'lost').exec(), WatchError);
  assert.equal(await client.get('a'), 'changed');
}

async function scripts(client) {
  await client.set('n', '21');
  assert.equal(await client.double('n'), 42);
  assert.equal(await client.double('n'), 84);
  assert.deepEqual(await client.multi().double('n').get('n').exec(), [168, '168']);
  const digest = await client.scriptLoad('return ARGV[1]');
  assert.equal(await client.evalSha(digest, { arguments: ['argument'] }), 'argument');
  await assert.rejects(client.evalSha('0'.repeat(40)), /NOSCRIPT/);
}

async function messages(client) {
  const subscriber = client.duplicate();
  subscriber.on('error', (error) => {
    throw error;
  });
  await subscriber.connect();
  const found = [];
  let arrived;
  const both = new Promise((resolve) => {
    arrived = resolve;
  });
  const note = (text, channel) => found.push([text, channel]) === 2 && arrived();
  await subscriber.subscribe('news', note);
  await subscriber.pSubscribe('n*', note);
  assert.equal(await client.publish('news', 'hello'), 2);
  await both;
  assert.deepEqual(found, [['hello', 'news'], ['hello', 'news']]);
  await subscriber.unsubscribe();
  await subscriber.pUnsubscribe();
  await subscriber.close();
}

async function scans(client) {
  const keys = new Set();
  for await (const page of client.scanIterator({ MATCH: 'key:*', COUNT: 100 })) page.forEach((key) => keys.add(key));
  assert.equal(keys.size, 1_000);
  const fields = Object.fromEntries(Array.from({ length: 700 }, (_, number) => [`f${number}`, `v${number}`]));
  await client.hSet('fields', fields);
  const found = {};
  for await (const page of client.hScanIterator('fields')) page.forEach(({ field, value }) => (found[field] = value));
  assert.deepEqual(found, fields);
  assert.deepEqual({ ...(await client.hGetAll('fields')) }, fields);
  await client.sAdd('members', ['1', '2', '3']);
  assert.deepEqual([...(await client.sMembers('members'))].sort(), ['1', '2', '3']);
}

async function values(client) {
  await client.set('text', 'äöü', { expiration: { type: 'EX', value: 100 } });
  assert.equal(await client.get('text'), 'äöü');
  const seconds = await client.ttl('text');
  assert.ok(seconds > 90 && seconds <= 100);
  assert.equal(await client.set('text', 'x', { condition: 'NX' }), null);
  await assert.rejects(client.hGet('text', 'f'), /WRONGTYPE/);
  assert.match(await client.info('server'), /redis_version/);
}

try {
  for (const version of [2, 3]) {
    const [client, other] = [await connect(version), await connect(version)];
    await client.flushAll();
    await pipelines(client);
    await transactions(client, other);
    for (const part of [scripts, messages, scans, values]) await part(client);
    await client.close();
    await other.close();
  }
} catch (error) {
  console.error(error);
  process.exit(1);
}
