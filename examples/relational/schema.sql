-- What `sluice check --tables --sample` prints for sluice.json, with the partition keys first.
CREATE TABLE "customers" ("PK" text COLLATE "C", "SK" text COLLATE "C", item jsonb NOT NULL, "name" text, "email" text, PRIMARY KEY ("PK", "SK"));
CREATE INDEX ON "customers" (((item->'sluice_expires'->>'N')::numeric)) WHERE item ? 'sluice_deleted';
CREATE VIEW "customers_live" AS SELECT * FROM "customers" WHERE NOT item ? 'sluice_deleted';
CREATE TABLE "orders" ("PK" text COLLATE "C", "SK" text COLLATE "C", item jsonb NOT NULL, "status" text, "total" numeric, "created" timestamptz, PRIMARY KEY ("PK", "SK"));
CREATE INDEX ON "orders" (((item->'sluice_expires'->>'N')::numeric)) WHERE item ? 'sluice_deleted';
CREATE VIEW "orders_live" AS SELECT * FROM "orders" WHERE NOT item ? 'sluice_deleted';
CREATE TABLE "order_lines" ("order_id" text COLLATE "C", "line" numeric, item jsonb NOT NULL, "customer" text, "number" text, "sku" text, "pieces" bigint, PRIMARY KEY ("order_id", "line"));
CREATE TABLE "order_lists" ("PK" text COLLATE "C", item jsonb NOT NULL, PRIMARY KEY ("PK"));
-- For the queries.
CREATE INDEX ON "order_lines" (customer, number);
CREATE INDEX ON "orders" (created);
