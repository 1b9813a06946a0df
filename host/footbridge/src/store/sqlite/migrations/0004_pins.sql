-- The definition of each tool that somebody may call, as it was when it was seen first or accepted last, and the one
-- that its server offers instead, where nobody accepted that. A digest is the SHA-256 of the text beside it. Times are
-- milliseconds since 1970.
CREATE TABLE pins (
    server TEXT NOT NULL,
    tool TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    definition TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    changed_digest BLOB CHECK (length(changed_digest) = 32),
    changed_definition TEXT,
    changed INTEGER,
    PRIMARY KEY (server, tool),
    CHECK ((changed_digest IS NULL) = (changed_definition IS NULL) AND (changed_digest IS NULL) = (changed IS NULL))
) STRICT;

-- One row that counts what harnesses have to look at again.
CREATE TABLE pins_revision (revision INTEGER NOT NULL) STRICT;
INSERT INTO pins_revision VALUES (1);

CREATE TRIGGER pins_changed AFTER UPDATE OF digest, changed_digest ON pins
BEGIN UPDATE pins_revision SET revision = revision + 1; END;

CREATE TRIGGER pins_forgotten AFTER DELETE ON pins
BEGIN UPDATE pins_revision SET revision = revision + 1; END;
