-- Limits over several nodes by the generic cell rate algorithm: the value of a key is its theoretical arrival time in
-- microseconds of this server's clock, until which it exists.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

-- nodes <node> <lifetime>: reports a node, and returns the number of nodes.
if ARGV[1] == 'nodes' then
  local lifetime = tonumber(ARGV[3])
  redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + lifetime), ARGV[2])
  redis.call('PEXPIRE', KEYS[1], math.ceil(lifetime / 1000))
  return redis.call('ZCARD', KEYS[1])
end

-- take <interval> <burst> <advance> { <spent> <age> <want> }...: for each key, takes the tokens that were spent during 'age'
-- microseconds (negative: gives them back) and as many as available of those wanted, 'advance' more than there are. Returns for each
-- the tokens granted and those left; -1: the key holds other data. A key is kept for as long as an age may be.
local kept = 2000000
local interval = tonumber(ARGV[2])
local tolerance, advance = interval * tonumber(ARGV[3]), interval * tonumber(ARGV[4])
local result = {}
for i, key in ipairs(KEYS) do
  local spent, age, want = tonumber(ARGV[2 + 3 * i]), tonumber(ARGV[3 + 3 * i]), tonumber(ARGV[4 + 3 * i])
  local stored = redis.pcall('GET', key)
  local arrival = nil
  if stored == false then
    arrival = now - kept
  elseif type(stored) == 'string' then
    arrival = tonumber(stored)
  end
  -- Debts are bounded, and so is the value; nothing equals itself but numbers.
  if arrival == nil or arrival ~= arrival or arrival > now + 16 * tolerance + 600000000 then
    result[2 * i - 1] = -1
    result[2 * i] = 0
  else
    if spent > 0 then
      arrival = math.max(arrival, now - age)
    end
    arrival = arrival + spent * interval
    local count = math.max(0, math.min(want, math.floor((now + tolerance + advance - math.max(arrival, now)) / interval)))
    if count > 0 then
      arrival = math.max(arrival, now) + count * interval
    end
    arrival = math.min(arrival, now + 8 * tolerance + advance)
    if arrival > now - kept then
      redis.call('SET', key, string.format('%.17g', arrival), 'PX', math.max(1, math.ceil((arrival - now + kept) / 1000)))
    elseif stored then
      redis.call('DEL', key)
    end
    result[2 * i - 1] = count
    result[2 * i] = math.floor((now + tolerance - math.max(arrival, now)) / interval)
  end
end
return result
