"""The scripts by which a store of state in Redis changes several keys at once: each runs to its end before anything else does."""

_DROP = """
local prefix = ARGV[1]

-- Forget one entry, and all that leads to it. Return 1 where there was one.
local function drop(number)
  local found = redis.call('HGET', prefix .. 'info', number)
  if not found then return 0 end
  local info = cmsgpack.unpack(found)
  local tenant, size, names = info[1], info[2], info[4]
  redis.call('DEL', prefix .. 'entry:' .. number)
  redis.call('HDEL', prefix .. 'info', number)
  redis.call('ZREM', prefix .. 'order', number)
  redis.call('ZREM', prefix .. 'order:' .. tenant, number)
  redis.call('ZREM', prefix .. 'ends', number)
  for _, name in ipairs(names) do
    local leads = redis.call('HGET', prefix .. 'keys:' .. tenant, name)
    if leads == number or leads == number .. '!' then redis.call('HDEL', prefix .. 'keys:' .. tenant, name) end
  end
  for _, one in ipairs({tenant, '*'}) do
    if redis.call('HINCRBY', prefix .. 'entries', one, -1) <= 0 then
      redis.call('HDEL', prefix .. 'entries', one)
      redis.call('HDEL', prefix .. 'bytes', one)
    else
      redis.call('HINCRBY', prefix .. 'bytes', one, -size)
    end
  end
  return 1
end
"""

PUT = (
    _DROP
    + """
local tenant, value, size, now, expires, milliseconds, reply = ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7], ARGV[8]
local names = {}
for place = 13, #ARGV do names[#names + 1] = ARGV[place] end
local keys = prefix .. 'keys:' .. tenant

for _, old in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'ends', '-inf', now, 'LIMIT', 0, 50)) do drop(old) end

-- A key whose latest entry is of another reply, and says something else, is ambiguous from then on.
local number = tostring(redis.call('INCR', prefix .. 'number'))
local replaced, judged = {}, {}
for _, name in ipairs(names) do
  local leads = redis.call('HGET', keys, name)
  local mark = ''
  if leads then
    local before = string.gsub(leads, '!', '')
    if judged[before] == nil then
      local found = redis.call('HGET', prefix .. 'info', before)
      local same = found and reply ~= '' and cmsgpack.unpack(found)[3] == reply
      if same then replaced[before] = true end
      judged[before] = same or redis.call('HGET', prefix .. 'entry:' .. before, 'value') == value
    end
    if before ~= leads or not judged[before] then mark = '!' end
  end
  redis.call('HSET', keys, name, number .. mark)
end

redis.call('HSET', prefix .. 'entry:' .. number, 'value', value, 'expires', expires)
redis.call('HSET', prefix .. 'info', number, cmsgpack.pack({tenant, size, reply, names}))
redis.call('ZADD', prefix .. 'order', number, number)
redis.call('ZADD', prefix .. 'order:' .. tenant, number, number)
redis.call('ZADD', prefix .. 'ends', expires, number)
for _, one in ipairs({tenant, '*'}) do
  redis.call('HINCRBY', prefix .. 'entries', one, 1)
  redis.call('HINCRBY', prefix .. 'bytes', one, size)
end

-- An earlier value of the same reply goes where no key leads to it any longer.
for before, _ in pairs(replaced) do
  local led = false
  for _, name in ipairs(cmsgpack.unpack(redis.call('HGET', prefix .. 'info', before))[4]) do
    local leads = redis.call('HGET', keys, name)
    led = led or leads == before or leads == before .. '!'
  end
  if not led then drop(before) end
end

-- Remove the oldest until no more are held than allowed.
local function shrink(order, one, entries, bytes)
  while tonumber(redis.call('HGET', prefix .. 'entries', one) or 0) > entries
      or tonumber(redis.call('HGET', prefix .. 'bytes', one) or 0) > bytes do
    local oldest = redis.call('ZRANGE', prefix .. order, 0, 0)[1]
    if not oldest or drop(oldest) == 0 then return end
  end
end
shrink('order:' .. tenant, tenant, tonumber(ARGV[9]), tonumber(ARGV[10]))
shrink('order', '*', tonumber(ARGV[11]), tonumber(ARGV[12]))

-- The server forgets what nobody adds to any longer. What leads to an entry outlives it.
redis.call('PEXPIRE', prefix .. 'entry:' .. number, milliseconds)
for _, name in ipairs({'info', 'order', 'ends', 'entries', 'bytes', 'keys:' .. tenant, 'order:' .. tenant}) do
  redis.call('PEXPIRE', prefix .. name, milliseconds + 60000)
end
return 1
"""
)
"""Keep a value under its keys."""

REMOVE = (
    _DROP
    + """
local leads = redis.call('HGET', prefix .. 'keys:' .. ARGV[2], ARGV[3])
if not leads then return 0 end
return drop((string.gsub(leads, '!', '')))
"""
)
"""Forget the value that a key leads to. Returns whether there was one."""
