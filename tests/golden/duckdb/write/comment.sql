COMMENT ON COLUMN "d"."t"."c" IS 'it''s {{ x }}; --'
