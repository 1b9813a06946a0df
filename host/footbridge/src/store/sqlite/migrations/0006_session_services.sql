-- The services that a session may use: a list of names.
ALTER TABLE sessions ADD COLUMN services TEXT NOT NULL DEFAULT '[]';
