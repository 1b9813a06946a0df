-- Sessions, by name. Of a token only its SHA-256 digest is here. Times are milliseconds since 1970.
CREATE TABLE sessions (
    name TEXT PRIMARY KEY,
    token BLOB NOT NULL UNIQUE CHECK (length(token) = 32),
    created INTEGER NOT NULL,
    expires INTEGER,
    policy TEXT NOT NULL,
    -- An object of texts.
    labels TEXT NOT NULL,
    -- The process that the session ends with: its id, its start in clock ticks since the boot, and the boot.
    pid INTEGER,
    pid_started INTEGER,
    pid_boot TEXT,
    CHECK ((pid IS NULL) = (pid_started IS NULL) AND (pid IS NULL) = (pid_boot IS NULL))
) STRICT;

-- Where a session listens, in the order asked for.
CREATE TABLE listens (
    session TEXT NOT NULL REFERENCES sessions (name) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    endpoint TEXT NOT NULL,
    mode INTEGER NOT NULL,
    owner INTEGER,
    -- An array of numbers; without one, whomever the file system lets in.
    allowed_uids TEXT,
    peer_cid INTEGER,
    PRIMARY KEY (session, position)
) STRICT, WITHOUT ROWID;
