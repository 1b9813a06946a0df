-- What a session has spent of its budgets: an object of numbers, by the budgets' names.
ALTER TABLE sessions ADD COLUMN spent TEXT NOT NULL DEFAULT '{}';
