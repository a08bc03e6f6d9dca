-- Clients and what they have instead of the default limits: a plan, or limits of their own.
-- Times are text: 2026-06-01, 2026-06-01 12:00:00 or 2026-06-01T12:00:00Z, of UTC unless they say another zone.
CREATE TABLE weir_clients (
    client      TEXT NOT NULL PRIMARY KEY CHECK (length(CAST(client AS BLOB)) BETWEEN 1 AND 1024),
    plan        TEXT CHECK (length(CAST(plan AS BLOB)) BETWEEN 1 AND 64),
    limits      TEXT CHECK (length(CAST(limits AS BLOB)) BETWEEN 1 AND 4096), -- 1000/1m; 50/1s   or a line for each policy: api: 1000/1m
    note        TEXT NOT NULL DEFAULT '' CHECK (length(CAST(note AS BLOB)) <= 4096),
    valid_from  TEXT CHECK (valid_from IS NULL OR valid_from GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' AND julianday(valid_from) IS NOT NULL),     -- NULL: since ever
    valid_until TEXT CHECK (valid_until IS NULL OR valid_until GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*' AND julianday(valid_until) IS NOT NULL), -- NULL: for ever
    updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    CONSTRAINT weir_clients_plan_or_limits CHECK ((plan IS NULL) <> (limits IS NULL)),
    CONSTRAINT weir_clients_from_before_until CHECK (julianday(valid_from) < julianday(valid_until))
) STRICT, WITHOUT ROWID;

-- What changed, the latest 100,000 at least. A client that is NULL stands for all of them.
CREATE TABLE weir_clients_changes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tag    INTEGER NOT NULL DEFAULT (random()), -- tells this history from that of a backup
    client TEXT
) STRICT;
INSERT INTO weir_clients_changes (client) VALUES (NULL);

CREATE TRIGGER weir_clients_inserted AFTER INSERT ON weir_clients BEGIN
    INSERT INTO weir_clients_changes (client) VALUES (NEW.client);
END;
CREATE TRIGGER weir_clients_updated AFTER UPDATE OF client, plan, limits, note, valid_from, valid_until ON weir_clients BEGIN
    INSERT INTO weir_clients_changes (client) VALUES (NEW.client);
    INSERT INTO weir_clients_changes (client) SELECT OLD.client WHERE OLD.client <> NEW.client;
    UPDATE weir_clients SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE client = NEW.client;
END;
CREATE TRIGGER weir_clients_deleted AFTER DELETE ON weir_clients BEGIN
    INSERT INTO weir_clients_changes (client) VALUES (OLD.client);
END;
CREATE TRIGGER weir_clients_forget AFTER INSERT ON weir_clients_changes WHEN NEW.number % 1000 = 0 BEGIN
    DELETE FROM weir_clients_changes WHERE number <= NEW.number - 100000;
END;
