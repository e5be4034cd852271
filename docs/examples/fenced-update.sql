-- Writes if and only if the fencing token is at least the highest that has written the row: then one row is changed, else none.
UPDATE account
   SET balance = :balance, fence = :fence
 WHERE name = :name AND fence <= :fence;
