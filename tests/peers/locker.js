// SPDX-License-Identifier: Apache-2.0
// As locker.py, with node-redlock: locker.js PORT KEY ROUNDS FOLDER. NODE_PATH says where it is.
'use strict';

const fs = require('fs');
const path = require('path');
const Redis = require('ioredis');
const Redlock = require('redlock');

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

async function work(folder) {
  const inside = path.join(folder, 'inside');
  try {
    fs.closeSync(fs.openSync(inside, 'wx'));
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    fs.appendFileSync(path.join(folder, 'violations'), 'redlock was not alone\n');
    return;
  }
  await pause(3);
  fs.unlinkSync(inside);
}

async function main([port, key, rounds, folder]) {
  const server = new Redis({ host: '127.0.0.1', port: Number(port) });
  const locks = new Redlock([server], { retryCount: -1, retryDelay: 50, retryJitter: 50 });
  let longest = 0;
  for (let round = 0; round < Number(rounds); round++) {
    const began = Date.now();
    const lock = await locks.lock(key, 10000);
    longest = Math.max(longest, Date.now() - began);
    await work(folder);
    await lock.unlock();
    await pause(5);
  }
  console.log(rounds, longest);
  await server.quit();
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
