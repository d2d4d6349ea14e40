// The raw limit of Redis: one Lua script that finishes and claims, 50 jobs a call at most, or 1 job a call with as many calls in flight
// as the concurrency says.
import { Redis } from 'ioredis';
import { exchangeLoop } from './raw-batches.mjs';

const LARGEST = 50;

const ADD = `
for i = 1, #ARGV do
  local id = redis.call('INCR', KEYS[1])
  redis.call('HSET', KEYS[2], id, ARGV[i])
  redis.call('RPUSH', KEYS[3], id)
end`;
const EXCHANGE = `
for i = 2, #ARGV do
  redis.call('HDEL', KEYS[3], ARGV[i])
  redis.call('RPUSH', KEYS[4], ARGV[i])
end
local count = tonumber(ARGV[1])
local ids = count > 0 and redis.call('LPOP', KEYS[2], count)
if not ids then return {} end
local answer = {}
for i, id in ipairs(ids) do
  redis.call('HSET', KEYS[3], id, 1)
  answer[2 * i - 1] = id
  answer[2 * i] = redis.call('HGET', KEYS[1], id)
end
return answer`;

export async function open({ url, queue, options: { single = false } = {} }) {
  const client = new Redis(url);
  const key = (name) => `{${queue}}:${name}`;
  client.defineCommand('rawAdd', { lua: ADD, numberOfKeys: 3 });
  client.defineCommand('rawExchange', { lua: EXCHANGE, numberOfKeys: 4 });
  const add = (list) => client.rawAdd(key('id'), key('data'), key('waiting'), ...list.map((data) => JSON.stringify(data)));
  const exchange = async (finished, count) => {
    const flat = await client.rawExchange(key('data'), key('waiting'), key('active'), key('finished'), count, ...finished);
    return Array.from({ length: flat.length / 2 }, (_, n) => [flat[2 * n], flat[2 * n + 1]]);
  };
  let loops = [];
  return {
    add: async (data) => {
      await add([data]);
      for (const { wake } of loops) wake();
    },
    addBulk: add,
    work: async ({ concurrency }, handle, onDone) => {
      const [count, batch] = single ? [concurrency, 1] : [1, Math.min(concurrency, LARGEST)];
      loops = Array.from({ length: count }, () => exchangeLoop(exchange, batch, handle, onDone));
      return { stop: () => Promise.all(loops.map(({ stop }) => stop())) };
    },
    sessions: async () => (n) => client.hset(key('sessions'), n, Date.now()),
    close: () => client.quit(),
  };
}
