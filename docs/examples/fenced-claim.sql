-- Before the row is read, to write what follows from it: from now on, what an older lease writes is refused.
UPDATE account
   SET fence = :fence
 WHERE name = :name AND fence <= :fence;
