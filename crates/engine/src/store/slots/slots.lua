-- Slots of servers over several nodes. The value of a key is "<since> <known>;" and for each node
-- "<node> <sequence> <held> <demand> <most> <leaves> <until>;", with times in microseconds of this server's clock. What a node holds
-- is what it has reported or was granted since, whichever is more. So the sum is at most the smallest 'maxconn' of all nodes, unless a
-- node has reported slots that the store did not grant.
--
-- <node> <lifetime> <leaves> { <sequence> <most> <held> <demand> <known> }...: returns for each key the slots that the node may use,
-- the number of nodes, and whether a node lacks slots that others hold; -1: the key holds other data; -2: a later claim was executed.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local node, lifetime, leaves = ARGV[1], tonumber(ARGV[2]), ARGV[3]

-- Nodes of a key, and the length of a value.
local MOST_NODES, MOST_BYTES = 512, 65536
-- A store that was emptied grants nothing until the nodes that hold slots have reported them; then each node up to its share, until the
-- leases of nodes that cannot report have expired.
local SILENT, CAREFUL = 1000000, 6000000
-- How often slots that cannot be divided change between the nodes that need them.
local ROTATION = 1000000

-- Returns the nodes whose leases have not expired, or nil: the value is another one.
local function read(value)
  local state = { since = now, known = 0 }
  if value == false then
    return state
  end
  if type(value) ~= 'string' or #value > MOST_BYTES then
    return nil
  end
  local since, known, rest = string.match(value, '^(%d+) (%d+);(.*)$')
  if not since then
    return nil
  end
  local at, count = 1, 0
  while at <= #rest do
    local text, id, seq, held, demand, most, leaving, ends =
      string.match(rest, '^((%x+) (%d+) (%d+) (%d+) (%d+) ([01]) (%d+);)', at)
    if not text then
      return nil
    end
    at, ends = at + #text, tonumber(ends)
    -- A time that this clock cannot have set is data of another state.
    if ends > now and ends <= now + 60000000 then
      count = count + 1
      state[count] = { text = text, id = id, seq = seq, held = tonumber(held), demand = tonumber(demand),
        most = tonumber(most), leaves = leaving == '1', ends = ends }
    end
  end
  if count > 0 then
    state.since, state.known = math.min(tonumber(since), now), tonumber(known)
  end
  return state
end

-- Grants what each node needs, and equal parts to those that need more where that is too much. Returns what is left.
local function satisfy(state, most)
  local left, hungry = most, state
  while true do
    local share, rest = math.floor(left / #hungry), {}
    for _, one in ipairs(hungry) do
      if one.demand <= share then
        one.need, left = one.demand, left - one.demand
      else
        rest[#rest + 1] = one
      end
    end
    if #rest == 0 then
      return left
    elseif #rest == #hungry then
      local first, more = math.floor(now / ROTATION), left - share * #rest
      for i, one in ipairs(rest) do
        one.need = share
        if (i - first) % #rest < more then one.need = share + 1 end
      end
      return 0
    end
    hungry = rest
  end
end

-- Divides the slots. What no node needs is divided equally, so that every node can begin at once; what remains of that stays where it is.
local function divide(state, most)
  local left, free = satisfy(state, most), 0
  for _, one in ipairs(state) do
    if not one.leaves then free = free + 1 end
  end
  local part = free > 0 and math.floor(left / free) or 0
  left = left - part * free
  for pass = 1, 2 do
    for _, one in ipairs(state) do
      if one.leaves then
        one.target = one.need
      else
        if pass == 1 then one.target = one.need + part end
        if left > 0 and free > 0 and one.target == one.need + part and (pass == 2 or one.held > one.target) then
          one.target, left = one.target + 1, left - 1
        end
      end
    end
  end
end

-- Decides what a node may use, and what it holds from now on.
local function decide(state, own, claim)
  local others, most = 0, own.most
  for _, one in ipairs(state) do
    most = math.min(most, one.most)
    if one ~= own then others = others + one.held end
  end
  divide(state, most)
  local count, age = own.target, now - state.since
  if count > own.held then
    count = own.held + math.max(0, math.min(count - own.held, most - others - own.held))
    if age < SILENT then
      count = own.held
    elseif age < CAREFUL and state.known > 0 then
      count = math.min(count, math.max(own.held, math.floor(most / state.known)))
    end
  end
  own.held = math.max(own.held, count)
  local contested = 0
  for _, one in ipairs(state) do
    if one.held < one.need then contested = 1 end
  end
  return count, contested
end

local result = {}
for i, key in ipairs(KEYS) do
  local at = 3 + 5 * (i - 1)
  local seq, most, held = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local state = read(redis.pcall('GET', key))
  local own, count, contested = nil, -1, 0
  if state then
    for _, one in ipairs(state) do
      if one.id == node then own = one end
    end
    if own and tonumber(own.seq) >= seq then
      count = -2
    elseif not own and #state >= MOST_NODES then
      count = 0
    else
      if not own then
        own = { id = node }
        table.insert(state, own)
        state.known = math.max(state.known, tonumber(ARGV[at + 5]))
      end
      own.most, own.held, own.demand = most, held, tonumber(ARGV[at + 4])
      own.leaves, own.ends = leaves == '1', now + lifetime
      count, contested = decide(state, own)
      own.text = string.format('%s %.0f %.0f %.0f %.0f %s %.0f;', node, seq, own.held, own.demand, most, leaves, own.ends)
      local texts, last = { string.format('%.0f %.0f;', state.since, state.known) }, now
      for k, one in ipairs(state) do
        texts[k + 1], last = one.text, math.max(last, one.ends)
      end
      redis.call('SET', key, table.concat(texts), 'PX', math.max(1, math.ceil((last - now) / 1000)))
    end
  end
  result[3 * i - 2], result[3 * i - 1], result[3 * i] = count, state and #state or 0, contested
end
return result
