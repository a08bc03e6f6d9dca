-- Clients and what they have instead of the default limits: a plan, or limits of their own.
CREATE TABLE weir_clients (
    client      text COLLATE "C" PRIMARY KEY CHECK (octet_length(client) BETWEEN 1 AND 1024),
    plan        text CHECK (octet_length(plan) BETWEEN 1 AND 64),
    limits      text CHECK (octet_length(limits) BETWEEN 1 AND 4096), -- 1000/1m; 50/1s   or a line for each policy: api: 1000/1m
    note        text NOT NULL DEFAULT '' CHECK (octet_length(note) <= 4096),
    valid_from  timestamptz CHECK (valid_from BETWEEN '0001-01-01Z' AND '9999-12-31Z'),  -- NULL: since ever
    valid_until timestamptz CHECK (valid_until BETWEEN '0001-01-01Z' AND '9999-12-31Z'), -- NULL: for ever
    updated_at  timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT weir_clients_plan_or_limits CHECK ((plan IS NULL) <> (limits IS NULL)),
    CONSTRAINT weir_clients_from_before_until CHECK (valid_from < valid_until)
);

-- What changed, the latest 100,000 at least, in the order in which it was committed. A client that is NULL stands for all of them.
CREATE TABLE weir_clients_changes (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tag    bigint NOT NULL DEFAULT (random() * 9007199254740991)::bigint, -- tells this history from that of a backup
    client text COLLATE "C"
);
INSERT INTO weir_clients_changes (client) VALUES (NULL);

CREATE FUNCTION weir_clients_touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.updated_at := now();
    RETURN NEW;
END $$;

-- One writer at a time, up to its commit: what has a smaller number is then never committed later. Taken before any row is locked.
CREATE FUNCTION weir_clients_turn() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(2003134834, TG_RELID::int4);
    RETURN NULL;
END $$;

-- It runs with the rights of its owner, so that who may write clients need have no right on the changes.
CREATE FUNCTION weir_clients_changed() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    most CONSTANT bigint := 10000; -- a change of more rows is told as one of all
    changed bigint := most + 1;
    names text := 'SELECT NULL';
    latest bigint;
BEGIN
    IF TG_OP = 'INSERT' THEN
        SELECT count(*) INTO changed FROM (SELECT FROM new_rows LIMIT most + 1) AS r;
        names := 'SELECT client FROM new_rows';
    ELSIF TG_OP = 'UPDATE' THEN
        SELECT count(*) INTO changed FROM (SELECT FROM old_rows LIMIT most + 1) AS r;
        names := 'SELECT client FROM old_rows UNION SELECT client FROM new_rows';
    ELSIF TG_OP = 'DELETE' THEN
        SELECT count(*) INTO changed FROM (SELECT FROM old_rows LIMIT most + 1) AS r;
        names := 'SELECT client FROM old_rows';
    END IF;
    IF changed = 0 THEN
        RETURN NULL;
    END IF;
    IF changed > most THEN
        names := 'SELECT NULL';
    END IF;
    EXECUTE format('INSERT INTO %I.weir_clients_changes (client) %s', TG_TABLE_SCHEMA, names);
    EXECUTE format('SELECT max(number) FROM %I.weir_clients_changes', TG_TABLE_SCHEMA) INTO latest;
    EXECUTE format('DELETE FROM %I.weir_clients_changes WHERE number <= $1', TG_TABLE_SCHEMA) USING latest - 100000;
    PERFORM pg_notify('weir_clients', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION weir_clients_changed() FROM PUBLIC;

CREATE TRIGGER weir_clients_touch BEFORE INSERT OR UPDATE ON weir_clients FOR EACH ROW EXECUTE FUNCTION weir_clients_touch();
CREATE TRIGGER weir_clients_turn BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON weir_clients FOR EACH STATEMENT EXECUTE FUNCTION weir_clients_turn();
CREATE TRIGGER weir_clients_inserted AFTER INSERT ON weir_clients REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION weir_clients_changed();
CREATE TRIGGER weir_clients_updated AFTER UPDATE ON weir_clients REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION weir_clients_changed();
CREATE TRIGGER weir_clients_deleted AFTER DELETE ON weir_clients REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION weir_clients_changed();
CREATE TRIGGER weir_clients_truncated AFTER TRUNCATE ON weir_clients FOR EACH STATEMENT EXECUTE FUNCTION weir_clients_changed();
