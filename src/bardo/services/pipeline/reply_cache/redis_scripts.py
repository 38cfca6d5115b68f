"""The scripts by which a store in Redis changes several keys at once: each runs to its end before anything else does."""

from __future__ import annotations

from bardo.adapters.stores.database.redis_scripts import BOUNDED

_DROP = (
    BOUNDED
    + """
drop = function(id)
  local found = redis.call('HMGET', prefix .. 'info', id)[1]
  if not found then return 0 end
  local info = cmsgpack.unpack(found)
  local share, size, labels = info[1], info[2], info[3]
  forget(id, share, size)
  redis.call('ZREM', prefix .. 'marked', id)
  for _, label in ipairs(labels) do redis.call('SREM', prefix .. 'label:' .. label, id) end
  return 1
end
"""
)

PUT = (
    _DROP
    + """
local id, tenant, identity, value, size = ARGV[2], ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local expires, milliseconds, marks, labels = ARGV[7], ARGV[8], ARGV[9], cmsgpack.unpack(ARGV[10])
local fits, now = ARGV[11] == '1', ARGV[12]
local share = '=' .. tenant

drop(id)
drop_expired(now)
if not fits then return 0 end

local number = redis.call('INCR', prefix .. 'number')
local entry = prefix .. 'entry:' .. id
redis.call('HSET', entry, 'value', value, 'tenant', tenant, 'identity', identity, 'expires', expires, 'marks', marks)
redis.call('PEXPIRE', entry, milliseconds)
redis.call('HSET', prefix .. 'info', id, cmsgpack.pack({share, size, labels}))
count(id, share, size, number, expires)
if marks ~= '' then redis.call('ZADD', prefix .. 'marked', number, id) end
for _, label in ipairs(labels) do redis.call('SADD', prefix .. 'label:' .. label, id) end

shrink(share, tonumber(ARGV[13]), tonumber(ARGV[14]))
shrink('*', tonumber(ARGV[15]), tonumber(ARGV[16]))
return 1
"""
)
"""Keep an entry, or forget the earlier one where the new one does not fit. Returns whether it is kept."""

PURGE = (
    _DROP
    + """
local share, most, passed = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ids
if #ARGV > 4 then
  local sets = {}
  for place = 5, #ARGV do sets[#sets + 1] = prefix .. 'label:' .. ARGV[place] end
  ids = redis.call('SINTER', unpack(sets))
elseif share ~= '' then
  ids = redis.call('ZRANGE', prefix .. 'order:' .. share, passed, passed + most - 1)
else
  ids = redis.call('ZRANGE', prefix .. 'order', passed, passed + most - 1)
end
local gone = 0
for _, id in ipairs(ids) do
  if gone >= most then break end
  local found = redis.call('HGET', prefix .. 'info', id)
  if found and (share == '' or cmsgpack.unpack(found)[1] == share) then gone = gone + drop(id) end
end
return {#ids, gone}
"""
)
"""Remove some of the entries that are selected. Returns how many were looked at, and how many are gone."""
