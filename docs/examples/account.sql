-- A table whose rows refuse late writers: each keeps the highest fencing token that has written it.
CREATE TABLE account (
    name    TEXT PRIMARY KEY,
    balance BIGINT NOT NULL,
    fence   BIGINT NOT NULL DEFAULT 0
);
