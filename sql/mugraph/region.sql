-- The regions of a model that kernels can be sought for, a row a place where one is.
CREATE TABLE region (
    number INTEGER NOT NULL, place INTEGER NOT NULL, outputs VARCHAR[] NOT NULL, nodes INTEGER NOT NULL,
    operators VARCHAR[] NOT NULL, program VARCHAR NOT NULL, PRIMARY KEY (number, place)
);
COMMENT ON TABLE region IS 'The regions of a model that kernels can be sought for, a row a place where one is.';
COMMENT ON COLUMN region.number IS 'As kernels search MODEL --region takes it; equal regions have one.';
COMMENT ON COLUMN region.place IS 'Counts the places of equal regions.';
COMMENT ON COLUMN region.outputs IS 'The values that it gives there.';
COMMENT ON COLUMN region.nodes IS 'How many nodes of the model it has.';
COMMENT ON COLUMN region.operators IS 'Of its program.';
COMMENT ON COLUMN region.program IS 'What it computes: a μGraph without kernels, as kernels show reads it.';
