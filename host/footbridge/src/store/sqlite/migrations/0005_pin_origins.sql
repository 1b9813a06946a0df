-- A server is known by its name and by how it is reached, which is the member "server" of each of its definitions and a
-- column now; empty where nothing is known of it. A change that was another origin is none any more.
CREATE TABLE pins_by_origin (
    server TEXT NOT NULL,
    origin TEXT NOT NULL,
    tool TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    definition TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    changed_digest BLOB CHECK (length(changed_digest) = 32),
    changed_definition TEXT,
    changed INTEGER,
    PRIMARY KEY (server, origin, tool),
    CHECK ((changed_digest IS NULL) = (changed_definition IS NULL) AND (changed_digest IS NULL) = (changed IS NULL))
) STRICT;

INSERT INTO pins_by_origin
SELECT server, origin, tool, digest, definition, pinned,
    iif(origin = changed_origin, changed_digest, NULL),
    iif(origin = changed_origin, changed_definition, NULL),
    iif(origin = changed_origin, changed, NULL)
FROM (
    SELECT *,
        -- A text that is no JSON was tampered with: it stays, to be found.
        iif(json_valid(definition), coalesce(json_extract(definition, '$.server'), ''), '') AS origin,
        iif(json_valid(changed_definition), coalesce(json_extract(changed_definition, '$.server'), ''), '')
            AS changed_origin
    FROM pins
);

DROP TABLE pins;
ALTER TABLE pins_by_origin RENAME TO pins;

CREATE TRIGGER pins_changed AFTER UPDATE OF digest, changed_digest ON pins
BEGIN UPDATE pins_revision SET revision = revision + 1; END;

CREATE TRIGGER pins_forgotten AFTER DELETE ON pins
BEGIN UPDATE pins_revision SET revision = revision + 1; END;

UPDATE pins_revision SET revision = revision + 1;
