-- A session's own limits, where they are not those of the harness: an object of texts, by name.
ALTER TABLE sessions ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';
