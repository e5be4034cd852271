-- Writes only if the fencing token is at least the highest that has written the row.
-- Then one row is changed, otherwise none.
UPDATE account
   SET balance = :balance, fence = :fence
 WHERE name = :name AND fence <= :fence;
