// SPDX-License-Identifier: Apache-2.0
// ioredis on the daemon, unmodified: serve_ioredis.js PORT. Prints TAP. NODE_PATH names its folder.
'use strict';

const assert = require('assert');
const Redis = require('ioredis');

const port = Number(process.argv[2]);
const pairs = (list) =>
  Object.fromEntries(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1]]] : [])));

async function calls(redis) {
  const meta = '{"a b":"c"}';
  const grant = pairs(await redis.call('LOCK.ACQUIRE', 'io/k', 'node', 60000, 'META', meta));
  assert.strictEqual(grant.outcome, 'ok');
  assert.match(grant.token, /^[0-9]+$/);
  assert.strictEqual(pairs(await redis.call('lock.acquire', 'io/k', 'v', 60000)).outcome, 'busy');
  assert.strictEqual(pairs(await redis.call('LOCK.STATUS', 'io/k')).holder, 'node');
  await assert.rejects(redis.call('LOCK.ACQUIR', 'x'), /did you mean LOCK.ACQUIRE/);
  const gone = pairs(await redis.call('LOCK.RELEASE', 'io/k', grant.token));
  assert.strictEqual(gone.outcome, 'ok');
}

async function pipelines(redis) {
  const pipeline = redis.pipeline();
  for (let i = 0; i < 100; i++) pipeline.call('LOCK.ACQUIRE', `io/p${i}`, `w${i}`, 60000);
  const results = await pipeline.exec();
  assert.strictEqual(results.length, 100);
  results.forEach(([error, list], i) => {
    assert.strictEqual(error, null);
    assert.strictEqual(pairs(list).holder, `w${i}`);
  });
}

async function waits(redis) {
  const other = new Redis({ port });
  const held = pairs(await redis.call('LOCK.ACQUIRE', 'io/w', 'first', 60000));
  const waiting = other.call('LOCK.ACQUIRE', 'io/w', 'second', 60000, 'WAIT', 60000);
  await new Promise((done) => setTimeout(done, 100));
  await redis.call('LOCK.RELEASE', 'io/w', held.token);
  assert.strictEqual(pairs(await waiting).outcome, 'ok');
  await other.quit();
}

async function subscriptions(redis) {
  const watcher = new Redis({ port });
  const message = new Promise((done) => {
    watcher.on('message', (channel, text) => done([channel, JSON.parse(text)]));
  });
  assert.strictEqual(await watcher.subscribe('io/watched/', 'io/too/'), 2);
  await redis.call('LOCK.ACQUIRE', 'io/watched/k', 'node', 60000);
  const [channel, event] = await message;
  assert.strictEqual(channel, 'io/watched/');
  assert.deepStrictEqual([event.key, event.state, event.holder], ['io/watched/k', 'held', 'node']);
  assert.strictEqual(await watcher.unsubscribe('io/watched/', 'io/too/'), 0);
  assert.strictEqual(await watcher.ping(), 'PONG');
  await watcher.quit();
}

async function main() {
  const redis = new Redis({ port });
  const cases = { calls, pipelines, waits, subscriptions };
  let number = 0;
  for (const [name, run] of Object.entries(cases)) {
    number += 1;
    try {
      await run(redis);
      console.log(`ok ${number} - ${name}`);
    } catch (error) {
      console.log(`not ok ${number} - ${name}\n# ${error.stack.replace(/\n/g, '\n# ')}`);
      process.exitCode = 1;
    }
  }
  await redis.quit();
  console.log(`1..${number}`);
}

main();
