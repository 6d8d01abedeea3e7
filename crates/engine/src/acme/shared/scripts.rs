//! Scripts that the store executes for shared certificates. Each one is atomic. Must never contain a value: names of keys and
//! arguments are passed.

/// Registers a node, and returns the number of the last change. Forgets nodes after a minute.
/// Keys: times of nodes, changes that nodes have seen, changes. Arguments: node, the last change that it has seen.
pub(super) const LOOK: &str = "\
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - 60)) do
  redis.call('ZREM', KEYS[1], gone)
  redis.call('HDEL', KEYS[2], gone)
end
return tonumber(redis.call('GET', KEYS[3]) or '0')";

/// Returns the number of nodes that have looked within some seconds and have not seen a change.
/// Keys: times of nodes, changes that nodes have seen. Arguments: number of the change, seconds.
pub(super) const LAG: &str = "\
local now = tonumber(redis.call('TIME')[1])
local late = 0
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[2], '+inf')) do
  local seen = redis.call('HGET', KEYS[2], node)
  if tonumber(seen or '0') < tonumber(ARGV[1]) then late = late + 1 end
end
return late";

/// Takes the lease of a certificate. Returns a state, and milliseconds: 0 with 0 if the lease is taken; 1 with its rest if another
/// node has it; 2 with the rest of a pause after a failure.
/// Keys: lease, pause of the certificate, pause of the server. Arguments: holder, milliseconds, whether pauses are ignored.
pub(super) const TAKE: &str = "\
if ARGV[3] == '0' then
  for i = 2, 3 do
    local left = redis.call('PTTL', KEYS[i])
    if left > 0 then return {2, left} end
  end
end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return {0, 0} end
return {1, redis.call('PTTL', KEYS[1])}";

/// Prolongs a lease. Returns 0 if another node has it, or if it has ended.
/// Keys: lease. Arguments: holder, milliseconds.
pub(super) const PROLONG: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])";

/// Gives a lease back.
/// Keys: lease. Arguments: holder.
pub(super) const RELEASE: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])";

/// Publishes a certificate, and gives the lease back. Returns the certificate's version; 0 if another node has taken the lease, or
/// has published one since this node has looked. Versions are not repeated if the store loses its data: they are not below its time
/// in seconds. The same certificate is published once.
/// Keys: lease, versions, certificate, changes, failures. Arguments: holder, identifier, version that the node has seen, certificate.
pub(super) const PUBLISH: &str = "\
local version = redis.call('HGET', KEYS[2], ARGV[2])
if version and redis.call('GET', KEYS[3]) == ARGV[4] then return tonumber(version) end
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if not holder and version and version ~= ARGV[3] then return 0 end
local change = math.max(tonumber(redis.call('GET', KEYS[4]) or '0') + 1, tonumber(redis.call('TIME')[1]))
change = string.format('%d', change)
redis.call('SET', KEYS[4], change)
redis.call('SET', KEYS[3], ARGV[4])
redis.call('HSET', KEYS[2], ARGV[2], change)
redis.call('DEL', KEYS[1], KEYS[5])
return tonumber(change)";

/// Records a failure, and gives the lease back. Returns the pause until the next attempt in milliseconds: it is doubled by each
/// failure, up to the longest one.
/// Keys: lease, pause of the certificate, failures, pause of the server. Arguments: holder, first pause, longest pause, pause of the
/// server (0: none); in milliseconds.
pub(super) const FAIL: &str = "\
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
local failures = math.min(redis.call('INCR', KEYS[3]), 30)
redis.call('PEXPIRE', KEYS[3], 2 * ARGV[3])
local pause = math.min(ARGV[2] * 2 ^ (failures - 1), tonumber(ARGV[3]))
redis.call('SET', KEYS[2], failures, 'PX', string.format('%d', pause))
if ARGV[4] ~= '0' then redis.call('SET', KEYS[4], 1, 'PX', ARGV[4]) end
return pause";

/// Publishes proofs. Returns the number of the change.
/// Keys: proofs, changes. Arguments: name and proof, alternately.
pub(super) const PROVE: &str = "\
for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
return redis.call('INCR', KEYS[2])";

/// Removes proofs. Returns the number of the change.
/// Keys: proofs, changes. Arguments: name and proof, alternately.
pub(super) const FORGET: &str = "\
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('HDEL', KEYS[1], ARGV[i]) end
end
return redis.call('INCR', KEYS[2])";
