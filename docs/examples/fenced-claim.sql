-- Claims the row before it is read. From now on the row refuses what an older lease writes.
UPDATE account
   SET fence = :fence
 WHERE name = :name AND fence <= :fence;
