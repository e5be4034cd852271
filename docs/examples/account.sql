-- A table whose rows refuse late writers: each row keeps the highest fencing token that wrote it.
CREATE TABLE account (
    name    TEXT PRIMARY KEY,
    balance BIGINT NOT NULL,
    fence   BIGINT NOT NULL DEFAULT 0
);
