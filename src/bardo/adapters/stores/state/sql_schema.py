"""The tables and functions of a store of state in PostgreSQL.

What they hold expires, so that those of another form are removed and made anew: there are no migrations. Every store has tables of its own,
whose names begin with that of the store (`{space}`).
"""

from __future__ import annotations

FORM = "1"

TABLES = """
CREATE TABLE {space}_entries (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant BYTEA NOT NULL, value BYTEA NOT NULL, size BIGINT NOT NULL,
    expires DOUBLE PRECISION NOT NULL, reply BYTEA NOT NULL
);
CREATE INDEX {space}_entries_of_tenant ON {space}_entries (tenant, number);
CREATE INDEX {space}_entries_by_end ON {space}_entries (expires);
CREATE TABLE {space}_keys (
    tenant BYTEA NOT NULL, key BYTEA NOT NULL, entry BIGINT NOT NULL, ambiguous BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (tenant, key)
);
CREATE INDEX {space}_keys_of_entry ON {space}_keys (entry);
-- Sums, so that looking at a bound costs nothing that grows: '*' is that of all, and a tenant has 't:' before it.
CREATE TABLE {space}_shares (tenant BYTEA PRIMARY KEY, entries BIGINT NOT NULL, bytes BIGINT NOT NULL);
"""

# Every change takes the store's lock first, so that changes come one after the other: sums are exact, and nothing waits for itself.
FUNCTIONS = """
CREATE FUNCTION {space}_drop(gone BIGINT[]) RETURNS BIGINT LANGUAGE plpgsql AS $$
DECLARE
    removed BIGINT;
BEGIN
    DELETE FROM {space}_keys WHERE entry = ANY (gone);
    WITH went AS (DELETE FROM {space}_entries WHERE number = ANY (gone) RETURNING tenant, size),
    sums AS (
        SELECT tenant, count(*) AS entries, sum(size) AS bytes FROM went GROUP BY tenant
        UNION ALL SELECT '*'::bytea, count(*), COALESCE(sum(size), 0) FROM went
    ), changed AS (
        UPDATE {space}_shares AS share SET entries = share.entries - sums.entries, bytes = share.bytes - sums.bytes
        FROM sums WHERE share.tenant = sums.tenant RETURNING 1
    )
    SELECT count(*) INTO removed FROM went;
    RETURN removed;
END $$;

CREATE FUNCTION {space}_remove(of_tenant BYTEA, of_key BYTEA) RETURNS BIGINT LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock({lock});
    RETURN {space}_drop(ARRAY(SELECT entry FROM {space}_keys WHERE tenant = of_tenant AND key = of_key));
END $$;

CREATE FUNCTION {space}_put(
    of_tenant BYTEA, names BYTEA[], content BYTEA, counts BIGINT, now DOUBLE PRECISION, ends DOUBLE PRECISION, of_reply BYTEA,
    tenant_entries BIGINT, tenant_bytes BIGINT, all_entries BIGINT, all_bytes BIGINT
) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    added BIGINT;
    replaced BIGINT[];
    oldest BIGINT;
BEGIN
    PERFORM pg_advisory_xact_lock({lock});
    PERFORM {space}_drop(ARRAY(SELECT number FROM {space}_entries WHERE expires <= now ORDER BY expires LIMIT 100));
    INSERT INTO {space}_entries (tenant, value, size, expires, reply) VALUES (of_tenant, content, counts, ends, of_reply)
    RETURNING number INTO added;
    INSERT INTO {space}_shares VALUES (of_tenant, 1, counts), ('*', 1, counts)
    ON CONFLICT (tenant) DO UPDATE SET entries = {space}_shares.entries + 1, bytes = {space}_shares.bytes + counts;

    replaced := ARRAY(
        SELECT DISTINCT one.number FROM {space}_keys AS led JOIN {space}_entries AS one ON one.number = led.entry
        WHERE of_reply <> '' AND led.tenant = of_tenant AND led.key = ANY (names) AND one.reply = of_reply
    );
    -- A key whose latest entry is of another reply, and says something else, is ambiguous from then on.
    INSERT INTO {space}_keys AS led (tenant, key, entry) SELECT DISTINCT of_tenant, name, added FROM unnest(names) AS name
    ON CONFLICT (tenant, key) DO UPDATE SET entry = added, ambiguous = led.ambiguous OR NOT EXISTS (
        SELECT 1 FROM {space}_entries AS before WHERE before.number = led.entry
        AND (before.value = content OR (of_reply <> '' AND before.reply = of_reply))
    );
    PERFORM {space}_drop(ARRAY(
        SELECT number FROM unnest(replaced) AS number
        WHERE NOT EXISTS (SELECT 1 FROM {space}_keys AS led WHERE led.entry = number)
    ));

    WHILE EXISTS (SELECT 1 FROM {space}_shares WHERE tenant = of_tenant AND (entries > tenant_entries OR bytes > tenant_bytes)) LOOP
        SELECT min(number) INTO oldest FROM {space}_entries WHERE tenant = of_tenant;
        EXIT WHEN oldest IS NULL;
        PERFORM {space}_drop(ARRAY[oldest]);
    END LOOP;
    WHILE EXISTS (SELECT 1 FROM {space}_shares WHERE tenant = '*' AND (entries > all_entries OR bytes > all_bytes)) LOOP
        SELECT min(number) INTO oldest FROM {space}_entries;
        EXIT WHEN oldest IS NULL;
        PERFORM {space}_drop(ARRAY[oldest]);
    END LOOP;
    DELETE FROM {space}_shares WHERE tenant = of_tenant AND entries = 0;
    RETURN TRUE;
END $$;
"""

DROP = """
DROP FUNCTION IF EXISTS {space}_put(
    BYTEA, BYTEA[], BYTEA, BIGINT, DOUBLE PRECISION, DOUBLE PRECISION, BYTEA, BIGINT, BIGINT, BIGINT, BIGINT
);
DROP FUNCTION IF EXISTS {space}_remove(BYTEA, BYTEA);
DROP FUNCTION IF EXISTS {space}_drop(BIGINT[]);
DROP TABLE IF EXISTS {space}_entries, {space}_keys, {space}_shares;
"""
