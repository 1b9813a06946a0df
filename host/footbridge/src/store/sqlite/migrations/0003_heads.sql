-- Signed heads of the record's chains, the newest of each. What they say is in their signature.
CREATE TABLE heads (
    chain TEXT NOT NULL,
    -- The number of the line that it is about.
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    time TEXT NOT NULL,
    key TEXT NOT NULL,
    signature TEXT NOT NULL,
    PRIMARY KEY (chain, seq, hash)
) STRICT, WITHOUT ROWID;
