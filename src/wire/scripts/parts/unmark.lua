-- Takes the mark from the token of `holder`: its first digit is a capital then.
if holder and holder ~= ARGV[1] and not holder.err and #((holder .. '@'):match('^[G-V]([0-9a-f]+)@') or '') == 31 then
  holder = holder:sub(1, 1):lower() .. holder:sub(2)
end
